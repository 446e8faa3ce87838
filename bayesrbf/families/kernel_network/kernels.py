"""Kernels between rows with missing cells, and the hidden layer of their eigenfunctions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import cdist

from bayesrbf.base.arrays import on_one_blas_thread, one_hot, single_digits, split_levels
from bayesrbf.base.records import MAX_PARTS, TOLERANCE, Requirements, stored, within
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations, in_blocks
from bayesrbf.families.kernel_network.compiled import add_laplace_holes
from bayesrbf.mixture.missing import conditional_cells

# Kernel values between rows with missing cells, integrated out in closed form.
#
# A kernel sees every cell as a distribution; a missing one has that of a companion mixture given
# the observed cells of its row. A product kernel is a product over columns of a factor for two
# cells. Where a cell is missing, its factor is the expectation under the conditional distributions
# of the two cells (a mean embedding, taken on the diagonal too).
#
# So a Gram matrix costs one distance matrix and one product of matrices, as if
# every cell were known, and then a correction of the pairs with a missing cell.


FARTHEST = 4.0  # Expected cells are clipped to this many standard deviations.
KernelName = Literal["laplace", "gaussian"]
Kernel = KernelName | Literal["linear"]
TILE = 256
"""Rows of a Gram matrix that are made at once; the arrays needed for them stay in the cache."""


@stored
class CellMoments:
    """The distribution of every cell of some rows: a value, or a conditional law."""

    mean: Float[np.ndarray, "row feature"]
    """Real cells or their conditional means, in standard units."""
    variance: Float[np.ndarray, "row feature"]  # Conditional variances; 0 for an observed cell.
    probabilities: Float[np.ndarray, "row level"]
    """Level probabilities of all categorical columns, side by side; 0 and 1 for an observed
    cell."""
    unknown: Bool[np.ndarray, "row categorical"]  # Which categorical cells are missing.

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.mean.shape[0]

    @property
    def empty(self) -> Bool[np.ndarray, " row"]:
        """Mask of the rows without an observed cell."""
        return (self.variance > 0).all(axis=1) & self.unknown.all(axis=1)

    def take(self, rows: np.ndarray | slice) -> CellMoments:
        """Moments of the cells of some rows."""
        return CellMoments(
            self.mean[rows], self.variance[rows], self.probabilities[rows], self.unknown[rows]
        )

    def __laws__(self) -> Requirements:
        yield within(self.variance, 0, 1e12), "variances of 0 and above"
        yield within(abs(self.mean), 0, 1e6), "means in standard units"
        yield within(self.probabilities, 0, 1 + TOLERANCE), "probabilities"


def cell_moments(
    observations: Observations, parameters: MixtureParameters, specification: MixtureSpecification
) -> CellMoments:
    """Give every missing cell its distribution given the observed cells of its row.

    Rows and companion mixture are in standard units. The moments are averaged over *all*
    components by p(component | row). Labels are not used, not even those of training rows: a
    row must look the same to the kernel whether its label is known or not. Expected cells are
    clipped to ``FARTHEST``.
    """
    mean, variance = observations.real.copy(), np.zeros_like(observations.real)
    probabilities = one_hot(observations.codes, specification.levels)
    unknown = observations.codes < 0
    holes = np.flatnonzero(np.isnan(mean).any(axis=1) | unknown.any(axis=1))
    if holes.size:
        rows = observations.take(holes)
        mean[holes], variance[holes], levels = conditional_cells(rows, parameters, specification)
        # The empty first part is for tables without categorical columns.
        probabilities[holes] = np.concatenate([probabilities[holes][:, :0], *levels], axis=1)
    # Means given the observed cells can lie beyond the cells, which are clipped so.
    return CellMoments(np.clip(mean, -FARTHEST, FARTHEST), variance, probabilities, unknown)


def averaged(several: Sequence[CellMoments]) -> CellMoments:
    r"""Rows under an equal mixture of several distributions of their missing cells.

    .. math:: \bar m = \tfrac1M \sum_i m_i, \quad
        \bar v = \tfrac1M \sum_i \{v_i + (m_i - \bar m)^2\}, \quad
        \bar p = \tfrac1M \sum_i p_i
    """
    first = several[0]
    mean = np.mean([cells.mean for cells in several], axis=0)
    spread = np.mean([cells.variance + (cells.mean - mean) ** 2 for cells in several], axis=0)
    missing = first.variance > 0  # The average of a cell with itself differs from it by rounding.
    return CellMoments(
        np.where(missing, mean, first.mean),
        np.where(missing, spread, 0.0),
        np.mean([cells.probabilities for cells in several], axis=0),
        first.unknown,
    )


@stored
class ProductKernel:
    r"""A product kernel over real and categorical columns.

    With rate a, difference :math:`d = |\bar x - \bar x'|` of the means, sum :math:`s^2` of the
    variances, and probability o that two levels agree, the factors of two cells are

    .. math::
       E\, e^{-a|x - x'|} &= e^{-ad + a^2 s^2 / 2}\, h, \\
       E\, e^{-a (x - x')^2 / 2} &= (1 + a s^2)^{-1/2} \exp\{-d^2 / (2 / a + 2 s^2)\}, \\
       E\, e^{-a [x \ne x']} &= e^{-a} + (1 - e^{-a})\, o

    with h of :func:`~bayesrbf.families.kernel_network.compiled.log_laplace_hole`. Known cells are
    the limit :math:`s \to 0`, :math:`h = 1`.
    """

    name: KernelName  # ``exp(-a |d|)`` or ``exp(-a d^2 / 2)`` of real cells.
    real_rates: Float[np.ndarray, " feature"]
    """Rates a of the real columns, positive, per standard unit."""
    category_rates: Float[np.ndarray, " categorical"]
    """Rates a of the categorical columns, at least 0: levels that differ have the factor
    ``exp(-a)``."""
    levels: tuple[int, ...]  # Number of levels of every categorical column.

    @property
    def rates(self) -> Float[np.ndarray, " column"]:
        """Rates of the real, then of the categorical columns."""
        return np.concatenate([self.real_rates, self.category_rates])

    def with_rates(self, rates: Float[np.ndarray, " column"]) -> ProductKernel:
        """The kernel with other rates."""
        d = self.real_rates.size
        return replace(self, real_rates=rates[:d], category_rates=rates[d:])

    def __call__(
        self, left: CellMoments, right: CellMoments
    ) -> Float[np.ndarray, "left_row right_row"]:
        """Kernel values of all pairs, in (0, 1]."""
        result = np.empty((left.n_rows, right.n_rows))
        for start in range(0, left.n_rows, TILE):
            rows = slice(start, start + TILE)
            result[rows] = self._tile(left.take(rows), right)
        return result

    def gram(self, rows: CellMoments) -> Float[np.ndarray, "row row"]:
        """Kernel values of all pairs of the same rows; only half of them are computed."""
        result = np.empty((rows.n_rows, rows.n_rows))
        for start in range(0, rows.n_rows, TILE):
            tile = self._tile(rows.take(slice(start, start + TILE)), rows.take(slice(start, None)))
            result[start : start + TILE, start:] = tile
            result[start:, start : start + TILE] = tile.T
        return result

    def _tile(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """Kernel of two sets of rows: factors of known cells, corrected for missing cells."""
        log_values = self._log_known_reals(left, right)
        if self.levels:
            log_values += self._log_known_categories(left, right)
        # In logarithms: at large rates one factor is 0 where the other is infinite.
        if left.variance.any() or right.variance.any():
            self._add_real_holes(log_values, left, right)
        values = np.exp(log_values)
        self._multiply_unknown_categories(values, left, right)
        return values

    def _add_real_holes(
        self, log_values: np.ndarray, left: CellMoments, right: CellMoments
    ) -> None:
        """Add the log corrections for missing real cells, in place."""
        if self.name == "laplace":
            moments = (left.mean, left.variance, right.mean, right.variance, self.real_rates)
            # Copies: compiled code is another where an array cannot be written to.
            add_laplace_holes(log_values, *[np.array(values.T, order="C") for values in moments])
            return
        for column, rate in enumerate(self.real_rates):
            first, second = left.variance[:, column], right.variance[:, column]
            for i, j in _blocks(first > 0, second > 0):
                d = np.abs(left.mean[i, column, None] - right.mean[j, column])
                log_values[_place(i, j)] += _log_gaussian_holes(d, first[i, None] + second[j], rate)

    def _log_known_reals(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """Log of all real columns' factors, at the conditional means or without h."""
        rates = self.real_rates
        if self.name == "gaussian":
            root = np.sqrt(rates)
            return -0.5 * cdist(left.mean * root, right.mean * root, "sqeuclidean")
        # The exponent a² s² / 2 is a sum over the two rows, because their variances add up.
        spread = [0.5 * (rows.variance @ rates**2) for rows in (left, right)]
        log_values = -cdist(left.mean * rates, right.mean * rates, "cityblock")
        return log_values + spread[0][:, None] + spread[1]

    def _log_known_categories(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """Log of the categorical columns' factors, where the right cell is known."""
        far = np.repeat(np.exp(-self.category_rates), self.levels)
        known = np.repeat(~right.unknown, self.levels, axis=1)
        logs: np.ndarray = np.log(far + (1 - far) * left.probabilities)
        return logs @ (right.probabilities * known).T

    def _multiply_unknown_categories(
        self, values: np.ndarray, left: CellMoments, right: CellMoments
    ) -> None:
        """Multiply by the categorical columns' factors where the right cell is missing."""
        edges = np.cumsum([0, *self.levels])
        for column, far in enumerate(np.exp(-self.category_rates)):
            missing = np.flatnonzero(right.unknown[:, column])
            if missing.size:
                span = slice(edges[column], edges[column + 1])
                agree = left.probabilities[:, span] @ right.probabilities[missing, span].T
                values[:, missing] *= far + (1 - far) * agree

    def __laws__(self) -> Requirements:
        yield within(self.real_rates, 0, 1e12) and within(self.category_rates, 0, 1e12), "rates"
        yield len(self.levels) == self.category_rates.size, "levels for every categorical column"
        yield within(self.levels, 1, MAX_PARTS), "levels in every categorical column"


def _blocks(left: np.ndarray, right: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | slice]]:
    """Pairs of rows in which the left or the right cell is missing, each pair once."""
    everything = slice(None)
    blocks: list[tuple[np.ndarray, np.ndarray | slice]] = []
    if left.any():
        blocks.append((np.flatnonzero(left), everything))
    if right.any() and not left.all():
        blocks.append((np.flatnonzero(~left), np.flatnonzero(right)))
    return blocks


def _place(i: np.ndarray, j: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray | slice]:
    """Index of a block of pairs."""
    return (i, j) if isinstance(j, slice) else (i[:, None], j)


def _log_gaussian_holes(d: np.ndarray, variance: np.ndarray, rate: float) -> np.ndarray:
    """Compute the log factor of the Gaussian kernel over that at the conditional means."""
    blur = rate * variance
    # The difference of the two exponents in closed form: subtracted, they would lose digits.
    return 0.5 * rate * d**2 * blur / (1 + blur) - 0.5 * np.log1p(blur)


# The hidden layer of a kernel network: leading eigenfunctions of a kernel at exemplars.


MIN_EIGENVALUE = 1e-6  # Eigenvalues below this fraction of the largest are left out.
CATEGORY_STEP = 2.0
"""Rate b of a categorical column in the Laplace kernel; that of a real column is 1."""
MIN_RATE = 1e-9  # Rates, and what is divided by, are at least this.
MIN_VARIANCE = 0.01  # Variances of a class's columns are at least this, in standard units.
MEAN_ROWS, VARIANCE_ROWS = 0.1, 2.0
"""Weight, in rows, of the prior behind a class's mean (0) and variance (1), columns
standardised."""


@stored
class EigenBasis:
    r"""Exemplars Z and the eigenfunctions centred at them; ``projection`` is ``U Lambda^(-1/2)``.

    With the Gram matrix :math:`K = U \Lambda U'` of the exemplars, the features of a row are

    .. math:: f(x) = \Lambda^{-1/2} U' k(Z, x),

    so that :math:`f(x)' f(x')` is the kernel, up to the eigenvalues left out, and Gaussian output
    weights are a Gaussian process with that covariance.
    """

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
        for block in in_blocks(rows.n_rows, self.exemplars.n_rows):
            result[block] = self.kernel(rows.take(block), self.exemplars) @ self.projection
        return result

    @property
    def rounded(self) -> EigenBasis:
        """A copy whose large arrays have the digits of single precision."""
        exemplars = replace(
            self.exemplars,
            mean=single_digits(self.exemplars.mean),
            variance=single_digits(self.exemplars.variance),
        )
        return replace(self, exemplars=exemplars, projection=single_digits(self.projection))

    def is_of(self, n_features: int, levels: tuple[int, ...]) -> bool:
        """Whether the kernel has so many real columns, and categorical ones of these levels."""
        return self.kernel.real_rates.size == n_features and self.kernel.levels == levels

    def __laws__(self) -> Requirements:
        kernel, cells = self.kernel, self.exemplars
        yield cells.mean.shape[1] == kernel.real_rates.size, "exemplars with its real columns"
        yield cells.probabilities.shape[1] == sum(kernel.levels), "exemplars with its levels"
        yield cells.unknown.shape[1] == len(kernel.levels), "exemplars with its categorical columns"
        yield cells.n_rows == self.projection.shape[0], "a projection of every exemplar"
        yield within(abs(self.projection), 0, 1e12), "projections"


MIN_SPREAD = 0.03
"""Lower bound of the standard deviations by which real cells are divided."""


@stored
class LinearBasis:
    """Principal axes of the columns: the features of a multinomial logistic regression.

    Real columns have unit variance, and indicators of levels their own, which is small where a
    level is rare: at unit variance rare levels would weigh as much as columns. A missing cell is
    its expectation; its variance attenuates the logits.
    """

    location: Float[np.ndarray, " column"]  # Means of real columns, then of indicators of levels.
    projection: Float[np.ndarray, "column basis"]

    @property
    def n_basis(self) -> int:
        """Number of features."""
        return self.projection.shape[1]

    @on_one_blas_thread
    def features(self, rows: CellMoments) -> Float[np.ndarray, "row basis"]:
        """Hidden layer of rows; the feature of the largest variance comes first."""
        result: np.ndarray = (_expected(rows) - self.location) @ self.projection
        return result

    def variances(self, rows: CellMoments) -> Float[np.ndarray, "row column"] | None:
        """Variances of the cells and of the indicators; None where no cell is missing."""
        of_levels = rows.probabilities * (1 - rows.probabilities)
        found = np.concatenate([rows.variance, of_levels], axis=1)
        return found if found.any() else None

    @property
    def rounded(self) -> LinearBasis:
        """Itself: its arrays are small."""
        return self

    def is_of(self, n_features: int, levels: tuple[int, ...]) -> bool:
        """Whether there are as many real columns and levels in all."""
        return self.location.size == n_features + sum(levels)

    def __laws__(self) -> Requirements:
        yield within(abs(self.location), 0, 1e6), "means in standard units"
        yield self.location.size == self.projection.shape[0], "a projection of every column"
        yield within(abs(self.projection), 0, 1e12), "projections"


Basis = EigenBasis | LinearBasis
"""The hidden layer of a network."""


def _expected(rows: CellMoments) -> Float[np.ndarray, "row column"]:
    """Expected real cells, then level probabilities."""
    return np.concatenate([rows.mean, rows.probabilities], axis=1)


@on_one_blas_thread
def linear_basis(
    cells: CellMoments, weights: Float[np.ndarray, " row"], n_basis: int
) -> LinearBasis:
    """The leading principal axes of columns and indicators, at most ``n_basis``."""
    columns, shares, d = _expected(cells), weights / weights.sum(), cells.mean.shape[1]
    location, spread = shares @ columns, np.ones(columns.shape[1])
    variances = shares @ (columns[:, :d] - location[:d]) ** 2
    spread[:d] = np.maximum(np.sqrt(variances), MIN_SPREAD)
    standard = np.sqrt(shares)[:, None] * (columns - location) / spread
    _, roots, axes = np.linalg.svd(standard, full_matrices=False)
    leading = np.flatnonzero(roots**2 > MIN_EIGENVALUE * roots[0] ** 2)[:n_basis]
    return LinearBasis(location, axes[leading].T / spread[:, None])


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
    leading = np.arange(eigenvalues.size - 1, first - 1, -1)
    # Divided by the root of a tiny eigenvalue, its rounding would be a feature.
    leading = leading[eigenvalues[leading] > MIN_EIGENVALUE * eigenvalues[-1]]
    roots, vectors = np.sqrt(eigenvalues[leading]), vectors[:, leading]
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
    r"""Fix the rates of a kernel on its training rows.

    .. math:: a_j = b_j f_j / \sum_i s_i f_i

    ``factors`` are the f of the real, then of the categorical columns, s the spread of a column,
    and b is 1 but for categories in the Laplace kernel. A typical pair of rows is one length apart.
    """
    relative_weights = weights / weights.sum()
    centred = cells.mean - relative_weights @ cells.mean
    mean = relative_weights @ cells.probabilities
    steps = np.ones(factors.size)
    d = cells.mean.shape[1]
    if name == "laplace":
        steps[d:] = CATEGORY_STEP
        reals = relative_weights @ np.abs(centred)
        mixed = [2 * min(0.5, 1 - shares.max()) for (shares,) in split_levels(mean[None], levels)]
    else:
        reals = relative_weights @ centred**2
        spread = relative_weights @ (cells.probabilities - mean) ** 2
        mixed = [shares.sum() for (shares,) in split_levels(spread[None], levels)]
    total = np.concatenate([reals, mixed]) @ factors
    rates = steps * factors / max(total, MIN_RATE)
    return ProductKernel(name, np.maximum(rates[:d], MIN_RATE), rates[d:], levels)


def relevance_factors(
    observations: Observations, levels: tuple[int, ...], n_classes: int, strength: float
) -> Float[np.ndarray, " column"]:
    r"""Factors f of the real, then of the categorical columns.

    .. math:: f_j = (1 - w) + w \sqrt{I_j / \max_i I_i}, \quad
        I_j = \max\{0, \overline{\log p(x_j | y) - \log p(x_j)} - \mathrm{df}_j / n_j\}

    The relevance I of a column is its mutual information with the class, in nats, under one
    Gaussian (or one table of level probabilities) a class, less its expectation by chance. Only
    labelled rows are used; they are in standard units. The most telling column has 1, one that says
    nothing ``1 - strength``. The ``strength`` w lies between 0, where all factors are 1, and 1.
    """
    rows = observations.take(observations.labels >= 0)
    if strength == 0 or n_classes < 2:
        return np.ones(rows.real.shape[1] + len(levels))
    counts = np.bincount(rows.labels, rows.weights, minlength=n_classes)
    log_prevalences = np.log(counts / counts.sum())
    gains = np.concatenate(
        [_real_gains(rows, log_prevalences), _category_gains(rows, levels, log_prevalences)]
    )
    relevance = np.sqrt(gains / max(gains.max(initial=0.0), MIN_RATE))
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
        variance = np.maximum((scatter + VARIANCE_ROWS) / (counts + VARIANCE_ROWS), MIN_VARIANCE)
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
        class_counts = (np.where(rows.labels == label, rows.weights, 0.0) @ indicators)[None]
        columns = [np.zeros((rows.n_obs, 0))]
        for j, (count, marginal) in enumerate(
            zip(split_levels(class_counts, levels), marginals, strict=True)
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
    """Mean gain in log density by the class, less its expectation by chance."""
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
