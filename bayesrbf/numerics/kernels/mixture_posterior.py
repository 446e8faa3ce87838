r"""Log posterior density of a mixture and its gradient, from coordinates to coordinates.

What :mod:`bayesrbf.numerics.mixture_prior` says in NumPy, with the E-step between its two
halves, in one call: for a table of a hundred rows the way through Python costs ten times the
arithmetic. With :math:`\theta` the coordinates, :math:`r` the E-step's shares and n, S their
counts and scatters,

1. every simplex is a softmax;
2. precision factors are :math:`L_{ii} = e^{\theta / 2} / s_i`, :math:`L_{ij} = \theta / s_i`,
   means in standard units;
3. the E-step (:mod:`bayesrbf.numerics.kernels.driver`): log likelihood and statistics;
4. the log prior and, by Fisher's identity, the gradient of both.

The caller brings the room that the mixture's parts and the sums take; what it lacks is None.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayesrbf.numerics.kernels.compilation import SOURCES, entry_point
from bayesrbf.numerics.kernels.declared_diagonal import diagonal_point, diagonal_slopes
from bayesrbf.numerics.kernels.declared_full import (
    Point,
    Reals,
    full_point,
    full_slopes,
    write_precisions,
)
from bayesrbf.numerics.kernels.declared_simplexes import (
    Levels,
    Simplexes,
    add_counts,
    add_level_counts,
    log_prior_of_simplexes,
    simplex_slopes,
    write_constants,
    write_levels,
    write_logs,
)
from bayesrbf.numerics.kernels.driver import Results, expect
from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
from bayesrbf.numerics.kernels.gaussian_holes import GaussiansWithHoles
from bayesrbf.numerics.kernels.tiles import Tiles


def _compiled(sources: str) -> Callable[..., None]:
    """Compile :data:`log_posterior` under a key that knows all kernel files."""

    @entry_point
    def log_posterior(
        thetas: np.ndarray,
        values: np.ndarray,
        slopes: np.ndarray,
        tiles: Tiles,
        simplexes: Simplexes,
        reals: Reals,
        levels: Levels,
        point: Point,
        sums: Results,
        constants: np.ndarray,
        full: FullGaussians | None,
        holes: GaussiansWithHoles | None,
        diagonal: DiagonalGaussians | None,
        categories: np.ndarray | None,
    ) -> None:
        _ = sources
        n_entries, n_tiles = simplexes.starts[-1], len(tiles.sizes)
        logs, entries = np.empty(n_entries), np.empty(n_entries)
        for i in range(len(thetas)):
            theta = thetas[i]
            write_logs(theta, simplexes, logs)
            write_constants(simplexes, logs, constants)
            value = log_prior_of_simplexes(simplexes, logs)
            if full is not None:
                value += full_point(theta, reals, point, full, constants)
            if holes is not None:
                write_precisions(point.factors, holes.precisions)
            if diagonal is not None:
                value += diagonal_point(theta, reals, point, diagonal, constants)
            if categories is not None:
                write_levels(levels, logs, categories)
            sums.counts[:] = sums.log_likelihood[:] = entries[:] = 0.0
            sums.first[:], sums.second[:], sums.categories[:] = 0.0, 0.0, 0.0
            model = (constants, full, holes, diagonal, categories)
            expect(tiles, tiles.components, 0, n_tiles, sums, None, *model)
            values[i] = value + sums.log_likelihood[0]
            if i < len(slopes):
                if full is not None:
                    full_slopes(theta, reals, point, sums, slopes[i])
                if diagonal is not None:
                    diagonal_slopes(theta, reals, point, sums, slopes[i])
                if categories is not None:
                    add_level_counts(levels, sums.categories, entries)
                add_counts(simplexes, sums.counts, entries)
                simplex_slopes(simplexes, logs, entries, slopes[i])

    return log_posterior


log_posterior = _compiled(SOURCES)
"""Write log densities at points ``thetas``, without constants, and their gradients; where there
is no room for these, ``sums`` has none for moments either, and they are left out."""
