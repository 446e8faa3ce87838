"""Log posterior of a sparse mixture: features, prior, label likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import log_softmax, log_sum_exp
from bayesrbf.base.log_posterior import LogPosterior, OneByOne, Predictor
from bayesrbf.base.priors import (
    ClassPrediction,
    GammaPrecisions,
    HorseshoePrecisions,
    PrecisionPrior,
)
from bayesrbf.base.rows import (
    Standardisation,
    Transform,
    Variable,
)
from bayesrbf.families.sdgm.records import (
    Basis,
    CompletedRows,
    QuadraticBasis,
    SDGMParameters,
    SDGMSpecification,
)

# The likelihood of labels under a softmax whose components are summed within classes.
#
# With logits z of the components, p their softmax, S the components of the classes
# that a row may have, and s the row's completions,
#
# .. math:: \log p(S | x) = \log \frac1n \sum_s \sum_{k \in S} p_{sk}.
#
# r is p within S, t the probability of a completion given S. The gradient in the
# logits is :math:`t (r - p)`.
#
# The complete-data negative Hessian :math:`t (\mathrm{diag}\, p - p p^\top)` is never
# indefinite. The observed one lacks the variance of the complete-data score over what is
# hidden: :math:`t (\mathrm{diag}\, r - r r^\top)`, and the variance of
# :math:`(r - p) \otimes \phi` over the completions.
#
# See Louis (1982), Finding the observed information matrix when using the EM algorithm, JRSS B 44,
# section 3.


Designs = tuple[Float[np.ndarray, "point _"], ...]
"""Features of every component's own weights, one array a component."""
BLOCK_NUMBERS = 4_000_000
"""Entries of a block of rows. Other blocks round sums differently and may prune other weights."""


@dataclass(frozen=True)
class Labels:
    """Components that the label of every point's row allows.

    ``starts`` is the first point of every row, and ``weights`` are row weights.
    """

    allowed: Bool[np.ndarray, "point component"]
    starts: Int[np.ndarray, " row"]
    weights: Float[np.ndarray, " row"]

    @cached_property
    def sizes(self) -> Int[np.ndarray, " row"]:
        """Number of points of every row."""
        return np.diff(self.starts, append=self.allowed.shape[0])


@dataclass(frozen=True)
class LabelExpectation:
    """E-step of the labels at one point: log likelihoods and conditional probabilities."""

    pointwise: Float[np.ndarray, " row"]  # Unweighted log likelihood of every row.
    probabilities: Float[np.ndarray, "point component"]  # p, the softmax over all components.
    responsibilities: Float[np.ndarray, "point component"]
    """r, the softmax over the components that the row may have."""
    completion_probabilities: Float[np.ndarray, " point"]
    """t, the probability of each completion among those of its row."""
    weights: Float[np.ndarray, " point"]  # Row weight times t.
    log_likelihood: float

    @property
    def logit_gradient(self) -> Float[np.ndarray, "point component"]:
        """Gradient of the weighted log likelihood in the logits."""
        return self.weights[:, None] * (self.responsibilities - self.probabilities)


def expect(labels: Labels, logits: Float[np.ndarray, "point component"]) -> LabelExpectation:
    """The E-step at logits ``log pi + w . phi``."""
    log_all, probabilities = log_sum_exp(logits, axis=1)
    log_some, responsibilities = log_sum_exp(np.where(labels.allowed, logits, -np.inf), axis=1)
    log_point = log_some - log_all
    sizes = labels.sizes
    # The mean over the completions of a row, in logs.
    pointwise = np.logaddexp.reduceat(log_point, labels.starts) - np.log(sizes)
    completion_probabilities = np.exp(log_point - np.repeat(pointwise + np.log(sizes), sizes))
    return LabelExpectation(
        pointwise=pointwise,
        probabilities=probabilities,
        responsibilities=responsibilities,
        completion_probabilities=completion_probabilities,
        weights=completion_probabilities * np.repeat(labels.weights, sizes),
        log_likelihood=float(labels.weights @ pointwise),
    )


