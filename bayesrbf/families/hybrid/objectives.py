"""Objectives that a user may ask a mixture for, each with its constants and its search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Final, Literal

from bayesrbf.base.priors import Objective, check_constant
from bayesrbf.base.records import Stored, short_repr, stored


@dataclass(frozen=True)
class MixtureObjective(ABC):
    """An objective of a mixture, maximised with its log prior."""

    @property
    @abstractmethod
    def constants(self) -> Objective:
        """The objective in numbers; what is left to the rows held out has its default."""

    @property
    def is_open(self) -> bool:
        """Whether rows held out choose a constant."""
        return False

    @property
    def steps(self) -> int | None:
        """Most iterations of L-BFGS after EM; None: the number of the objective's kind."""
        return None


@stored
class Likelihood(MixtureObjective):
    r"""The likelihood of rows and labels, :math:`\sum_n \log p(x_n, y_n)`, found by EM.

    A row without a label contributes :math:`\log p(x_n)`.

    Examples
    --------
    >>> Likelihood()
    Likelihood()
    """

    __repr__ = short_repr

    @property
    def constants(self) -> Objective:
        """The objective in numbers."""
        return Objective("likelihood")


@dataclass(frozen=True, kw_only=True)
class DiscriminativeObjective(MixtureObjective):
    """An objective that L-BFGS follows from the fit by EM on."""

    max_iter: Stored[int | None] = None

    def __post_init__(self) -> None:
        number = self.max_iter
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if number is not None and not (whole and number >= 1):
            raise ValueError(
                f"{type(self).__name__}.max_iter must be an integer of at least 1, or None; "
                f"received {number!r}."
            )

    @property
    def steps(self) -> int | None:
        """Most iterations of L-BFGS after EM; None: the number of the objective's kind."""
        return self.max_iter


@stored
class ConditionalLikelihood(DiscriminativeObjective):
    r"""The likelihood of the labels, :math:`\sum_n \log p(y_n | x_n)`.

    Rows without a label say nothing to it.

    Attributes
    ----------
    max_iter : int or None
        Most iterations of L-BFGS; None: 200.
    """

    __repr__ = short_repr

    @property
    def constants(self) -> Objective:
        """The objective in numbers."""
        return Objective("conditional")


@stored
class Blend(DiscriminativeObjective):
    r"""A blend of the likelihoods of labels and of rows.

    .. math:: \sum_n \log p(y_n | x_n) + \kappa \sum_n \log p(x_n) + \kappa \log p(\theta)

    The prior is weighed by :math:`\kappa` as the rows are. Class probabilities are better than
    those of the likelihood where a class is no mixture of Gaussians.

    Attributes
    ----------
    kappa : float or "cv"
        Weight of the density, in [0, 1]: 1 is the likelihood, 0 the conditional likelihood.
        ``"cv"`` picks it by out-of-fold log score.
    max_iter : int or None
        Most iterations of L-BFGS; None: 60, as a blend that is followed further overfits.

    Examples
    --------
    >>> Blend(0.1), Blend(0.1).constants.coefficients
    (Blend(kappa=0.1), (1.0, -0.9, 0.0))
    """

    kappa: Stored[float | Literal["cv"]] = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_constant("kappa", self.kappa, "Blend.kappa", "cv")

    @property
    def is_open(self) -> bool:
        """Whether rows held out choose the weight of the density."""
        return self.kappa == "cv"

    __repr__ = short_repr

    @property
    def constants(self) -> Objective:
        """The objective in numbers."""
        return Objective("blend") if self.kappa == "cv" else Objective("blend", float(self.kappa))


@stored
class Margin(DiscriminativeObjective):
    r"""A soft margin between the classes.

    .. math:: -\sum_n h(m_n), \qquad m = \tfrac1\eta \log \sum_{c \neq y}
        e^{\eta (\gamma - \log p(x, y) + \log p(x, c))}

    The hinge h is 0 below :math:`-\varepsilon`, the identity above :math:`\varepsilon` and a
    parabola between them, with :math:`\eta = 10` and :math:`\varepsilon = 0.1` nats. Rows without
    a label say nothing to it.

    Attributes
    ----------
    margin : float
        Log ratio :math:`\gamma` by which the own class is to win, in nats.
    max_iter : int or None
        Most iterations of L-BFGS; None: 200.

    References
    ----------
    .. [1] Roth, Peharz, Tschiatschek, Pernkopf (2018), Hybrid generative-discriminative training
       of Gaussian mixture models, Pattern Recognition Letters 112, 131-137.
    """

    margin: Stored[float] = Objective.margin

    def __post_init__(self) -> None:
        super().__post_init__()
        check_constant("margin", self.margin, "Margin.margin")

    __repr__ = short_repr

    @property
    def constants(self) -> Objective:
        """The objective in numbers."""
        return Objective(
            "margin",
            margin=float(self.margin),
        )


@stored
class Hinge(DiscriminativeObjective):
    r"""The likelihood, less a weight times the hinge of the margin.

    .. math:: \sum_n \log p(x_n, y_n) - \lambda \sum_n h(m_n)

    The hinge h and the violation m of the margin are those of :class:`bayesrbf.Margin`. A row
    without a label contributes :math:`\log p(x_n)`.

    Attributes
    ----------
    weight : float or "cv"
        Weight :math:`\lambda` of the hinge, at least 0: 0 is the likelihood. ``"cv"`` picks it by
        out-of-fold log score.
    margin : float
        Log ratio :math:`\gamma` by which the own class is to win, in nats.
    max_iter : int or None
        Most iterations of L-BFGS; None: 200.

    Examples
    --------
    >>> Hinge(weight=4.0, margin=8.0).constants.coefficients
    (1.0, 0.0, 4.0)
    """

    weight: Stored[float | Literal["cv"]] = Objective.hinge_weight
    margin: Stored[float] = Objective.margin

    def __post_init__(self) -> None:
        super().__post_init__()
        check_constant("hinge_weight", self.weight, "Hinge.weight", "cv")
        check_constant("margin", self.margin, "Hinge.margin")

    @property
    def is_open(self) -> bool:
        """Whether rows held out choose the weight of the hinge."""
        return self.weight == "cv"

    __repr__ = short_repr

    @property
    def constants(self) -> Objective:
        """The objective in numbers."""
        return Objective(
            "hinge",
            hinge_weight=Objective.hinge_weight if self.weight == "cv" else float(self.weight),
            margin=float(self.margin),
        )


WORDS: Final[dict[str, MixtureObjective]] = {
    "likelihood": Likelihood(),
    "conditional": ConditionalLikelihood(),
    "margin": Margin(),
    "blend": Blend(),
    "hinge": Hinge(),
}
"""Words that stand for an objective with its defaults."""


def objective_of(objective: str | MixtureObjective) -> MixtureObjective:
    """The objective that a word stands for, or the objective itself."""
    return WORDS[objective] if isinstance(objective, str) else objective
