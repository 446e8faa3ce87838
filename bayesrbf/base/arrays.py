"""Array functions: stable logarithms, blocks of rows, sums, scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache, reduce, wraps
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logit, ndtri, roots_hermitenorm
from scipy.stats import qmc
from threadpoolctl import ThreadpoolController

from bayesrbf.base.log_posterior import consecutive_slices
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification

# Categorical columns side by side: indicators, log probabilities, counts, draws.


def one_hot(
    codes: Int[np.ndarray, "obs categorical"], levels: tuple[int, ...]
) -> Float[np.ndarray, "obs level"]:
    """Indicators of the observed levels of all categorical columns, side by side.

    A missing code is -1, and a block of zeros.
    """
    indicators = np.zeros((codes.shape[0], sum(levels)))
    offsets = np.cumsum([0, *levels])[:-1]
    rows, columns = np.nonzero(codes >= 0)
    indicators[rows, offsets[columns] + codes[rows, columns]] = 1.0
    return indicators


def log_levels(parameters: MixtureParameters) -> Float[np.ndarray, "component level"]:
    """Log level probabilities of all categorical columns, side by side."""
    by_column = parameters.category_probabilities
    if not by_column:
        return np.zeros((parameters.weights.size, 0))
    return np.log(np.concatenate(by_column, axis=1))


def split_levels(
    counts: np.ndarray, levels: tuple[int, ...]
) -> tuple[Float[np.ndarray, "component _"], ...]:
    """Columns of :func:`one_hot`'s layout, one array for each categorical column."""
    return tuple([counts[:, column] for column in _level_slices(levels)])


@cache
def _level_slices(levels: tuple[int, ...]) -> list[slice]:
    """Slices of the levels of every column, side by side."""
    return consecutive_slices(list(levels))


