"""Objectives of a fit, from the likelihood to the margin."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Final, Literal, get_args

import numpy as np

from bayesrbf.records.stored import stored

ObjectiveName = Literal["likelihood", "conditional", "margin", "blend", "hinge"]

OBJECTIVES: tuple[str, ...] = get_args(ObjectiveName)

SMOOTHING: Final = 0.1
"""Half-width of the hinge's rounded corner in nats: small beside margins of several nats, so that
it only gives L-BFGS a slope there."""
SHARPNESS: Final = 10.0
"""Of the soft maximum over the other classes, which exceeds the largest of r values by at most
log(r) / 10 nats."""

_NOT_NEGATIVE: Final = ("finite and at least 0", lambda x: 0 <= x < np.inf)
_BOUNDS: Final[dict[str, tuple[str, Callable[[float], bool]]]] = {
    "kappa": ("in [0, 1]", lambda x: 0 <= x <= 1),
    "hinge_weight": _NOT_NEGATIVE,
    "margin": _NOT_NEGATIVE,
}
"""What each constant must be, in words and as a test."""


def check_constant(constant: str, value: object, argument: str, *instead: object) -> None:
    """ValueError unless a constant is a number with a meaning, or one of what it may be instead.

    >>> check_constant("kappa", 2, "Blend.kappa", "cv")
    Traceback (most recent call last):
    ValueError: Blend.kappa must be in [0, 1], or 'cv'; received 2.
    """
    words, holds = _BOUNDS[constant]
    if any(value is one or (isinstance(value, str) and value == one) for one in instead):
        return
    if not isinstance(value, Real) or isinstance(value, bool) or not holds(float(value)):
        needed = ", or ".join([words, *map(repr, instead)])
        raise ValueError(f"{argument} must be {needed}; received {value!r}.")


@stored
class Objective:
    r"""One objective and its constants.

    With the log joints :math:`b_c = \log p(x, c)` of a row, its label y, and the
    violation of the margin

    .. math:: m = \tfrac1\eta \log \sum_{c \neq y} e^{\eta (\gamma - b_y + b_c)},

    a labelled row contributes

    .. math:: J = \alpha\, b_y + \beta \log \sum_c e^{b_c} - \lambda\, h(m)

    to what is maximised, and a row without a label
    :math:`(\alpha + \beta) \log \sum_c e^{b_c}`. The soft hinge h is 0 below
    :math:`-\varepsilon`, the identity above :math:`\varepsilon` and a parabola
    between them. :math:`\eta` is ``SHARPNESS``, and :math:`\varepsilon` is ``SMOOTHING``.

    ============= ================ ================= ================ ================
    objective     :math:`\alpha`   :math:`\beta`     :math:`\lambda`  power of the
                                                                      prior
    ============= ================ ================= ================ ================
    likelihood    1                0                 0                1
    conditional   1                -1                0                1
    blend         1                :math:`\kappa-1`  0                :math:`\kappa`
    hinge         1                0                 hinge_weight     1
    margin        0                0                 1                1
    ============= ================ ================= ================ ================

    See Roth, Peharz, Tschiatschek, Pernkopf (2018), Hybrid generative-discriminative
    training of Gaussian mixture models, Pattern Recognition Letters 112, 131-137; equations 3.15,
    3.16 and 3.21 of the thesis (Roth 2016) before it, whose (3.16) prints p for log p.

    >>> Objective("blend", kappa=0.3).coefficients
    (1.0, -0.7, 0.0)
    """

    name: ObjectiveName = "likelihood"
    kappa: float = 0.3
    """Weight in [0, 1] of log p(x) beside log p(y | x) in the blend; scales the prior, too."""
    hinge_weight: float = 4.0
    """Weight of the hinge beside the likelihood, at least 0: 0 is the likelihood."""
    margin: float = 8.0  # Log ratio :math:`\gamma` by which the own class is to win, in nats.

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise ValueError(f"objective must be one of {OBJECTIVES}; received {self.name!r}.")
        for constant, value in (
            ("kappa", self.kappa),
            ("hinge_weight", self.hinge_weight),
            ("margin", self.margin),
        ):
            check_constant(constant, value, constant)

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Weights alpha of ``log p(x, y)``, beta of ``log p(x)``, lambda of the hinge."""
        by_name = {
            "likelihood": (1.0, 0.0, 0.0),
            "conditional": (1.0, -1.0, 0.0),
            "blend": (1.0, float(self.kappa) - 1.0, 0.0),
            "hinge": (1.0, 0.0, float(self.hinge_weight)),
            "margin": (0.0, 0.0, 1.0),
        }
        return by_name[self.name]

    @property
    def generative_weight(self) -> float:
        """Weight of a row's density: alpha + beta."""
        own, every, _ = self.coefficients
        return own + every

    @property
    def prior_power(self) -> float:
        """Exponent of the prior: kappa in a blend, so that it weighs as in the likelihood."""
        return float(self.kappa) if self.name == "blend" else 1.0
