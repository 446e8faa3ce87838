"""Dissimilarities of rows: Gower's, a metric of scikit-learn, or a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Real
from numba.extending import is_jitted
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import distance_metrics
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from bayesrbf.base.records import TOLERANCE, Requirements, stored, within
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.families.median_lvq.compiled import every_pair

# Rows that are compared whole.


Metric = str | Callable[[Any, Any], float]

PRECOMPUTED: Final = "precomputed"
METRICS: Final = tuple(
    sorted(
        {
            *distance_metrics(),
            "sqeuclidean",
            "chebyshev",
            "canberra",
            "braycurtis",
            "correlation",
            "hamming",
        }
        - {PRECOMPUTED}
    )
)
"""Metrics that depend on the two rows alone, and not on a whole table."""


@stored
class WholeRows:
    """A reader of rows that are compared whole: vectors, or rows of a square matrix.

    The rows of the square matrix are their dissimilarities to the training rows.
    """

    metric: Metric

    def read(self, X: Any, shell: BaseEstimator, *, reset: bool) -> Observations:
        """Observations without cells, their rows in ``whole``."""
        array = self._array(X, shell, reset=reset)
        cells, no_codes = np.empty((len(array), 0)), np.empty((len(array), 0), dtype=np.intp)
        return Observations(
            cells, no_codes, np.full(len(array), -1), np.ones(len(array)), whole=array
        )

    def _array(self, X: Any, shell: BaseEstimator, *, reset: bool) -> np.ndarray:
        """Rows as an array that the metric accepts."""
        if self.metric == PRECOMPUTED:
            return self._matrix(X, shell, reset=reset)
        if not callable(self.metric) and self.metric not in METRICS:
            raise ValueError(
                f"{type(shell).__name__}(metric=...) must be 'gower', 'precomputed', a callable "
                f"or one of {', '.join(METRICS)}; received {self.metric!r}."
            )
        holes = callable(self.metric) or self.metric == "nan_euclidean"
        rows: np.ndarray = validate_data(
            shell,
            X,
            reset=reset,
            dtype=None if callable(self.metric) else np.float64,
            ensure_all_finite="allow-nan" if holes else True,
        )
        return rows

    def _matrix(self, X: Any, shell: BaseEstimator, *, reset: bool) -> np.ndarray:
        """A precomputed matrix, checked: square when fitting, else one column a training row."""
        matrix: np.ndarray = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", input_name="X"
        )
        # Columns of new rows that are no exemplar may be NaN; columns in use are checked later.
        if reset or matrix.shape[1] != shell.n_features_in_:
            assert_all_finite(matrix, input_name="X")
        validate_data(shell, X, reset=reset, skip_check_array=True)
        if reset and matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                "X must be a square matrix of dissimilarities of the training rows under "
                f"metric='precomputed'; received shape {matrix.shape}. For a table of features "
                "use metric='gower' or another metric."
            )
        return matrix


# Dissimilarities of rows by a metric that scikit-learn knows, or by a callable.


def pairwise(
    rows: np.ndarray, reference: np.ndarray, metric: Metric, dtype: type[np.floating] = np.float64
) -> Float[np.ndarray, "row reference"]:
    """Dissimilarities ``d(rows[n], reference[m])``, computed a block of rows at a time.

    The metric is a name that scikit-learn knows, or a function of two rows that gives a number; it
    need not be symmetric. One that ``numba.njit`` compiled is called from compiled code, where the
    rows are numbers.

    >>> pairwise(np.array([["ab"], ["b"]]), np.array([["abc"]]),
    ...          lambda a, b: abs(len(a[0]) - len(b[0])))
    array([[1.],
           [2.]])
    """
    result = np.empty((len(rows), len(reference)), dtype=dtype)
    for block in in_blocks(len(rows), len(reference)):
        result[block] = _block(rows[block], reference, metric)
    return result


def _block(rows: np.ndarray, reference: np.ndarray, metric: Metric) -> np.ndarray:
    """Dissimilarities of rows to ``reference``; a callable is called for every pair."""
    if not callable(metric):
        return np.asarray(pairwise_distances(rows, reference, metric=metric))
    if is_jitted(metric) and rows.dtype.kind in "biuf":
        return every_pair(rows, reference, metric)
    return np.array([[metric(row, other) for other in reference] for row in rows], dtype=float)


def check_values(values: Real[np.ndarray, "obs row"]) -> None:
    """Raise ValueError for dissimilarities that are missing, infinite or negative."""
    if values.size == 0:
        return
    low, high = values.min(), values.max()
    if low >= 0 and np.isfinite(high):
        return
    faults = {
        "Missing values": np.isnan(values),
        "Negative values": values < 0,
        "Infinite values": np.isinf(values),
    }
    fault = next(name for name, where in faults.items() if where.any())
    row, column = np.unravel_index(int(faults[fault].argmax()), values.shape)
    raise ValueError(
        f"{fault} in data passed to MedianLVQClassifier: dissimilarities must be finite and at "
        f"least 0; received d = {values[row, column]} in row {row}, column {column}."
    )


# Gower's dissimilarity of rows with real and categorical cells and holes.
#
# .. math:: d(x, x') = \frac{1}{D} \sum_j \delta_j(x_j, x'_j)
#
# with :math:`\delta_j = |x_j - x'_j| / \mathrm{range}_j`, at most 1, for a real column, and
# 0 or 1 for equal or different levels.
#
# Where either cell of a column is missing, :math:`\delta_j` is its mean over all pairs of
# training rows. Often such columns are left out instead. Two rows with only one column observed
# in both would then be identical if these cells happen to be equal.
#
# See Gower (1971), A general coefficient of similarity and some of its properties, Biometrics 27.


@stored
class Gower:
    """Ranges and mean differences of the columns of the training rows."""

    ranges: Float[np.ndarray, " feature"]
    """Largest less smallest cell of every real column; 1 where it is 0."""
    real_holes: Float[np.ndarray, " feature"]
    """Mean difference of two training rows in every real column, in ranges, from 0 to 1."""
    code_holes: Float[np.ndarray, " categorical"]
    """Fraction of pairs of training rows whose levels differ."""

    def between(
        self, rows: Observations, reference: Observations, dtype: type[np.floating] = np.float64
    ) -> Float[np.ndarray, "row reference"]:
        """Dissimilarities of rows to ``reference``, from 0 to 1.

        Both are in the user's units; a block of rows is computed at a time.
        """
        result = np.empty((rows.n_obs, reference.n_obs), dtype=dtype)
        for block in in_blocks(rows.n_obs, reference.n_obs):
            result[block] = self._block(rows.take(block), reference)
        return result

    def _block(
        self, rows: Observations, reference: Observations
    ) -> Float[np.ndarray, "row reference"]:
        """Dissimilarities of rows to ``reference``, summed column by column."""
        total = np.zeros((rows.n_obs, reference.n_obs))
        # Cells at both ends of the doubles are infinitely apart, and clipped to 1 below.
        with np.errstate(over="ignore"):
            for x, y, span, hole in zip(
                rows.real.T, reference.real.T, self.ranges, self.real_holes, strict=True
            ):
                # Divided first, because the difference of the cells may overflow.
                difference = np.abs(x[:, None] / span - y / span)
                np.minimum(difference, 1.0, out=difference)
                total += np.where(np.isnan(difference), hole, difference)
        for x, y, hole in zip(rows.codes.T, reference.codes.T, self.code_holes, strict=True):
            missing = (x < 0)[:, None] | (y < 0)
            total += np.where(missing, hole, x[:, None] != y)
        return total / max(1, self.ranges.size + self.code_holes.size)

    def __laws__(self) -> Requirements:
        yield within(self.ranges, 1e-305), "positive ranges"
        holes = self.real_holes, self.code_holes
        yield all(within(hole, 0, 1 + TOLERANCE) for hole in holes), "means from 0 to 1"


def learn_gower(rows: Observations) -> Gower:
    r"""Ranges and mean differences of the columns of weighted training rows, in the user's units.

    With F the distribution function of a column, the mean difference of two rows is
    :math:`\int 2 F (1 - F) dx`, and :math:`1 - \sum_l p_l^2` of levels. Rows do not differ in a
    column without a cell.

    >>> rows = Observations(
    ...     np.array([[0.0], [4.0], [np.nan]]), np.array([[0], [1], [1]]),
    ...     np.zeros(3, int), np.ones(3))
    >>> gower = learn_gower(rows)
    >>> gower.between(rows, rows).round(3)
    array([[0.  , 1.  , 0.75],
           [1.  , 0.  , 0.25],
           [0.75, 0.25, 0.25]])
    """
    reals = [_spread(column, rows.weights) for column in rows.real.T]
    codes = [_diversity(column, rows.weights) for column in rows.codes.T]
    return Gower(
        np.array([span for span, _ in reals], dtype=np.float64),
        np.array([hole for _, hole in reals], dtype=np.float64),
        np.array(codes, dtype=np.float64),
    )


def _spread(column: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Range of the observed cells, and Gini's mean difference as a fraction of the range."""
    seen = ~np.isnan(column)
    order = np.argsort(column[seen], kind="stable")
    values, mass = column[seen][order], weights[seen][order]
    if values.size == 0 or values[0] == values[-1]:
        return 1.0, 0.0
    # The range of cells at both ends of the doubles is mended below.
    with np.errstate(over="ignore"):
        span = float(values[-1] - values[0])
    if not np.isfinite(span):  # the range overflows
        span = float(np.finfo(np.float64).max)
    # Between neighbouring cells F is constant, so the integral of 2 F (1 - F) is a sum.
    below = np.cumsum(mass)[:-1] / mass.sum()
    steps = np.diff(values / span)
    return span, float(min(1.0, 2 * (below * (1 - below)) @ steps))


def _diversity(column: np.ndarray, weights: np.ndarray) -> float:
    """Gini-Simpson index ``1 - sum p^2`` of the observed levels."""
    seen = column >= 0
    if not seen.any():
        return 0.0
    counts = np.bincount(column[seen], weights[seen])
    return float(1 - np.sum((counts / counts.sum()) ** 2))