def completion_error(labels: Labels, expectation: LabelExpectation) -> float:
    r"""Standard error, in nats, of the log likelihood for the finite number of completions.

    With n completions of relative probabilities :math:`n t_s`, the error of the log of their mean
    is :math:`\mathrm{sd}(n t_s) / \sqrt n`. It is an upper bound in practice, because quasi-random
    draws are more even than independent ones. Complete rows have none.
    """
    sizes = labels.sizes
    relative = expectation.completion_probabilities * np.repeat(sizes, sizes)
    squares = np.add.reduceat((relative - 1) ** 2, labels.starts)
    # A row with a single completion is complete, and has no error.
    variances = np.where(sizes > 1, squares / (np.maximum(sizes - 1, 1) * sizes), 0.0)
    return float(np.sqrt(labels.weights**2 @ variances))


def to_logits(
    designs: Designs,
    coefficients: Float[np.ndarray, " weight"],
    log_proportions: Float[np.ndarray, " component"],
) -> Float[np.ndarray, "point component"]:
    """Logits of all points, ``log pi_k + X_k w_k``."""
    logits = np.empty((designs[0].shape[0], len(designs)))
    for k, (design, slot) in enumerate(zip(designs, weight_slices(designs), strict=True)):
        logits[:, k] = design @ coefficients[slot] + log_proportions[k]
    return logits


def weight_slices(designs: Designs) -> tuple[slice, ...]:
    """Slice of the weights of each component in the concatenated vector."""
    return tuple(coordinates.consecutive_slices([design.shape[1] for design in designs]))


def weight_gradient(
    designs: Designs, gradient: Float[np.ndarray, "point component"]
) -> Float[np.ndarray, " weight"]:
    """Gradient in the weights, ``X_k' g_k``, from the gradient g in the logits."""
    return np.concatenate([design.T @ gradient[:, k] for k, design in enumerate(designs)])


def class_log_probabilities(
    logits: Float[np.ndarray, "*points component"], component_class: Int[np.ndarray, " component"]
) -> Float[np.ndarray, "*points label"]:
    """Log of the softmax summed within classes.

    ``component_class`` must be non-decreasing, and every class must have a component.
    """
    log_all, _ = log_sum_exp(logits, axis=-1)
    starts = np.flatnonzero(np.diff(component_class, prepend=-1))
    return np.logaddexp.reduceat(logits, starts, axis=-1) - log_all[..., None]


def complete_curvature(
    designs: Designs, labels: Labels, expectation: LabelExpectation
) -> Float[np.ndarray, "weight weight"]:
    """Complete-data negative Hessian of the weighted log likelihood, which is never indefinite.

    It is ``sum t (diag p - p p')`` between features.
    """
    return _spread(designs, labels, expectation, expectation.probabilities)


def component_curvatures(
    designs: Designs, expectation: LabelExpectation
) -> list[Float[np.ndarray, "_ _"]]:
    """Diagonal blocks of the complete-data curvature, ``X_k' t p_k (1 - p_k) X_k``."""
    p = expectation.probabilities
    roots = np.sqrt(expectation.weights[:, None] * p * (1 - p))
    scaled = (design * roots[:, k, None] for k, design in enumerate(designs))
    return [block.T @ block for block in scaled]


def curvature_product(
    designs: Designs, expectation: LabelExpectation, vector: Float[np.ndarray, " weight"]
) -> Float[np.ndarray, " weight"]:
    """The complete-data curvature times a vector of weights, without forming the matrix."""
    p = expectation.probabilities
    logits = to_logits(designs, vector, np.zeros(len(designs)))
    # (diag p - p p') z is p times z less its mean under p.
    centred = logits - (p * logits).sum(axis=1, keepdims=True)
    return weight_gradient(designs, expectation.weights[:, None] * p * centred)