def draw_categories(
    probabilities: Float[np.ndarray, "row category"], rng: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """Draw one category per row; rows of probabilities sum to one."""
    cumulative = probabilities.cumsum(axis=1)
    # Times the sum, which differs from 1 by rounding.
    uniform = rng.random(len(probabilities)) * cumulative[:, -1]
    drawn = (cumulative <= uniform[:, None]).sum(axis=1)
    # The product may round up to the sum itself, which no category exceeds.
    return np.minimum(drawn, probabilities.shape[1] - 1)


# Sums of what is known by its logarithms, and the class probabilities that they give.


FEW: Final = 8
"""Entries up to which an axis is summed by slices: NumPy's reduction over a short last axis takes
ten times as long."""

MIN_LOG: Final = -700.0
"""Bound of log probabilities, in nats, before log odds: exp(-700) is near the smallest double."""


def component_log_weights(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, " component"]:
    """Joint log probability ``log pi_c + log w_k`` of class and component in nats."""
    classes = np.asarray(specification.component_class)
    return np.log(parameters.class_probabilities)[classes] + np.log(parameters.weights)


def log_sum_exp(
    log_values: Float[np.ndarray, "*shape"], axis: int
) -> tuple[Float[np.ndarray, "*reduced"], Float[np.ndarray, "*shape"]]:
    """Log sums ``log sum exp x`` along an axis, and the softmax ``exp(x - log sum exp x)``.

    The log values are finite, or some of them minus infinity.
    """
    # The sum of a single entry is that entry: no logarithm, and no rounding.
    if log_values.shape[axis] == 1:
        return np.squeeze(log_values, axis=axis).copy(), np.ones_like(log_values)
    # The largest entry becomes exp(0): the sum neither overflows nor is 0.
    top = reduced(np.maximum, log_values, axis)
    weights = log_values - _along(top, axis)
    np.exp(weights, out=weights)
    sums = reduced(np.add, weights, axis)
    weights /= _along(sums, axis)
    return np.asarray(np.log(sums) + top), weights


def log_softmax(log_values: Float[np.ndarray, "*shape"], axis: int) -> Float[np.ndarray, "*shape"]:
    """Log values less the log of their sum, ``x - log sum exp x``, along an axis."""
    shifted = log_values - _along(reduced(np.maximum, log_values, axis), axis)
    sums = reduced(np.add, np.exp(shifted), axis)
    shifted -= _along(np.asarray(np.log(sums)), axis)
    return shifted


def keeping(
    log_p: Float[np.ndarray, "*rows label"],
    before: Float[np.ndarray, "*rows label"],
    offsets: Float[np.ndarray, " label"] | None,
) -> Float[np.ndarray, "*rows label"]:
    """Log probabilities ``log_p`` in which fixed classes have their probabilities of ``before``.

    A class is fixed where its offset is not NaN. Its probability is ``softmax(before + offset)``
    over all classes, with offset 0 for free classes, which share the remaining probability in the
    proportions of ``log_p``. ``log_p`` as it is if ``offsets`` is None.

    >>> offsets = np.array([np.nan, np.nan, 0.0])
    >>> np.exp(keeping(np.log([0.9, 0.05, 0.05]), np.log([0.2, 0.3, 0.5]), offsets)).round(3)
    array([0.474, 0.026, 0.5  ])
    """
    if offsets is None:
        return log_p
    free = np.isnan(offsets)
    result = log_softmax(before + np.where(free, 0.0, offsets), axis=-1)
    rest, _ = log_sum_exp(result[..., free], axis=-1)
    result[..., free] = log_softmax(log_p[..., free], axis=-1) + rest[..., None]
    return result


def log_odds(
    probabilities: Float[np.ndarray, "*rows label"], least: float
) -> Float[np.ndarray, "*rows label"]:
    """Log odds of each class against all others, from probabilities in [``least``, 1 - ``least``].

    >>> log_odds(np.array([0.5, 0.9, 1.0]), 1e-4).round(2)
    array([0.  , 2.2 , 9.21])
    """
    return np.asarray(logit(np.clip(probabilities, least, 1 - least)))


def to_log_odds(
    log_probabilities: Float[np.ndarray, "*rows label"],
) -> Float[np.ndarray, "*rows label"]:
    """Log odds ``log p_c - log sum_b p_b`` of each class c over b != c; both logs bounded.

    Nothing is taken from one, so that classes that are nearly sure keep their digits.

    >>> to_log_odds(np.log([0.2, 0.3, 0.5])).round(3)
    array([-1.386, -0.847,  0.   ])
    """
    bounded = np.maximum(log_probabilities, MIN_LOG)
    n_classes = bounded.shape[-1]
    other_classes = [np.delete(bounded, label, axis=-1) for label in range(n_classes)]
    rest = [np.logaddexp.reduce(other, axis=-1, initial=MIN_LOG) for other in other_classes]
    return bounded - np.stack(rest, axis=-1)


def reduced(
    function: np.ufunc, values: Float[np.ndarray, "*shape"], axis: int
) -> Float[np.ndarray, "*reduced"]:
    """``function.reduce`` along an axis that is not empty."""
    if axis == 0 or values.shape[axis] > FEW:
        return np.asarray(function.reduce(values, axis=axis))
    if axis == -1:
        return np.asarray(reduce(function, [values[..., i] for i in range(values.shape[-1])]))
    return np.asarray(reduce(function, np.moveaxis(values, axis, 0)))


def _along(values: Float[np.ndarray, "*reduced"], axis: int) -> Float[np.ndarray, "*_"]:
    """Reduced values with their axis restored, to broadcast along it."""
    if axis == -1:
        return values[..., None]
    return values if axis == 0 else np.expand_dims(values, axis)


def class_log_joint(
    log_joint: Float[np.ndarray, "*batch component"], class_slices: tuple[slice, ...]
) -> tuple[Float[np.ndarray, "*batch label"], Float[np.ndarray, "*batch component"]]:
    """Sum components to classes: ``log p(x_n, c)`` in nats, and ``p(k | x_n, c)``."""
    by_class = np.empty((*log_joint.shape[:-1], len(class_slices)))
    responsibilities = np.ones_like(log_joint)
    for label, components in enumerate(class_slices):
        if components.stop - components.start == 1:
            by_class[..., label] = log_joint[..., components.start]
        else:
            by_class[..., label], responsibilities[..., components] = log_sum_exp(
                log_joint[..., components], axis=-1
            )
    return by_class, responsibilities


def to_prediction(log_joint: Float[np.ndarray, "*draws obs label"]) -> ClassPrediction:
    """Log class probabilities and log density ``log p(x_o)`` of log joints, both in nats."""
    log_density, _ = log_sum_exp(log_joint, axis=-1)
    return ClassPrediction(log_joint - log_density[..., None], log_density)


def class_shares(
    labels: Int[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"], n_classes: int
) -> Float[np.ndarray, " label"]:
    """Weighted frequencies of the classes among the labelled rows, without smoothing.

    >>> class_shares(np.array([0, 1, -1, 1]), np.array([1.0, 1.0, 5.0, 2.0]), 2)
    array([0.25, 0.75])
    """
    known = labels >= 0
    counts = np.bincount(labels[known], weights[known], minlength=n_classes)
    return counts / counts.sum()


def at_prevalence(
    log_probabilities: Float[np.ndarray, "*rows label"],
    log_ratio: Float[np.ndarray, " label"] | float,
) -> Float[np.ndarray, "*rows label"]:
    r"""Class log probabilities where the prevalences are q and not the training rows' p.

    .. math:: q(c | x) \propto \frac{q_c}{p_c} \, p(c | x)

    ``log_ratio`` is ``log(q / p)``. The rule holds for the final probability: where that is a mean
    over missing cells, modes or draws, the factor is applied to the mean.

    >>> log_ratio = np.log([0.9 / 0.5, 0.1 / 0.5])
    >>> np.exp(at_prevalence(np.log([[0.5, 0.5], [0.1, 0.9]]), log_ratio)).round(2)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """
    return log_softmax(log_probabilities + log_ratio, axis=-1)


# Numbers that stand for draws: scrambled Sobol points, and the nodes of a quadrature.


_NODES, _MASSES = roots_hermitenorm(16)
QUADRATURE = _NODES, _MASSES / _MASSES.sum()
"""Gauss-Hermite nodes and weights, which sum to one, for ``E[f(u)]`` of a standard normal u."""
_EVEN = np.linspace(-6.0, 6.0, 385)
_EVEN_MASSES = np.exp(-0.5 * _EVEN**2)
EVEN_QUADRATURE = _EVEN, _EVEN_MASSES / _EVEN_MASSES.sum()
"""Equally spaced nodes and weights for functions with jumps, such as rounding, which need many."""


@lru_cache(maxsize=32)
def uniforms(
    n_points: int, dimension: int, replicate: int = 0
) -> Float[np.ndarray, "point dimension"]:
    """Points that fill the unit cube evenly, strictly between 0 and 1; read-only.

    ``n_points`` is a power of two. ``replicate`` numbers the scrambling: the spread of estimates
    over replicates is their error.

    >>> points = uniforms(64, 2)
    >>> bool(abs(points.mean() - 0.5) < 0.01)
    True
    """
    if dimension == 0:
        return np.empty((n_points, 0))
    points = qmc.Sobol(dimension, rng=np.random.default_rng(replicate)).random(n_points)
    # A scrambled point can be 0, whose normal number is infinite.
    points = np.clip(points, 2.0**-40, 1 - 2.0**-40)
    points.setflags(write=False)
    return points


def normals(
    n_points: int, dimension: int, replicate: int = 0
) -> Float[np.ndarray, "point dimension"]:
    """Points of :func:`uniforms` as standard normal numbers, ``Phi^-1(u)``."""
    return np.asarray(ndtri(uniforms(n_points, dimension, replicate)))


# Doubles with fewer digits, and numbers that only rounding tells apart.


MIN_SINGLE, MAX_SINGLE = 1e-30, 1e30
"""Range of magnitudes in which single precision has all its digits."""
MIN_DISPUTED_PROBABILITY: Final = 1e-4
"""Probabilities are clipped to [1e-4, 1 - 1e-4] before log odds; smaller differences do not count
as disagreement."""


def single_digits(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Doubles rounded to single precision within its range; -0.0 becomes 0.0."""
    held = (np.abs(values) > MIN_SINGLE) & (np.abs(values) < MAX_SINGLE)
    single = np.where(held, values, 0.0).astype(np.float32).astype(np.float64)
    # Adding 0.0 takes the sign off -0.0.
    rounded: Float[np.ndarray, "*shape"] = np.where(held, single, values + 0.0)
    return rounded


ROUNDING_OF_RANKS: Final = 1e-10
"""Difference, relative to max(1, |x|), that rounding may explain."""


def ranked(
    values: Float[np.ndarray, " item"], rounding: float = ROUNDING_OF_RANKS
) -> Int[np.ndarray, " item"]:
    """Indices that sort the values in falling order; values equal but for rounding stay in order.

    NaN comes last.

    >>> ranked(np.array([1.0, 3.0, 3.0 + 1e-14, 7.0])).tolist()
    [3, 1, 2, 0]
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    # The rounding is relative for large values and absolute for small ones.
    least = falling[:-1] - rounding * np.maximum(1.0, np.abs(falling[:-1]))
    lower = ~(falling[1:] >= least)  # so that NaN is lowest
    group = np.cumsum(np.append(False, lower)[: values.size])
    return order[np.lexsort([order, group])]


# One BLAS thread inside a fit: the matrices are small, and threads are used over rows.


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit the loaded BLAS to one thread within a block."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


def on_one_blas_thread[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Limit the loaded BLAS to one thread within a function.

    Threads that wait for each other spin: beside other work on two cores, a fit of hundreds of
    small products took fifty times as long.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The loaded BLAS, looked up once: the search costs more than a small fit."""
    return ThreadpoolController()


# Searches along a step.


HALVINGS: Final = 30
"""Maximum number of halvings of a step, after which the search ends."""
ROUNDING: Final = 1e-13
"""Relative rounding error of an objective, a sum over rows: 450 units in the last place."""


def shorter_step[S](
    objective: Callable[[Float[np.ndarray, " coordinate"]], tuple[float, S]],
    start: Float[np.ndarray, " coordinate"],
    step: Float[np.ndarray, " coordinate"],
    value: float,
    rise: float,
) -> tuple[Float[np.ndarray, " coordinate"], float, S] | None:
    """First of ever shorter steps that raises an objective sufficiently (Armijo), or None.

    ``rise`` is the slope of the objective along the whole step. A rise below the rounding error of
    the objective is accepted: the gradient knows it to more digits. Returned are the point, the
    value there, and the second result of the objective.

    >>> parabola = lambda x: (-float(x @ x), None)
    >>> shorter_step(parabola, np.array([1.0]), np.array([-3.0]), -1.0, 6.0)
    (array([-0.5]), -0.25, None)
    """
    # Rounding grows with the terms of the objective, which cancel where its value is near 0.
    hidden = ROUNDING * max(1.0, abs(value))
    for halving in range(HALVINGS):
        size = 0.5**halving
        trial = start + size * step
        reached, details = objective(trial)
        # Armijo's condition: a ten-thousandth of the linear rise suffices, so few steps are halved.
        if np.isfinite(reached) and reached >= value + 1e-4 * size * rise - hidden:
            return trial, reached, details
    return None


# Proper scores of class probabilities, row by row, and their means over folds.


MIN_SCORED_PROBABILITY = (
    1e-15  # Smallest probability that is scored: a zero makes every mean infinite.
)

Probabilities = Float[np.ndarray, "obs label"]
Labels = Int[np.ndarray, " obs"]
Weights = Float[np.ndarray, " obs"]


def log_scores(log_probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Log score of every row, in nats: ``log p_n[y_n]``."""
    return np.asarray(log_probabilities[np.arange(labels.size), labels])


def log_loss(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Minus the log score of a row in nats; its probability is ``MIN_SCORED_PROBABILITY`` at least.

    >>> log_loss(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.693, 0.105])
    """
    return -log_scores(np.log(np.clip(probabilities, MIN_SCORED_PROBABILITY, 1.0)), labels)


def brier(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Brier score of every row: ``(p - y)^2`` for two classes, and else the sum over the classes.

    For two classes it is between 0 and 1, for more between 0 and 2.

    >>> brier(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.25, 0.01])
    """
    squared_error = ((probabilities - class_indicators(probabilities, labels)) ** 2).sum(1)
    return np.asarray(squared_error / 2 if probabilities.shape[1] == 2 else squared_error)


def correct(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Whether the most probable class is the true one, 1 or 0; the mean is the accuracy.

    It is 1/m where m classes tie at the top and the true one is among them.

    >>> correct(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1]))
    array([0.5, 1. ])
    """
    top = probabilities == probabilities.max(1, keepdims=True)
    return np.asarray(top[np.arange(labels.size), labels] / top.sum(1))


def mean_and_error(values: Float[np.ndarray, " obs"], weights: Weights) -> tuple[float, float]:
    r"""Weighted mean of rows and its standard error.

    .. math:: m = \frac{\sum_n v_n x_n}{\sum_n v_n}, \quad
       \mathrm{se} = \frac{\sqrt{\sum_n v_n (x_n - m)^2}}{\sum_n v_n}

    A row of weight 2 is the row twice.

    >>> mean_and_error(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    (2.0, 0.5)
    """
    total = weights.sum()
    mean = weights @ values / total
    return float(mean), float(np.sqrt(weights @ (values - mean) ** 2) / total)


def mean_over_folds(
    losses: Float[np.ndarray, " obs"],
    folds: Int[np.ndarray, " obs"],
    weights: Weights | None = None,
) -> tuple[float, float]:
    """Weighted mean of row losses and its standard error from the spread of the fold means.

    ``m = sum_n v_n l_n / sum_n v_n`` and ``se^2 = F/(F-1) sum_f q_f^2 (m_f - m)^2``
    with ``q_f`` the share of fold f in the total weight: for folds of one size the
    standard deviation of the fold means over ``sqrt(F)``. It is NaN for a single fold.

    See Cochran (1977), Sampling techniques, section 6.11 (ratio estimate), for the standard
    error of a mean over clusters of unequal size.

    >>> mean, error = mean_over_folds(np.array([1.0, 3.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    >>> mean, error
    (2.5, 0.5)
    """
    weights = np.ones_like(losses) if weights is None else weights
    _, fold = np.unique(folds, return_inverse=True)
    mass = np.bincount(fold, weights)
    mean = float(weights @ losses / weights.sum())
    if mass.size == 1:
        return mean, float("nan")
    deviations = (np.bincount(fold, weights * losses) - mass * mean) / weights.sum()
    return mean, float(np.sqrt(mass.size / (mass.size - 1) * (deviations**2).sum()))


def class_indicators(
    probabilities: Probabilities, labels: Labels
) -> Float[np.ndarray, "obs label"]:
    """Indicator of the true class, in the shape of the probabilities."""
    indicator = np.zeros_like(probabilities)
    indicator[np.arange(labels.size), labels] = 1.0
    return indicator
