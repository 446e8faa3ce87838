r"""Matrix scaling after the pool, of three and more classes.

One temperature cannot say that members take the second class for the third. With the class
probabilities q of the pool, the missing fraction h of a row, and K classes,

.. math:: p(c | x_o) \propto q_c \, \exp\bigl((1 - h)^8 \, (W z + b)_c\bigr), \qquad
    z = \log \max(q, 10^{-4}),

.. math:: W, b = \operatorname{argmax} \sum_n v_n \log p_n[y_n]
    - \frac K 2 \Bigl(|b|^2 + \sum_c W_{cc}^2\Bigr)
    - \frac{K (K - 1)}{2} \sum_{c \neq d} W_{cd}^2.

The penalty is that of structured matrix scaling (Berta and others, 2025, arXiv 2511.03685), in nats
of all rows together. Where nothing is to be gained, rows of the fit gain at least half a nat for
every effective parameter: with their gain G and k effective parameters, W and b are multiplied by
:math:`\max(0, 1 - k / 2G)`. Two classes have a temperature alone.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.base.arrays import keeping, log_softmax, on_one_blas_thread, one_hot
from bayesrbf.base.records import ANY_NUMBER, MAX_LOG, Requirements, stored, within

if TYPE_CHECKING:
    from bayesrbf.fit.held_out import HeldOut

MIN_LOG_PROBABILITY: Final = float(np.log(1e-4))
"""Log probabilities are clipped below: one row that the pool found impossible sets no matrix."""
EXPONENT: Final = 8
"""Decay of the matrix with the missing fraction. It is fitted to rows as they came; with the
exponents 1 and 2, held-out rows of 16 tables with a quarter of the cells masked lost by it."""

MIN_NEAR_COMPLETE: Final = 0.5
"""Mean of the factor over the rows of a class, at least: complete rows must show all classes."""


@stored
class MatrixScaling:
    """Matrix and offsets of the classes."""

    matrix: Float[np.ndarray, "label label"]
    """Rows and columns of a class that was never held out are 0."""
    offsets: Float[np.ndarray, " label"] = field(metadata=ANY_NUMBER)
    """Offsets in nats; NaN of a class that was never held out, which keeps its probability."""

    @property
    def n_judged(self) -> int:
        """Number of classes held out: K of the penalty."""
        return int((~np.isnan(self.offsets)).sum())

    def scaled(
        self, log_q: Float[np.ndarray, "row label"], missing_fraction: Float[np.ndarray, " row"]
    ) -> Float[np.ndarray, "row label"]:
        """Class log probabilities of rows in nats, from log probabilities of the pool."""
        judged = ~np.isnan(self.offsets)
        z = np.maximum(log_softmax(log_q[:, judged], axis=1), MIN_LOG_PROBABILITY)
        shift = z @ self.matrix[np.ix_(judged, judged)].T + self.offsets[judged]
        log_p = log_q.copy()
        log_p[:, judged] += (1 - missing_fraction[:, None]) ** EXPONENT * shift
        return keeping(log_p, log_q, np.where(judged, np.nan, 0.0))

    def __laws__(self) -> Requirements:
        n_classes, judged = self.offsets.size, ~np.isnan(self.offsets)
        yield self.n_judged > 2, "three classes held out"
        yield self.matrix.shape == (n_classes, n_classes), "a row and a column of every class"
        yield within(abs(self.matrix), 0, MAX_LOG), "finite entries"
        yield within(abs(self.offsets[judged]), 0, MAX_LOG), "finite offsets"


@on_one_blas_thread
def fit_matrix_scaling(
    log_q: Float[np.ndarray, "held label"], held: HeldOut
) -> MatrixScaling | None:
    """Fit matrix and offsets to the labels of held-out rows.

    None of fewer than three classes, where a class has few rows that are nearly complete, and where
    the gain may be luck.
    """
    judged, labels = np.unique(held.labels, return_inverse=True)
    n_classes, k = log_q.shape[1], judged.size
    if k < 3:
        return None
    # How many cells are missing may tell of the class, and rows of one subject say the same.
    weights = held.among_judged().ignorable_weights * held.subject_weights
    factor = (1 - held.missing_fraction) ** EXPONENT
    near_complete = np.bincount(labels, weights * factor)
    if (near_complete < MIN_NEAR_COMPLETE * np.bincount(labels, weights)).any():
        return None
    z = log_softmax(log_q[:, judged], axis=1)
    x = np.column_stack([np.maximum(z, MIN_LOG_PROBABILITY), np.ones(labels.size)])
    x *= factor[:, None]
    target, weights = one_hot(labels[:, None], (k,)), weights[:, None]
    precision = np.where(np.eye(k, k + 1) == 1, k, k * (k - 1.0))
    precision[:, k] = k

    def falling(point: np.ndarray) -> tuple[float, np.ndarray]:
        """Negative log posterior of matrix and offsets in nats, and its gradient."""
        both = point.reshape(k, k + 1)
        log_p = log_softmax(z + x @ both.T, axis=1)
        penalty = precision * both
        slope = (weights * (np.exp(log_p) - target)).T @ x + penalty
        value = (both * penalty).sum() / 2 - (weights * target * log_p).sum()
        return float(value), slope.ravel()

    mode = minimize(falling, np.zeros(k * (k + 1)), jac=True, method="L-BFGS-B").x
    both = mode.reshape(k, k + 1)
    log_p = log_softmax(z + x @ both.T, axis=1)
    gain = float((weights * target * (log_p - z)).sum())
    p = np.exp(log_p)
    n_effective = sum(
        effective_parameters(x, weights[:, 0] * p[:, c] * (1 - p[:, c]), precision[c])
        for c in range(k)
    )
    if 2 * gain <= n_effective:
        return None
    both *= 1 - n_effective / (2 * gain)
    matrix, offsets = np.zeros((n_classes, n_classes)), np.full(n_classes, np.nan)
    matrix[np.ix_(judged, judged)], offsets[judged] = both[:, :k], both[:, k]
    return MatrixScaling(matrix, offsets)


def effective_parameters(
    x: Float[np.ndarray, "held column"],
    information: Float[np.ndarray, " held"],
    precision: Float[np.ndarray, " column"],
) -> float:
    r"""Number of coefficients that labels determine, :math:`\operatorname{tr} (H + P)^{-1} H`.

    ``information`` has the weight of every row in the Hessian H, and P is diagonal.
    """
    hessian = (x * information[:, None]).T @ x
    return float(np.trace(np.linalg.solve(hessian + np.diag(precision), hessian)))
