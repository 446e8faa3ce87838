"""The E-step in NumPy: the reference of the compiled kernels, and quick on small tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.gaussian import (
    CompleteMoments,
    DiagonalMoments,
    MissingMoments,
    Moments,
)
from bayesrbf.numerics.statistics import Statistics
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.specification import MixtureSpecification

BLOCK_CELLS = 200_000
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
    log_values: Float[np.ndarray, "obs component"],
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs component"]]:
    """Log of the sum of each row, and the row's shares of that sum.

    Parameters
    ----------
    log_values : ndarray of shape (n_obs, n_components)
        Finite log values.

    Returns
    -------
    log_sums : ndarray of shape (n_obs,)
        ``log sum_k exp(log_values)``.
    shares : ndarray of shape (n_obs, n_components)
        ``exp(log_values - log_sums)``, rows summing to one.
    """
    top = log_values.max(axis=1, keepdims=True)
    shares = np.exp(log_values - top)
    sums = shares.sum(axis=1, keepdims=True)
    shares /= sums
    return (np.log(sums) + top)[:, 0], shares


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
        self._weights = observations.weights
        self._observed = ~np.isnan(observations.real)
        self._real = np.where(self._observed, observations.real, 0.0)
        self._one_hot = one_hot(observations.codes, specification.levels)
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
        sums = _Sums.zeros(self._specification)
        pointwise = np.empty(self._weights.size)
        log_weights = component_log_weights(parameters, self._specification)
        log_levels = _log_levels(parameters)
        for block in self._by_label:
            rows, part = block.rows, block.components
            moments = self._moments(block, parameters)
            log_joint = moments.log_density + log_weights[part]
            if log_levels.size:
                log_joint += self._one_hot[rows] @ log_levels[part].T
            pointwise[rows], shares = log_sum_exp(np.maximum(log_joint, LOWEST))
            shares *= self._weights[rows, None]
            sums.counts[part] += shares.sum(axis=0)
            sums.categories[part] += shares.T @ self._one_hot[rows]
            moments.add_to(sums.first[part], sums.second[part], shares)
        return Statistics(
            counts=sums.counts,
            first=sums.first,
            second=sums.second,
            category_counts=split_levels(sums.categories, self._specification.levels),
            log_likelihood=float(self._weights @ pointwise),
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
        log_joint = self._one_hot @ _log_levels(parameters).T
        log_joint += component_log_weights(parameters, self._specification)
        for block in self._all_rows:
            log_joint[block.rows] += self._moments(block, parameters).log_density
        return np.maximum(log_joint, LOWEST)

    def _blocks(self, rows: np.ndarray, components: slice) -> list[_Block]:
        """Cut rows into blocks of equal work that fit the cache."""
        full = self._specification.shape == "full"
        counts = (~self._observed[rows]).sum(axis=1) if full else np.zeros(rows.size, int)
        k, d = components.stop - components.start, self._specification.n_features
        blocks: list[_Block] = []
        for m in np.unique(counts):
            size = max(1, BLOCK_CELLS // (k * max(d, int(m) ** 2, 1)))
            same = rows[counts == m]
            parts = np.split(same, range(size, same.size, size))
            blocks.extend(_Block(part, components, int(m)) for part in parts)
        return blocks

    def _moments(self, block: _Block, parameters: MixtureParameters) -> Moments:
        """Evaluate the Gaussian part of a block."""
        rows, part = block.rows, block.components
        group = self._specification.covariance_group[part]
        means, factors = parameters.means[part], parameters.precisions_cholesky[group]
        real, observed = self._real[rows], self._observed[rows]
        if self._specification.shape != "full":
            return DiagonalMoments.of(real, observed, means, factors)
        if block.n_missing == 0:
            return CompleteMoments.of(real, means, factors)
        missing = np.nonzero(~observed)[1].reshape(rows.size, block.n_missing)
        return MissingMoments.of(real, missing, means, factors)


def one_hot(
    codes: Int[np.ndarray, "obs categorical"], levels: tuple[int, ...]
) -> Float[np.ndarray, "obs level"]:
    """Indicators of the observed levels of all categorical columns, side by side.

    Parameters
    ----------
    codes : ndarray of shape (n_obs, n_categorical)
        Level codes, -1 where missing.
    levels : tuple of int
        Number of levels of every column.

    Returns
    -------
    ndarray of shape (n_obs, sum of levels)
        1 at the observed level of each column, a zero block where it is missing.
    """
    indicators = np.zeros((codes.shape[0], sum(levels)))
    offsets = np.cumsum([0, *levels])[:-1]
    rows, columns = np.nonzero(codes >= 0)
    indicators[rows, offsets[columns] + codes[rows, columns]] = 1.0
    return indicators


def _log_levels(parameters: MixtureParameters) -> Float[np.ndarray, "component level"]:
    """Log level probabilities of all categorical columns, side by side."""
    empty = np.zeros((parameters.weights.size, 0))
    return np.log(np.concatenate([empty, *parameters.category_probabilities], axis=1))


def split_levels(
    counts: np.ndarray, levels: tuple[int, ...]
) -> tuple[Float[np.ndarray, "component _"], ...]:
    """Undo the side-by-side layout of :func:`one_hot`.

    Parameters
    ----------
    counts : ndarray of shape (n_components, sum of levels)
        One column per level of every categorical column.
    levels : tuple of int
        Number of levels of every column.

    Returns
    -------
    tuple of ndarray of shape (n_components, n_levels)
        One array per categorical column.
    """
    return tuple(np.split(counts, np.cumsum(levels)[:-1], axis=1)) if levels else ()
