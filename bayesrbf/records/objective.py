"""Objectives of a fit, from the likelihood to the margin."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from bayesrbf.records.stored import stored

ObjectiveName = Literal["likelihood", "conditional", "margin", "blend", "hinge"]

OBJECTIVES: tuple[str, ...] = get_args(ObjectiveName)


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
    between them; with a cap :math:`\nu` it becomes the ramp
    :math:`h(m) - h(m - \nu)`.

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
    smoothing: float = 0.1  # Half-width :math:`\varepsilon` of the hinge's rounded corner, in nats.
    sharpness: float = 10.0
    r""":math:`\eta` of the soft maximum over the other classes; larger is nearer the maximum."""
    ramp_cap: float | None = None
    r"""Largest loss :math:`\nu` of a row, in nats, for labels that may be wrong; None: no cap."""

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise ValueError(f"objective must be one of {OBJECTIVES}; received {self.name!r}.")
        self._require("kappa", 0 <= self.kappa <= 1, "in [0, 1]")
        self._require("hinge_weight", 0 <= self.hinge_weight < np.inf, "finite and at least 0")
        self._require("margin", 0 <= self.margin < np.inf, "finite and at least 0")
        self._require("smoothing", 0 < self.smoothing < np.inf, "finite and greater than 0")
        self._require("sharpness", 0 < self.sharpness < np.inf, "finite and greater than 0")
        capped = self.ramp_cap is None or 0 < self.ramp_cap < np.inf
        self._require("ramp_cap", capped, "None, or finite and greater than 0")

    def _require(self, field: str, holds: bool, need: str) -> None:
        """Refuse a constant that the formulas have no meaning for."""
        if not holds:
            raise ValueError(f"{field} must be {need}; received {getattr(self, field)!r}.")

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
