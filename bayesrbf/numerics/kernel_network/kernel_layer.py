r"""The hidden layer of a kernel network: leading eigenfunctions of a kernel at exemplars.

With the Gram matrix :math:`K = U \Lambda U'` of the exemplars Z, the features of a row are

.. math:: f(x) = \Lambda^{-1/2} U' k(Z, x),

so that :math:`f(x)' f(x')` is the kernel, up to the eigenvalues left out, and Gaussian output
weights are a Gaussian process with that covariance.

The kernel falls along each column at the rate

.. math:: a_j = b_j f_j / \sum_i s_i f_i, \quad f_j = (1 - w) + w \sqrt{I_j / \max_i I_i}

with the column's spread :math:`s_j`, so that a typical pair of rows is one length apart
in all, and the *relevance* :math:`I_j \ge 0`: what the column alone tells about the
class, in nats, under one Gaussian (or one table of level probabilities) a class,

.. math:: I_j = \max\{0, \overline{\log p(x_j | y) - \log p(x_j)} - \mathrm{df}_j / n_j\}.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.numerics.categories import one_hot, split_levels
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, KernelName, ProductKernel
from bayesrbf.numerics.threads import on_one_blas_thread
from bayesrbf.records.mixture import Observations, in_blocks
from bayesrbf.records.stored import Requirements, stored, within

LEAST_EIGENVALUE = 1e-6  # Eigenvalues below this fraction of the largest are left out.
CATEGORY_STEP = 2.0
"""Rate b of a categorical column in the Laplace kernel; that of a real column is 1."""
LEAST_RATE = 1e-9  # Rates, and what is divided by, are at least this.
LEAST_VARIANCE = 0.01  # Variances of a class's columns are at least this, in standard units.
MEAN_ROWS, VARIANCE_ROWS = 0.1, 2.0
"""Weight, in rows, of the prior behind a class's mean (0) and variance (1), columns
standardised."""


@stored
class EigenBasis:
    """Exemplars Z and the eigenfunctions centred at them; ``projection`` is ``U Lambda^(-1/2)``."""

    kernel: ProductKernel
    exemplars: CellMoments
    projection: Float[np.ndarray, "exemplar basis"]

    @property
    def n_basis(self) -> int:
        """Number of features."""
        return self.projection.shape[1]

    @on_one_blas_thread
    def features(self, rows: CellMoments) -> Float[np.ndarray, "row basis"]:
        """Hidden layer of rows; the feature of the largest eigenvalue comes first."""
        result = np.empty((rows.n_rows, self.n_basis))
        for part in in_blocks(rows.n_rows, self.exemplars.n_rows):
            result[part] = self.kernel(rows.take(part), self.exemplars) @ self.projection
        return result

    def __laws__(self) -> Requirements:
        kernel, cells = self.kernel, self.exemplars
        yield cells.mean.shape[1] == kernel.real_rates.size, "exemplars with its real columns"
        yield cells.probabilities.shape[1] == sum(kernel.levels), "exemplars with its levels"
        yield cells.unknown.shape[1] == len(kernel.levels), "exemplars with its categorical columns"
        yield cells.n_rows == self.projection.shape[0], "a projection of every exemplar"
        yield within(abs(self.projection), 0, 1e12), "projections"


@on_one_blas_thread
def eigen_basis(
    kernel: ProductKernel, exemplars: CellMoments, n_basis: int
) -> tuple[EigenBasis, Float[np.ndarray, "exemplar basis"]]:
    """Find the leading eigenfunctions of a kernel at distinct exemplars, at most ``n_basis``.

    Beside the hidden layer, its features ``U Lambda^(1/2)`` of the exemplars themselves are
    returned.
    """
    eigenvalues, vectors = np.linalg.eigh(kernel.gram(exemplars))
    first = max(eigenvalues.size - n_basis, 0)
    kept = np.arange(eigenvalues.size - 1, first - 1, -1)
    # Divided by the root of a tiny eigenvalue, its rounding would be a feature.
    kept = kept[eigenvalues[kept] > LEAST_EIGENVALUE * eigenvalues[-1]]
    roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
    # In the order in which a file's array is read: a restored basis gives the same bits.
    projection = np.ascontiguousarray(vectors / roots)
    return EigenBasis(kernel, exemplars, projection), vectors * roots


def product_kernel(
    name: KernelName,
    cells: CellMoments,
    weights: Float[np.ndarray, " row"],
    levels: tuple[int, ...],
    factors: Float[np.ndarray, " column"],
) -> ProductKernel:
    """Fix the rates of a kernel on its training rows.

    ``factors`` are the f of the real, then of the categorical columns.
    """
    relative_weights = weights / weights.sum()
    centred = cells.mean - relative_weights @ cells.mean
    mean = relative_weights @ cells.probabilities
    steps = np.ones(factors.size)
    d = cells.mean.shape[1]
    if name == "laplace":
        steps[d:] = CATEGORY_STEP
        reals = relative_weights @ np.abs(centred)
        mixed = [2 * min(0.5, 1 - part.max()) for (part,) in split_levels(mean[None], levels)]
    else:
        reals = relative_weights @ centred**2
        spread = relative_weights @ (cells.probabilities - mean) ** 2
        mixed = [part.sum() for (part,) in split_levels(spread[None], levels)]
    total = np.concatenate([reals, mixed]) @ factors
    rates = steps * factors / max(total, LEAST_RATE)
    return ProductKernel(name, np.maximum(rates[:d], LEAST_RATE), rates[d:], levels)


def relevance_factors(
    observations: Observations, levels: tuple[int, ...], n_classes: int, strength: float
) -> Float[np.ndarray, " column"]:
    """Factors f of the real, then of the categorical columns.

    Only labelled rows are used; they are in standard units. The most telling column has 1, one
    that says nothing ``1 - strength``. The ``strength`` w lies between 0, where all factors are
    1, and 1.
    """
    rows = observations.take(observations.labels >= 0)
    if strength == 0 or n_classes < 2:
        return np.ones(rows.real.shape[1] + len(levels))
    counts = np.bincount(rows.labels, rows.weights, minlength=n_classes)
    log_prevalences = np.log(counts / counts.sum())
    gains = np.concatenate(
        [_real_gains(rows, log_prevalences), _category_gains(rows, levels, log_prevalences)]
    )
    relevance = np.sqrt(gains / max(gains.max(initial=0.0), LEAST_RATE))
    return (1 - strength) + strength * relevance


def _real_gains(
    rows: Observations, log_prevalences: Float[np.ndarray, " label"]
) -> Float[np.ndarray, " feature"]:
    """Relevance of each real column, under one Gaussian a class."""
    known = ~np.isnan(rows.real)
    x = np.where(known, rows.real, 0.0)

    def log_density(label: int) -> np.ndarray:
        weights = np.where(rows.labels == label, rows.weights, 0.0)
        counts, sums = weights @ known, weights @ x
        mean = sums / (counts + MEAN_ROWS)
        # Squares about the mean; the prior's rows are at 0.
        scatter = weights @ x**2 - 2 * mean * sums + mean**2 * (counts + MEAN_ROWS)
        variance = np.maximum((scatter + VARIANCE_ROWS) / (counts + VARIANCE_ROWS), LEAST_VARIANCE)
        # Without log 2 pi, which cancels between the class and all classes.
        return -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)

    freedom = np.ones(x.shape[1])
    return _gains(log_density, rows, known, log_prevalences, freedom)


def _category_gains(
    rows: Observations, levels: tuple[int, ...], log_prevalences: Float[np.ndarray, " label"]
) -> Float[np.ndarray, " categorical"]:
    """Relevance of each categorical column, under one table of level probabilities a class."""
    indicators = one_hot(rows.codes, levels)
    marginals = split_levels((rows.weights @ indicators + 0.5)[None], levels)

    def log_density(label: int) -> np.ndarray:
        own = (np.where(rows.labels == label, rows.weights, 0.0) @ indicators)[None]
        columns = [np.zeros((rows.n_obs, 0))]
        for j, (count, marginal) in enumerate(
            zip(split_levels(own, levels), marginals, strict=True)
        ):
            smooth = (count + marginal / marginal.sum())[0]
            columns.append(np.log(smooth / smooth.sum())[rows.codes[:, j], None])
        return np.concatenate(columns, axis=1)

    freedom = 0.5 * (np.array(levels, dtype=float) - 1)
    return _gains(log_density, rows, rows.codes >= 0, log_prevalences, freedom)


def _gains(
    log_density: Callable[[int], np.ndarray],
    rows: Observations,
    known: Bool[np.ndarray, "obs column"],
    log_prevalences: Float[np.ndarray, " label"],
    freedom: Float[np.ndarray, " column"],
) -> Float[np.ndarray, " column"]:
    """Mean log density gained by knowing the class, less what chance gives."""
    true = np.zeros(known.shape)
    marginal = np.full(known.shape, -np.inf)
    for label, log_prevalence in enumerate(log_prevalences):
        density = log_density(label)
        true = np.where((rows.labels == label)[:, None], density, true)
        marginal = np.logaddexp(marginal, log_prevalence + density)
    weights = known * rows.weights[:, None]
    totals = weights.sum(axis=0)
    # One more row, which gains nothing: a column of few cells tells little.
    gain = (weights * (true - marginal)).sum(axis=0) / (totals + 1)
    # Chance gives half a nat in all for every free parameter, or half of 1 / n a row.
    return np.maximum(gain - freedom * (log_prevalences.size - 1) / np.maximum(totals, 1), 0.0)
