"""The E-step in compiled kernels, on as many threads as the table has work for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numba
import numpy as np
from jaxtyping import Float

from bayesrbf.base.arrays import split_levels
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture.compiled import (
    Model,
    Results,
    balanced_chunks,
    expect,
    log_tables,
    pack,
    plan_tiles,
    unpack_counts,
)
from bayesrbf.mixture.compiled_gaussian import DiagonalGaussians, FullGaussians, GaussiansWithHoles
from bayesrbf.mixture.gaussian import LOG_2PI
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.statistics import JointPoint, Statistics


class CompiledExpectation:
    """E-step over rows in standard units, in compiled kernels.

    The work is cut into pieces that depend on the table alone and whose sums are added in
    a fixed order: results are equal to the last bit on any number of threads. ``n_threads``
    is how many work at most; None for what Numba was granted (``NUMBA_NUM_THREADS``, by default
    one per processor).
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        *,
        n_threads: int | None = None,
    ) -> None:
        self.specification = specification
        self._classes = np.asarray(specification.component_class)
        self._law = laws_of(specification).reals
        packing = pack(observations.codes, specification.levels)
        self.members = packing.members  # what combined category codes stand for
        self.tiles = plan_tiles(observations, packing.codes, specification)
        self._chunks = balanced_chunks(self.tiles, specification).tolist()
        self._every = np.full_like(self.tiles.components, 0)
        # Ranges of components that ignore the labels.
        self._every[:, 1] = specification.n_components
        # Whether cells are missing under full covariances.
        self.has_holes = bool(self.tiles.n_missing.any())
        self._n_obs = observations.n_obs
        granted = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        available = granted if n_threads is None else n_threads
        self._n_threads = min(available, self.n_pieces)
        self._pool: ThreadPoolExecutor | None = None
        self._pool_process = 0

    @property
    def n_pieces(self) -> int:
        """Pieces that threads may share."""
        return len(self._chunks) - 1

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_pool": None}  # threads cannot be pickled, and start anew

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected statistics, centred at the means; labels restrict the components of a row."""
        pointwise = np.empty(self._n_obs)
        unused = np.empty((0, self.specification.n_components))
        model = self._model(parameters)
        pieces = self._run(model, self.tiles.components, pointwise, unused)
        return self._statistics(
            pieces, pointwise, float(_total([piece.log_likelihood for piece in pieces])[0])
        )

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        return self._log_joint(self._model(parameters))

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Log joints of every row and component, ready to carry gradients back."""
        model = self._model(parameters)
        return JointPoint(self._log_joint(model), partial(self._weighted_statistics, model))

    def for_many(self) -> CompiledExpectation:
        """The expectation itself: its rows are in compiled kernels already."""
        return self

    def _log_joint(self, model: Model) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        log_joint = np.empty((self._n_obs, self.specification.n_components))
        self._run(model, self._every, np.empty(0), log_joint)
        return log_joint

    def _weighted_statistics(
        self, model: Model, gradients: Float[np.ndarray, "obs component"]
    ) -> Statistics:
        """Sums over the rows with gradients in the place of weighted responsibilities."""
        nothing = np.empty(0)
        unused = np.empty((0, self.specification.n_components))
        gradients = np.require(gradients, requirements=["C", "W"])
        return self._statistics(
            self._run(model, self._every, nothing, unused, gradients), nothing, 0.0
        )

    def _statistics(
        self, pieces: list[Results], pointwise: np.ndarray, log_likelihood: float
    ) -> Statistics:
        """Statistics summed over the pieces, with the given log likelihoods of rows and table."""
        return Statistics(
            counts=_total([piece.counts for piece in pieces]),
            first=_total([piece.first for piece in pieces]),
            second=_total([piece.second for piece in pieces]),
            category_counts=self._category_counts(_total([piece.categories for piece in pieces])),
            log_likelihood=log_likelihood,
            pointwise=pointwise,
        )

    def _run(
        self,
        model: Model,
        ranges: np.ndarray,
        pointwise: np.ndarray,
        log_joint: np.ndarray,
        slopes: np.ndarray | None = None,
    ) -> list[Results]:
        """Sums of every piece of the rows, by the kernels on several threads, the caller's too.

        ``ranges`` has the components that the label of every tile admits, from the first to behind
        the last; ``slopes`` has what stands in the place of the weighted responsibilities.
        """
        slopes = np.empty((0, self.specification.n_components)) if slopes is None else slopes
        given = (ranges, slopes, *model)
        # Piece i has the rows from _chunks[i] to _chunks[i + 1].
        pieces = [self.empty_results(pointwise, log_joint) for _ in self._chunks[1:]]
        left = iter(range(len(pieces)))  # each number goes to one thread
        others = [
            self._threads().submit(self._work, left, pieces, given)
            for _ in range(1, self._n_threads)
        ]
        self._work(left, pieces, given)
        for other in others:
            other.result()
        return pieces

    def _work(self, left: Iterator[int], pieces: list[Results], given: tuple[Any, ...]) -> None:
        """Send pieces through the kernels until none is left: a slow thread takes fewer."""
        ranges, *rest = given
        for i in left:
            expect(self.tiles, ranges, self._chunks[i], self._chunks[i + 1], pieces[i], *rest)

    def _threads(self) -> ThreadPoolExecutor:
        """The threads beside the caller's. A forked process inherits none and starts its own."""
        if self._pool is None or self._pool_process != os.getpid():
            self._pool = ThreadPoolExecutor(self._n_threads - 1, "bayesrbf-expectation")
            self._pool_process = os.getpid()
        return self._pool

    def empty_results(
        self,
        pointwise: Float[np.ndarray, " _"] | None = None,
        log_joint: Float[np.ndarray, "_ component"] | None = None,
    ) -> Results:
        """Zeros for the sums of one piece, and arrays for the log densities of all rows.

        All pieces write the rows' log likelihood to ``pointwise``, and their log joint to
        ``log_joint`` where that has rows.
        """
        k = self.specification.n_components
        return Results(
            np.zeros(k),
            *self._law.no_moments(),
            np.zeros((len(self.members), k)),
            np.zeros(1),
            np.empty(self._n_obs) if pointwise is None else pointwise,
            np.empty((0, k)) if log_joint is None else log_joint,
        )

    def _model(self, parameters: MixtureParameters) -> Model:
        """Parameters in the form that the kernels read, None for the parts that are not needed."""
        classes = parameters.class_probabilities.take(self._classes)
        levels = parameters.category_probabilities
        constants, categories = log_tables(classes, parameters.weights, levels, self.members)
        if not self.specification.n_features:
            return Model(constants, None, None, None, categories)
        # Numba compiles a kernel once more for arrays that are read-only, as a loaded model's are.
        means = np.require(parameters.means, requirements=["C", "W"])
        factors, group = parameters.precisions_cholesky, self.specification.covariance_group
        if self.specification.independent:
            scales = factors[group]
            normalisers = np.log(scales) - 0.5 * LOG_2PI
            diagonal = DiagonalGaussians(means, scales * np.sqrt(0.5), normalisers)
            return Model(constants + normalisers.sum(axis=1), None, None, diagonal, categories)
        full, holes = FullGaussians(means, factors * np.sqrt(0.5), group), None
        log_roots = np.log(factors.diagonal(0, 1, 2)).sum(axis=1)
        constants += log_roots[group] - 0.5 * means.shape[1] * LOG_2PI
        if self.has_holes:
            precisions = factors @ factors.swapaxes(1, 2)
            holes = GaussiansWithHoles(means, full.factors, precisions, group)
        return Model(constants, full, holes, None, categories)

    def _category_counts(self, counts: np.ndarray) -> tuple[np.ndarray, ...]:
        """Counts of single levels from those of combined codes, without the missing level."""
        levels = self.specification.levels
        if not levels:
            return ()
        by_level = np.zeros((self.specification.n_components, sum(levels)))
        unpack_counts(counts, self.members, by_level)
        return split_levels(by_level, levels)


def _total(pieces: list[np.ndarray]) -> np.ndarray:
    """Sum of one statistic over all pieces, in their order."""
    total = pieces[0]
    for piece in pieces[1:]:
        total += piece
    return total
