"""The E-step in NumPy: the reference of the compiled kernels, and quick on small tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.categories import log_levels, one_hot, split_levels
from bayesrbf.numerics.gaussian import (
    CompleteMoments,
    DiagonalMoments,
    MissingMoments,
    Moments,
)
from bayesrbf.numerics.gaussian_quadratic import (
    MOST_PRODUCTS,
    QuadraticComponents,
    QuadraticMoments,
    products,
)
from bayesrbf.numerics.statistics import Statistics
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.specification import MixtureSpecification

BLOCK_CELLS = 65_536
"""Numbers held at once per array of a block of rows, so that they stay in cache."""

LOWEST = -1e300
"""Floor of a log density: a square that overflows must not make every component -inf."""


def component_log_weights(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, " component"]:
    """Joint log probability ``log pi_c + log w_k`` of class and component.

    Parameters
    ----------
    parameters : MixtureParameters
        Point of the mixture.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (n_components,)
        Log probabilities in nats; they sum to one over all components.
    """
    classes = np.asarray(specification.component_class)
    return np.log(parameters.class_probabilities)[classes] + np.log(parameters.weights)


def log_sum_exp(
    log_values: Float[np.ndarray, "*shape"], axis: int
) -> tuple[Float[np.ndarray, "*reduced"], Float[np.ndarray, "*shape"]]:
    """Log of sums along an axis, and the shares of those sums.

    Parameters
    ----------
    log_values : ndarray
        Finite log values.
    axis : int
        The axis to sum over.

    Returns
    -------
    log_sums : ndarray
        ``log sum exp(log_values)``, without the axis.
    shares : ndarray
        ``exp(log_values - log_sums)``, summing to one along the axis.
    """
    top = log_values.max(axis=axis, keepdims=True)
    shares = log_values - top
    np.exp(shares, out=shares)
    sums = shares.sum(axis=axis, keepdims=True)
    shares /= sums
    return np.squeeze(np.log(sums) + top, axis=axis), shares


@dataclass
class _Sums:
    """Statistics under way, added to in place block by block."""

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    categories: np.ndarray

    @classmethod
    def zeros(cls, specification: MixtureSpecification) -> _Sums:
        k, d = specification.n_components, specification.n_features
        second = (k, d, d) if specification.shape == "full" else (k, d)
        levels = sum(specification.levels)
        return cls(np.zeros(k), np.zeros((k, d)), np.zeros(second), np.zeros((k, levels)))


@dataclass(frozen=True)
class _Block:
    """Rows that share their admissible components and their number of missing reals."""

    rows: Int[np.ndarray, " row"]
    components: slice
    n_missing: int
    bordered: Float[np.ndarray, "row bordered"]
    products: Float[np.ndarray, "row product"] | None
    observed: Bool[np.ndarray, "row feature"]
    one_hot: Float[np.ndarray, "row level"]
    weights: Float[np.ndarray, " row"]


class ArrayExpectation:
    """E-step over prepared rows, in NumPy.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    """

    def __init__(self, observations: Observations, specification: MixtureSpecification) -> None:
        self._specification = specification
        self._observations = observations
        every = slice(0, specification.n_components)
        self._all_rows = self._blocks(np.arange(observations.n_obs), every)
        self._by_label: list[_Block] = []
        for label, components in [*enumerate(specification.class_slices), (-1, every)]:
            rows = np.flatnonzero(observations.labels == label)
            self._by_label.extend(self._blocks(rows, components))

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Compute the expected statistics; labels restrict the components of a row.

        Parameters
        ----------
        parameters : MixtureParameters
            Point of the mixture, in standard units.

        Returns
        -------
        Statistics
            Expected statistics, centred at the means of ``parameters``.
        """
        pointwise = np.empty(self._observations.n_obs)
        log_weights = component_log_weights(parameters, self._specification)
        levels = log_levels(parameters)
        components = self._components(parameters)

        sums = _Sums.zeros(self._specification)
        for block in self._by_label:
            part = block.components
            moments = _moments(block, components[part.start, part.stop])
            log_joint = moments.log_density  # made for this block: what follows is in place
            log_joint += log_weights[part, None]
            if levels.size:
                log_joint += levels[part] @ block.one_hot.T
            np.maximum(log_joint, LOWEST, out=log_joint)
            pointwise[block.rows], shares = log_sum_exp(log_joint, axis=0)
            shares *= block.weights
            sums.counts[part] += shares.sum(axis=1)
            if levels.size:
                sums.categories[part] += shares @ block.one_hot
            moments.add_to(sums.first[part], sums.second[part], shares)
        return Statistics(
            counts=sums.counts,
            first=sums.first,
            second=sums.second,
            category_counts=split_levels(sums.categories, self._specification.levels),
            log_likelihood=float(self._observations.weights @ pointwise),
            pointwise=pointwise,
        )

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """Joint log density of every row with every component, labels ignored.

        Parameters
        ----------
        parameters : MixtureParameters
            Point of the mixture, in standard units.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            ``log pi_c + log w_k + log p(x_o | k)`` in nats.
        """
        log_weights = component_log_weights(parameters, self._specification)
        levels = log_levels(parameters)
        log_joint = np.empty((self._observations.n_obs, log_weights.size))
        components = self._components(parameters)
        for block in self._all_rows:
            part = block.components
            log_density = _moments(block, components[part.start, part.stop]).log_density.T
            log_joint[block.rows] = log_density + log_weights + block.one_hot @ levels.T
        return np.maximum(log_joint, LOWEST)

    def _blocks(self, rows: np.ndarray, components: slice) -> list[_Block]:
        """Cut rows into blocks of equal work that fit the cache."""
        table, specification = self._observations, self._specification
        observed = ~np.isnan(table.real[rows])
        bordered = np.column_stack([np.nan_to_num(table.real[rows]), np.ones(rows.size)])
        indicators = one_hot(table.codes[rows], specification.levels)
        full = specification.shape == "full"
        counts = (~observed).sum(axis=1) if full else np.zeros(rows.size, dtype=int)
        k, d = components.stop - components.start, specification.n_features
        affordable = full and rows.size * (d + 1) * (d + 2) // 2 <= MOST_PRODUCTS
        blocks: list[_Block] = []
        for m in np.unique(counts):
            size = max(1, BLOCK_CELLS // (k * max(d, int(m) ** 2, 1)))
            same = np.flatnonzero(counts == m)
            for part in np.split(same, range(size, same.size, size)):
                blocks.append(
                    _Block(
                        rows=rows[part],
                        components=components,
                        n_missing=int(m),
                        bordered=bordered[part],
                        products=products(bordered[part]) if affordable and m == 0 else None,
                        observed=observed[part],
                        one_hot=indicators[part],
                        weights=table.weights[rows[part]],
                    )
                )
        return blocks

    def _components(self, parameters: MixtureParameters) -> dict[tuple[int, int], _Components]:
        """The components of every class, and those of all, by their places."""
        specification = self._specification
        every = slice(0, specification.n_components)
        chosen: dict[tuple[int, int], _Components] = {}
        for part in (*specification.class_slices, every):
            group = specification.covariance_group[part]
            means, factors = parameters.means[part], parameters.precisions_cholesky[group]
            full = specification.shape == "full"
            chosen[part.start, part.stop] = (
                QuadraticComponents(means, factors) if full else (means, factors)
            )
        return chosen


_Components = QuadraticComponents | tuple[np.ndarray, np.ndarray]
"""Full components, or means and square roots of precisions of diagonal ones."""


def _moments(block: _Block, components: _Components) -> Moments | QuadraticMoments:
    """Evaluate the Gaussian part of a block."""
    if not isinstance(components, QuadraticComponents):
        return DiagonalMoments.of(block.bordered[:, :-1], block.observed, *components)
    if block.products is not None and components.exact:
        return QuadraticMoments.of(block.products, components)
    if block.n_missing == 0:
        return CompleteMoments.of(block.bordered, components)
    missing = np.nonzero(~block.observed)[1].reshape(-1, block.n_missing)
    return MissingMoments.of(block.bordered[:, :-1], missing, components)