def hidden_information(
    designs: Designs, labels: Labels, expectation: LabelExpectation
) -> Float[np.ndarray, "weight weight"]:
    """Missing information: complete-data curvature minus observed curvature of the weights.

    It equals the variance of the complete-data score over components and completions.
    """
    total = _spread(designs, labels, expectation, expectation.responsibilities)
    if labels.starts.size == labels.allowed.shape[0]:
        return total
    residual = expectation.responsibilities - expectation.probabilities
    several = labels.sizes > 1
    for rows in _blocks(designs, labels, several):
        points = _points(labels, rows)
        score = _scaled(designs, points, residual)
        local = np.cumsum(labels.sizes[rows]) - labels.sizes[rows]
        mean = np.add.reduceat(
            score * expectation.completion_probabilities[points, None], local, axis=0
        )
        total += score.T @ (score * expectation.weights[points, None])
        # The variance over completions: the mean of squares less the square of the mean.
        total -= mean.T @ (mean * labels.weights[rows, None])
    return total


def _spread(
    designs: Designs, labels: Labels, expectation: LabelExpectation, probabilities: np.ndarray
) -> Float[np.ndarray, "weight weight"]:
    """``sum t (diag q - q q')`` between features, for probabilities q of the components."""
    slots = weight_slices(designs)
    total = np.zeros((slots[-1].stop, slots[-1].stop))
    for rows in _blocks(designs, labels, np.ones(labels.starts.size, dtype=bool)):
        points = _points(labels, rows)
        weights = expectation.weights[points]
        scaled = _scaled(designs, points, probabilities)
        for design, slot in zip(designs, slots, strict=True):
            chosen = design[points]
            total[slot, slot] += chosen.T @ (scaled[:, slot] * weights[:, None])
        # One product gives the off-diagonal blocks, too.
        scaled *= np.sqrt(weights)[:, None]
        total -= scaled.T @ scaled
    return total


def _scaled(
    designs: Designs, points: slice | np.ndarray, factors: np.ndarray
) -> Float[np.ndarray, "chosen weight"]:
    """Features of all weights, (point, weight), times the factor of the weight's component."""
    return np.concatenate(
        [design[points] * factors[points, k, None] for k, design in enumerate(designs)], axis=1
    )


