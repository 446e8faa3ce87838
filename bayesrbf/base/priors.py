"""Declared priors, transforms of real columns, objectives and results of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from numbers import Real
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float

from bayesrbf.base.records import (
    ANY_NUMBER,
    LARGEST_SCALE,
    SMALLEST_SCALE,
    Requirements,
    named,
    scales,
    stored,
    within,
)
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Order,
    Standardisation,
)

# Monotone transforms of real columns towards a normal shape, one power a column.


MIN_EXPONENT = 1e-12
"""Exponents below this count as 0: (t^p - 1) / p would cancel, and its limit is the logarithm."""
ROUNDING = 1e-12
"""Rounding error, in standard deviations, of a cell of 0 after a round trip of units."""
MARGIN = 0.5
"""Share of the training range by which the range of generated cells is wider on either side: the
inverse of a transform can be steep."""


@stored
class PowerTransforms:
    """The transform of every real column."""

    location: Float[np.ndarray, " feature"]
    scale: Float[np.ndarray, " feature"]
    powers: Float[np.ndarray, " feature"]
    """Called lambda above."""
    low: Float[np.ndarray, " feature"]
    """Smallest training cell, in standard units."""
    high: Float[np.ndarray, " feature"]
    """Largest training cell, in standard units."""

    @property
    def units(self) -> Standardisation:
        """Location and scale as a change of units."""
        return Standardisation(self.location, self.scale)

    @property
    def rounded(self) -> PowerTransforms:
        """The transforms themselves: no field is large enough to be stored in fewer digits."""
        return self

    def forward(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Map cells: ``g(real)``."""
        return self.with_log_slope(real)[0]

    @np.errstate(over="ignore")  # beyond every scale a cell is infinite, and held by its reader
    def with_log_slope(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> tuple[Float[np.ndarray, "*rows feature"], Float[np.ndarray, "*rows feature"]]:
        r"""Mapped cells ``g(real)``, and ``log g'(real)`` in nats.

        With :math:`t = (x - \text{location}) / \text{scale}` and h the number in [low, high]
        nearest to t,

        .. math:: g(x) = \text{location} + \text{scale}\,(\psi(h) + \psi'(h) (t - h)), \quad
            \log g'(x) = (\lambda - 1) \, \mathrm{sign}(h) \log(1 + |h|).

        Beyond the training cells g is a straight line: it takes the real line to the whole real
        line, so it has an inverse everywhere.
        """
        t = (real - self.location) / self.scale
        held = np.clip(t, self.low, self.high)
        log_slope = self._log_slope(held)
        mapped = yeo_johnson(held, self.powers) + np.exp(log_slope) * (t - held)
        return self.location + self.scale * mapped, log_slope

    def backward(
        self, mapped: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Inverse of :meth:`forward`: cells whose mapped values are given."""
        u = self.units.forward(mapped)
        inside = np.clip(u, yeo_johnson(self.low, self.powers), yeo_johnson(self.high, self.powers))
        held = _inverse(inside, self.powers)
        return self.units.backward(held + (u - inside) * np.exp(-self._log_slope(held)))

    def applied(self, rows: Observations) -> Observations:
        """Rows with mapped real cells, and log Jacobians with the transforms' log slopes added."""
        mapped, log_slope = self.with_log_slope(rows.real)
        change = np.nansum(log_slope, axis=1)
        return replace(rows, real=mapped, log_jacobian=rows.log_jacobian + change)

    def within_range(
        self, real: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Cells clipped to the training range, widened by ``MARGIN`` of its width.

        A column without a negative cell stays above half of its least cell, and one without a
        positive cell below half of its greatest: a logarithm of them is possible, and no sign new.
        """
        room = MARGIN * (self.high - self.low)
        least, most = self.units.backward(np.stack([self.low, self.high]))
        lowest, highest = self.units.backward(np.stack([self.low - room, self.high + room]))
        rounding = ROUNDING * self.scale
        # A zero that went through units and back may be slightly negative.
        lowest = np.where(least > -rounding, np.maximum(lowest, least.clip(0) / 2), lowest)
        highest = np.where(most < rounding, np.minimum(highest, most.clip(max=0) / 2), highest)
        return np.clip(real, lowest, highest)

    def reordered(self, order: Order) -> PowerTransforms:
        """The transforms of columns in another order."""
        fields = {name: value[order.features] for name, value in vars(self).items()}
        return PowerTransforms(**fields)

    def _log_slope(self, held: np.ndarray) -> np.ndarray:
        """``log psi'`` at standard cells within the range."""
        return (self.powers - 1) * np.sign(held) * np.log1p(np.abs(held))

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"
        yield within(self.powers, -10, 10), "powers between -10 and 10"
        yield bool((self.low <= self.high).all()), "a range of every column"
        yield within((self.low, self.high), -1e6, 1e6), "ranges in standard units"


def yeo_johnson(
    x: Float[np.ndarray, "*rows feature"], powers: Float[np.ndarray, " feature"]
) -> Float[np.ndarray, "*rows feature"]:
    r"""Power transform of every column (Yeo and Johnson 2000); the power 1 changes nothing.

    .. math:: \psi(x) = \mathrm{sign}(x) \frac{(1 + |x|)^p - 1}{p}, \quad
        p = \lambda \text{ for } x \ge 0, \; 2 - \lambda \text{ below}

    >>> yeo_johnson(np.array([[3.0], [-3.0]]), np.array([0.5])).ravel()
    array([ 2.        , -4.66666667])
    """
    exponent = np.where(x >= 0, powers, 2 - powers)
    logs = np.log1p(np.abs(x))
    none = np.abs(exponent) < MIN_EXPONENT
    grown = np.expm1(exponent * logs) / np.where(none, 1.0, exponent)
    return np.sign(x) * np.where(none, logs, grown)


def _inverse(u: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Inverse of :func:`yeo_johnson`: the x with ``psi(x) = u``."""
    exponent = np.where(u >= 0, powers, 2 - powers)
    none = np.abs(exponent) < MIN_EXPONENT
    size = np.abs(u)
    logs = np.log1p(exponent * size) / np.where(none, 1.0, exponent)
    return np.sign(u) * np.expm1(np.where(none, size, logs))


# Objectives of a fit, from the likelihood to the margin.


ObjectiveName = Literal["likelihood", "conditional", "margin", "blend", "hinge"]

OBJECTIVES: tuple[str, ...] = get_args(ObjectiveName)

SMOOTHING: Final = 0.1
"""Half-width of the hinge's rounded corner in nats: small beside margins of several nats, so that
it only gives L-BFGS a slope there."""
SHARPNESS: Final = 10.0
"""Sharpness of the soft maximum of other classes; it exceeds the largest of r values by at most
log(r) / 10 nats."""

_NOT_NEGATIVE: Final = ("finite and at least 0", lambda x: 0 <= x < np.inf)
_BOUNDS: Final[dict[str, tuple[str, Callable[[float], bool]]]] = {
    "kappa": ("in [0, 1]", lambda x: 0 <= x <= 1),
    "hinge_weight": _NOT_NEGATIVE,
    "margin": _NOT_NEGATIVE,
}
"""Requirement of each constant, in words and as a test."""


def check_constant(constant: str, value: object, argument: str, *instead: object) -> None:
    """ValueError unless a constant is a number within its bounds, or an allowed alternative.

    >>> check_constant("kappa", 2, "Blend.kappa", "cv")
    Traceback (most recent call last):
    ValueError: Blend.kappa must be in [0, 1], or 'cv'; received 2.
    """
    words, holds = _BOUNDS[constant]
    if any(value is word or (isinstance(value, str) and value == word) for word in instead):
        return
    if not isinstance(value, Real) or isinstance(value, bool) or not holds(float(value)):
        needed = ", or ".join([words, *map(repr, instead)])
        raise ValueError(f"{argument} must be {needed}; received {value!r}.")


@stored
class Objective:
    r"""An objective and its constants.

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
        joint, marginal, _ = self.coefficients
        return joint + marginal

    @property
    def prior_power(self) -> float:
        """Exponent of the prior: kappa in a blend, the weight of its log p(x), else 1."""
        return float(self.kappa) if self.name == "blend" else 1.0


# Declared priors: what a user may set, and what it resolves to on a table.


@stored
class MixturePrior:
    """Hyper-parameters of a mixture's prior, which is its only regularisation.

    Attributes
    ----------
    degrees_of_freedom : float or None
        Strength nu0 of the covariance prior in rows. None: D for full, 0.3 D
        for shared full, 2 for all other covariances.
    mean_precision : float
        Strength kappa0 of the prior on the means in rows.
    weight_concentration : float
        Dirichlet parameter of the component weights.
    class_concentration : float
        Dirichlet parameter of the class probabilities.
    category_sample_size : float
        Rows of the column's own marginal added to each component's levels.
    """

    degrees_of_freedom: float | None = None
    mean_precision: float = 0.1
    weight_concentration: float = 1.5
    class_concentration: float = 2.0
    category_sample_size: float = 1.0

    def __post_init__(self) -> None:
        bounds = {
            "degrees_of_freedom": (self.degrees_of_freedom, 0.0),
            "mean_precision": (self.mean_precision, 0.0),
            "weight_concentration": (self.weight_concentration, 1.0),
            "class_concentration": (self.class_concentration, 1.0),
            "category_sample_size": (self.category_sample_size, 0.0),
        }
        for name, (value, bound) in bounds.items():
            if value is None and name == "degrees_of_freedom":
                continue
            if value is None or not (np.isfinite(value) and value > bound):
                raise ValueError(
                    f"MixturePrior.{name} must be finite and greater than {bound:g}; "
                    f"received {value!r}."
                )

    def weakened(self, factor: float, specification: MixtureSpecification) -> MixturePrior:
        """A copy whose covariance prior is weaker by the factor ``factor``."""
        if factor == 1:
            return self
        declared = self.degrees_of_freedom
        sample_size = specification.prior_sample_size if declared is None else declared
        return replace(self, degrees_of_freedom=factor * sample_size)

    def resolve(
        self,
        specification: MixtureSpecification,
        units: Standardisation,
        marginals: tuple[Float[np.ndarray, " _"], ...],
    ) -> MixtureHyperparameters:
        """Hyper-parameters of the prior for one table, in the user's units.

        The units of the columns are the prior's centre and scale; ``marginals`` are the level
        probabilities of each categorical column, positive.
        """
        freedom = self.degrees_of_freedom
        freedom = specification.prior_sample_size if freedom is None else float(freedom)
        return MixtureHyperparameters(
            degrees_of_freedom=freedom,
            mean_precision=float(self.mean_precision),
            location=units.location,
            scale=units.scale,
            weight_concentration=float(self.weight_concentration),
            class_concentration=float(self.class_concentration),
            category_concentrations=tuple(1 + self.category_sample_size * m for m in marginals),
        )


@dataclass(frozen=True)
class PoolPrior:
    """Prior and constants of the pool of classifiers and of the calibration of one classifier.

    Parameters about which held-out rows say little stay near those of an equally weighted pool
    without calibration.
    """

    pseudo_rows: float = 1.0
    """Rows behind every member's weight: their Dirichlet parameter less 1. On 12 tables of 60 and
    150 rows .4 cost .004 nats (standard error .002); where half of the cells are missing they
    gained .001 (.001). Probabilities moved more with the seed."""
    sd: float = 0.5
    """Standard deviation of log temperatures and of the exponents of the class shares."""
    n_parameters: float = 2.0
    """Penalty, in nats, of a pool compared with the class shares: Akaike's, for its temperature and
    its exponent of the shares."""
    least: float = 1e-6
    """Probability that every member is taken to give every class at least."""
    knots: tuple[float, ...] = (0.0, 0.5, 0.8, 1.0)
    """Missing fractions at which parameters are variables; they are linear between. Two fewer
    cost .004 nats on 27 tables where one cell is known, and two more gained nothing."""


POOL_PRIOR: Final = PoolPrior()


@stored
class MixtureHyperparameters:
    """The resolved prior of a mixture on one table, in the user's units."""

    degrees_of_freedom: float
    """nu0."""
    mean_precision: float
    """kappa0."""
    location: Float[np.ndarray, " feature"]
    """Prior mean m0 of the component means."""
    scale: Float[np.ndarray, " feature"]
    """Square roots of the diagonal of the prior covariance S0."""
    weight_concentration: float
    """Dirichlet parameter of the component weights."""
    class_concentration: float
    """Dirichlet parameter of the class probabilities."""
    category_concentrations: tuple[Float[np.ndarray, " _"], ...]
    """Dirichlet parameters of the level probabilities, one array per categorical column."""

    @cached_property
    def units(self) -> Standardisation:
        """Location and scale as a change of units."""
        return Standardisation(self.location, self.scale)

    def standardised(self) -> MixtureHyperparameters:
        """The prior in standard units: location 0 and scale 1; the rest is free of units."""
        zeros = np.zeros_like(self.location)
        return replace(self, location=zeros, scale=zeros + 1)

    def reordered(self, order: Order) -> MixtureHyperparameters:
        """Hyper-parameters with the columns in another order."""
        return replace(
            self,
            location=self.location[order.features],
            scale=self.scale[order.features],
            category_concentrations=tuple(
                self.category_concentrations[index] for index in order.categories
            ),
        )

    def __laws__(self) -> Requirements:
        yield within(self.scale, 1e-305), "positive scales"
        yield scales(self.mean_precision), "a positive strength of the means"
        least = SMALLEST_SCALE if self.location.size else 0  # without real columns it is 0
        sample_size = within(self.degrees_of_freedom, least, LARGEST_SCALE)
        yield sample_size, "a positive strength of covariances"
        concentrations = self.weight_concentration, self.class_concentration
        yield scales(concentrations), "positive concentrations"
        yield all(map(scales, self.category_concentrations)), "positive concentrations of levels"


@stored
class GammaPrecisions:
    """A prior of the precisions: alpha ~ Gamma(shape, rate), each on its own.

    Attributes
    ----------
    shape : float
        Positive; ``2 shape`` is the degrees of freedom of the Student t that a
        weight has when its precision is integrated out.
    rate : float
        Positive: at 0 the posterior would be improper.
    """

    shape: float = 0.5
    rate: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self, shape=self.shape, rate=self.rate)


@stored
class HorseshoePrecisions:
    r"""The regularised horseshoe: many weights near zero, a few free.

    .. math:: \alpha_h = (\tau \lambda_h)^{-2} + s^{-2}, \quad
        \tau \sim C^+(0, \tau_0), \; \lambda_h \sim C^+(0, 1)

    Attributes
    ----------
    scale : float
        Scale tau_0 of the global half-Cauchy.
    slab : float
        Standard deviation s that no weight's prior exceeds.

    References
    ----------
    Piironen and Vehtari (2017), Electronic Journal of Statistics 11,
    5018-5051, section 2.3, with a fixed slab.
    """

    scale: float = 0.1
    slab: float = 5.0

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale, slab=self.slab)


PrecisionPrior = GammaPrecisions | HorseshoePrecisions


def _check_positive(record: PrecisionPrior, **values: float) -> None:
    """Refuse hyper-parameters that are no positive numbers."""
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"{type(record).__name__}.{name} must be finite and positive; received {value!r}."
            )


# Results of fits and predictions.


@named
class Status(Enum):
    """Outcome of a fit. ``value`` is the name that is stored, ``sentence`` is for people."""

    CONVERGED = "converged"
    STOPPED = "stopped"
    MAX_ITER = "max_iter"
    DECREASED = "decreased"
    DEGENERATE = "degenerate"

    @property
    def sentence(self) -> str:
        """Message on how the fit ended, and on the remedy."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.CONVERGED: "The log posterior rises no further, by the tolerance tol.",
    Status.STOPPED: (
        "The fit stopped as it was told to, before the objective stopped rising: after its "
        "number of iterations, or when held-out rows gained no more."
    ),
    Status.MAX_ITER: (
        "max_iter was reached before the log posterior stopped rising: "
        "raise max_iter or tol, or use fewer components."
    ),
    Status.DECREASED: (
        "The log posterior fell by more than rounding allows; the best point is kept. "
        "Look for columns that are nearly linear functions of others."
    ),
    Status.DEGENERATE: (
        "The log posterior is not finite at the start: "
        "look for extreme values, or strengthen the prior."
    ),
}


@stored
class Trace:
    """Path of an optimiser."""

    log_posterior: Float[np.ndarray, " iteration"] = field(metadata=ANY_NUMBER)
    """Log posterior density (without Jacobian) at each accepted point."""

    @property
    def n_iter(self) -> int:
        """Number of accepted points."""
        return int(self.log_posterior.size)


@stored
class Fit:
    """The winning restart of a fit, in standard units."""

    parameters: MixtureParameters
    trace: Trace
    status: Status
    restarts: Float[np.ndarray, " restart"] = field(metadata=ANY_NUMBER)
    """Log posterior that every restart reached; only the best were run to the end."""
    floored: bool  # Whether a covariance is singular but for the floor of its eigenvalues.

    @property
    def converged(self) -> bool:
        """Whether the winner converged."""
        return self.status is Status.CONVERGED

    @property
    def log_posterior(self) -> float:
        """Log posterior density at the point, without Jacobian."""
        return float(self.trace.log_posterior[-1])


@dataclass(frozen=True)
class ClassPrediction:
    """Log class probabilities and log densities of rows, under one draw or several.

    The two are separate because their sum, far from all rows, would have no digits left for the
    classes.
    """

    log_probabilities: Float[np.ndarray, "*draws obs label"]
    """``log p(c | x_o)`` in nats, up to a constant a row."""
    log_density: Float[np.ndarray, "*draws obs"]  # ``log p(x_o)`` in nats.