def _blocks(designs: Designs, labels: Labels, chosen: Bool[np.ndarray, " row"]) -> list[np.ndarray]:
    """Chosen rows in blocks of limited size."""
    rows = np.flatnonzero(chosen)
    points_before = np.cumsum(labels.sizes[rows])
    most = max(1, BLOCK_NUMBERS // max(1, weight_slices(designs)[-1].stop))
    if rows.size == 0 or points_before[-1] <= most:
        return [rows] if rows.size else []
    cuts = np.searchsorted(points_before, np.arange(most, points_before[-1], most))
    return [block for block in np.split(rows, cuts) if block.size]


def _points(labels: Labels, rows: np.ndarray) -> slice | np.ndarray:
    """The points of rows; a slice, which copies nothing, where the rows are neighbours."""
    first, sizes = labels.starts[rows], labels.sizes[rows]
    if rows[-1] - rows[0] + 1 == rows.size:
        return slice(int(first[0]), int(first[-1] + sizes[-1]))
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(first, sizes) + offsets


# Rows as complete points, and the features of a point.
#
# The components of this family are no densities of x: adding one quadratic function to all of them
# changes every "marginal" and no :math:`p(c | x)`. So missing cells cannot be integrated out of the
# components. What is valid is
#
# .. math:: p(c | x_o) = \int p(c | x) \, p(x_m | x_o) \, dx_m
#
# with a density of x from a companion mixture that never sees the labels. A row with missing cells
# becomes several points, drawn from that companion.
#
# Features are monomials of degree two, or kernels with training rows. The one-half of a quadratic
# form is not in the features but in the weights: a normal component with mean mu and precision P
# has, up to a constant, :math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} = -P_{ij}`.
#
# See Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR,
# section 2.1 (primal) and 2.4 (kernel).


MAX_FEATURES = 2000  # With more features than this, categorical columns enter without products.
FARTHEST = 1e6
"""Points are clipped to this many standard units from the centre, so that no square overflows."""


def quadratic_basis(n_reals: int, levels: tuple[int, ...]) -> QuadraticBasis:
    """Linearly independent monomials of degree at most two.

    These are the intercept, every coordinate and every product of two. The first ``n_reals``
    coordinates are real columns; the indicators of all levels of the categorical columns follow.
    Products within one categorical column are left out: an indicator is its own square, and two of
    one column are never 1 together. Where all these were more than ``MAX_FEATURES``, products with
    indicators are left out, too.

    >>> quadratic_basis(2, ()).factors.tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, 0], [0, 1], [1, 1]]
    """
    categorical = n_reals + np.repeat(np.arange(len(levels)), levels)
    column = np.concatenate([np.arange(n_reals), categorical]).astype(np.intp)
    multiplied = column.size if has_all_products(n_reals, levels) else n_reals
    first, second = np.triu_indices(multiplied)
    included = (column[first] != column[second]) | ((first == second) & (first < n_reals))
    linear = np.column_stack([np.full(column.size, -1), np.arange(column.size)])
    products = np.column_stack([first[included], second[included]])
    return QuadraticBasis(np.concatenate([[[-1, -1]], linear, products]).astype(np.intp))


def has_all_products(n_reals: int, levels: tuple[int, ...]) -> bool:
    """Whether products with indicators are in the basis: not where they would be too many.

    >>> has_all_products(5, (3, 4)), has_all_products(5, (40, 40))
    (True, False)
    """
    size = n_reals + sum(levels)
    # Beside the intercept there are size linear features and size (size + 1) / 2 products.
    return not levels or size * (size + 3) // 2 < MAX_FEATURES


def standard_points(
    points: Float[np.ndarray, "point coordinate"], units: Standardisation
) -> Float[np.ndarray, "point coordinate"]:
    """Points in standard units, clipped to ``FARTHEST`` from the centre."""
    # Cells that overflow in standard units are infinite, and clipped.
    with np.errstate(over="ignore"):
        return np.clip(units.forward(points), -FARTHEST, FARTHEST)


def numbers_of(subset: QuadraticBasis, basis: QuadraticBasis) -> Int[np.ndarray, " feature"]:
    """Index in ``basis`` of every feature of ``subset``.

    >>> numbers_of(QuadraticBasis(np.array([[-1, 1], [0, 1]])), quadratic_basis(2, ())).tolist()
    [2, 4]
    """
    number_of = {tuple(pair): number for number, pair in enumerate(basis.factors.tolist())}
    return np.array([number_of[tuple(pair)] for pair in subset.factors.tolist()], dtype=np.intp)


# The prior of the weights: precisions as constants, or learned with them.
#
# .. math:: \log p(w | \alpha) = \tfrac12 \sum_h (\log \alpha_h - \alpha_h w_h^2 - \log 2\pi)
#
# Under a horseshoe the free variables are the standard weights
# :math:`z_h = \alpha_h^{1/2} w_h`: with w itself free, the density would grow without
# bound where scales and weights vanish together.


Values = Mapping[str, np.ndarray]


class WeightPrior(ABC):
    """The prior of the weights, in the free variables that it is declared with."""

    def __init__(self, n_weights: int) -> None:
        self._dims, self._shape = (names.COEFFICIENT,), (n_weights,)
        self._weights = self._variable(names.COEFFICIENTS, "identity")

    def _variable(self, name: str, transform: Transform) -> Variable:
        """A variable with one entry a weight."""
        return Variable(name, self._dims, self._shape, transform)

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """Free variables in the order of the coordinates: of the precisions, then the weights."""

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """The weights, where they are not free themselves."""
        return ()

    def weights(self, values: Values) -> Float[np.ndarray, "*draws weight"]:
        """The weights w at values of the free variables, of one point or many."""
        return values[names.COEFFICIENTS]

    @abstractmethod
    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Log density of the free variables, and gradients of the log posterior.

        The density is in nats, without Jacobian. The gradient of the log likelihood is given in
        the weights w. The result's gradients are in the variables that are real, and in the logs
        of those that are positive.
        """

    @abstractmethod
    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """Values of the free variables that give ``weights``."""


class HeldPrecisions(WeightPrior):
    """Precisions alpha as constants."""

    def __init__(self, precisions: Float[np.ndarray, " weight"], n_weights: int) -> None:
        super().__init__(n_weights)
        self._alpha = precisions

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: the weights."""
        return (self._weights,)

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Log density ``N(w; 0, 1 / alpha)`` and gradient of the log posterior in w."""
        value, gradient = _normal(values[names.COEFFICIENTS], self._alpha)
        return value, {names.COEFFICIENTS: likelihood_gradient + gradient}

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """Value of the only variable, ``weights``."""
        return {names.COEFFICIENTS: weights}


class GammaWeights(WeightPrior):
    """Normal weights, whose precisions have a Gamma prior."""

    def __init__(self, prior: GammaPrecisions, n_weights: int) -> None:
        super().__init__(n_weights)
        self._prior = prior

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: precisions, weights."""
        return (self._variable(names.COEFFICIENT_PRECISIONS, "log"), self._weights)

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Log density of w given alpha and of alpha, and gradients in w and log alpha."""
        w, alpha = values[names.COEFFICIENTS], values[names.COEFFICIENT_PRECISIONS]
        a, b = self._prior.shape, self._prior.rate
        value, gradient = _normal(w, alpha)
        constant = a * np.log(b) - gammaln(a)
        value += float((constant + (a - 1) * np.log(alpha) - b * alpha).sum())
        return value, {
            names.COEFFICIENTS: likelihood_gradient + gradient,
            # In log alpha: 1/2 of the normal, a - 1 of the gamma, and no Jacobian yet.
            names.COEFFICIENT_PRECISIONS: a - 0.5 - (b + 0.5 * w**2) * alpha,
        }

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """``weights``, and precisions at their conditional mean ``(a + 1/2) / (b + w^2 / 2)``."""
        mean = (self._prior.shape + 0.5) / (self._prior.rate + 0.5 * weights**2)
        return {names.COEFFICIENT_PRECISIONS: mean, names.COEFFICIENTS: weights}


class HorseshoeWeights(WeightPrior):
    """Standard normal variables times half-Cauchy scales, which a slab bounds."""

    def __init__(self, prior: HorseshoePrecisions, n_weights: int) -> None:
        super().__init__(n_weights)
        self._prior = prior

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: global scale, local scales, standard weights z."""
        return (
            Variable(names.GLOBAL_SCALE, (), (), "log"),
            self._variable(names.LOCAL_SCALES, "log"),
            self._variable(names.STANDARD_COEFFICIENTS, "identity"),
        )

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Weights w, a function of scales and z."""
        return (self._weights,)

    def weights(self, values: Values) -> Float[np.ndarray, "*draws weight"]:
        """Standard weights times their prior standard deviations."""
        return values[names.STANDARD_COEFFICIENTS] * self._deviations(values)[0]

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Log density of half-Cauchy scales and standard normal z, and gradients."""
        z = values[names.STANDARD_COEFFICIENTS]
        deviations, elasticity = self._deviations(values)
        through = likelihood_gradient * z * elasticity
        overall, overall_gradient = _half_cauchy(values[names.GLOBAL_SCALE], self._prior.scale)
        local, local_gradient = _half_cauchy(values[names.LOCAL_SCALES], 1.0)
        normal = -0.5 * float((z**2).sum() + z.size * np.log(2 * np.pi))
        return normal + overall + local, {
            names.GLOBAL_SCALE: np.asarray(through.sum() + overall_gradient),
            names.LOCAL_SCALES: through + local_gradient,
            names.STANDARD_COEFFICIENTS: likelihood_gradient * deviations - z,
        }

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """The global scale at its median, local scales such that the weights are typical."""
        scale = self._prior.scale
        values = {
            names.GLOBAL_SCALE: np.asarray(scale),
            names.LOCAL_SCALES: np.maximum(np.abs(weights) / scale, 0.1),
        }
        return values | {names.STANDARD_COEFFICIENTS: weights / self._deviations(values)[0]}

    def _deviations(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Prior standard deviations of the weights, and their gradients in the log of a scale."""
        reach = values[names.GLOBAL_SCALE][..., None] * values[names.LOCAL_SCALES]
        deviations = (reach**-2 + self._prior.slab**-2) ** -0.5
        return deviations, deviations**3 / reach**2


LEARNED: Final = {GammaPrecisions: GammaWeights, HorseshoePrecisions: HorseshoeWeights}
"""The prior of the weights under each prior of their precisions."""


def weight_prior(specification: SDGMSpecification) -> WeightPrior:
    """The prior of the weights: precisions as constants, or learned."""
    prior: Any = specification.precisions
    return LEARNED.get(type(prior), HeldPrecisions)(prior, specification.n_weights)


def _normal(w: np.ndarray, alpha: np.ndarray) -> tuple[float, np.ndarray]:
    """Log density of normal weights, and its gradient in them."""
    return 0.5 * float((np.log(alpha / (2 * np.pi)) - alpha * w**2).sum()), -alpha * w


def _half_cauchy(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Log density of positive variables, and its gradients in their logs."""
    square = (x / scale) ** 2
    value = float((np.log(2 / (np.pi * scale)) - np.log1p(square)).sum())
    return value, np.asarray(-2 * square / (1 + square))


def learned_specification(
    component_class: tuple[int, ...], n_features: int, prior: PrecisionPrior
) -> SDGMSpecification:
    """Unpruned specification with equal component probabilities and learned precisions.

    No component is fixed at zero. The prior of the weights makes the posterior proper, and
    without a reference component those of a class stay exchangeable.
    """
    classes = np.asarray(component_class, dtype=np.intp)
    return SDGMSpecification(
        classes,
        1.0 / np.bincount(classes)[classes],
        np.repeat(np.arange(classes.size), n_features),
        np.tile(np.arange(n_features), classes.size),
        prior,
    )


def learned_weights(
    parameters: SDGMParameters, specification: SDGMSpecification
) -> Float[np.ndarray, " weight"]:
    """Weights of the unpruned model with the class probabilities of a sparse point.

    A pruned component becomes a copy of a remaining component of its class. The intercepts,
    feature 0, correct for the copies and for unequal component probabilities.
    """
    n_features = specification.n_weights // specification.n_components
    sparse = parameters.dense(n_features)
    dense = np.empty((specification.n_components, n_features))
    for label in np.unique(specification.component_class):
        slots = np.flatnonzero(specification.component_class == label)
        survivors = np.flatnonzero(parameters.component_class == label)
        source = np.resize(survivors, slots.size)
        copies = np.bincount(source, minlength=parameters.n_components)[source]
        dense[slots] = sparse[:, source].T
        dense[slots, 0] += np.log(parameters.proportions[source] * slots.size / copies)
    return dense.reshape(-1)


# Log posterior of the weights, in the unconstrained coordinates of the declared graph.


class SDGMLogPosterior(LogPosterior):
    r"""Log posterior of the weights given labelled rows.

    .. math:: \log p(w, \alpha | y, x) = \sum_n v_n \log p(y_n | x_n, w)
        + \log p(w | \alpha) + \log p(\alpha) + \text{const}

    Component probabilities are constants; so are the precisions, unless the specification has a
    prior for them.
    """

    def __init__(
        self,
        rows: CompletedRows,
        basis: Basis,
        units: Standardisation,
        specification: SDGMSpecification,
    ) -> None:
        self.specification = specification
        self._prior = weight_prior(specification)
        self._basis, self._units = basis, units
        self._log_proportions = np.log(specification.proportions)
        self._designs = self._features(rows.points)
        self._labels = Labels(
            np.repeat(rows.allowed[:, specification.component_class], rows.sizes, axis=0),
            rows.starts,
            rows.weights,
        )

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights of the rows."""
        return self._labels.weights

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables of the weights and, where they are learned, of the precisions."""
        return self._prior.variables

    @cached_property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """The weights, where they are a function of the free variables."""
        return self._prior.deterministic_variables

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Components with the same number are exchangeable.

        Those of a class are, unless constant precisions distinguish them: then every component has
        a number of its own.
        """
        if isinstance(self.specification.precisions, np.ndarray):
            return np.arange(self.specification.n_components)
        return self.specification.component_class

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's.

        ``jacobian`` adds the log determinant of the transforms.
        """
        values = self.constrained(theta)
        expectation = self._expect(self._prior.weights(values))
        likelihood_gradient = weight_gradient(self._designs, expectation.logit_gradient)
        prior, gradients = self._prior.log_density(values, likelihood_gradient)
        value = expectation.log_likelihood + prior
        gradient = np.concatenate([gradients[v.name].reshape(-1) for v in self.variables])
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            value, gradient = value + extra, gradient + extra_gradient
        return value, gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability of every row's known label, in nats."""
        return self._expect(self._weights(theta)).pointwise

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Logits of the components at the first point of every row.

        They are ``log p(c, m | x_n)`` up to a constant per row.
        """
        weights = self._weights(theta)
        logits = to_logits(self._designs, weights, self._log_proportions)
        return logits[self._labels.starts]

    def predictor(
        self,
        points: Float[np.ndarray, "point coordinate"],
        starts: Int[np.ndarray, " obs"],
        log_density: Float[np.ndarray, " obs"],
        temperature: float = 1.0,
    ) -> Predictor:
        """Prepare new rows for predictions at many points of the posterior.

        ``points`` are completions of the rows in the user's units, ``starts`` the first of
        every row, ``log_density`` is ``log p(x_o)``. Class log probabilities will be multiplied
        by ``temperature`` later: that gives the mean of the completions' calibrated ones.
        """
        designs = self._features(points)

        def predict(theta: np.ndarray) -> ClassPrediction:
            weights = self._weights(theta)
            logits = to_logits(designs, weights, self._log_proportions)
            by_class = class_log_probabilities(logits, self.specification.component_class)
            calibrated = log_softmax(temperature * by_class, axis=1)
            summed = np.logaddexp.reduceat(calibrated, starts, axis=0)
            return ClassPrediction(log_softmax(summed / temperature, axis=1), log_density)

        return OneByOne(predict)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of the deterministic variables by name, at one point or many."""
        if not self.deterministic_variables:
            return {}
        return {names.COEFFICIENTS: self._prior.weights(self.constrained(thetas))}

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: component k of the result is ``order[k]``."""
        members = [np.flatnonzero(self.specification.component == k) for k in order]
        weight_order = np.concatenate(members)
        result = theta.copy()
        for variable, positions in coordinates.slices(self.variables):
            if variable.dims:
                result[positions] = theta[positions][weight_order]
        return result

    def _features(self, points: np.ndarray) -> Designs:
        """Design matrix of every component, (point, weight of the component)."""
        phi = self._basis.at(standard_points(points, self._units))
        component, feature = self.specification.component, self.specification.feature
        return tuple(
            phi[:, feature[component == k]] for k in range(self.specification.n_components)
        )

    def _weights(self, theta: np.ndarray) -> np.ndarray:
        """Weights w at coordinates ``theta``."""
        return self._prior.weights(self.constrained(theta))

    def _expect(self, weights: np.ndarray) -> LabelExpectation:
        """E-step of the labels at ``weights``."""
        logits = to_logits(self._designs, weights, self._log_proportions)
        return expect(self._labels, logits)

    def pack(self, weights: Float[np.ndarray, " weight"]) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of ``weights``, with precisions that match them.

        Where precisions are learned, they are at their conditional mean under a Gamma prior, and
        scales are as large as the weights under a horseshoe.
        """
        return coordinates.to_unconstrained(self.variables, self._prior.start(weights))
