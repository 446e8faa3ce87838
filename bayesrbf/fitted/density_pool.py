r"""A pool of densities: fits of several candidates side by side, which is a mixture again.

.. math:: p(x) = \sum_m s_m \sum_k w_{mk} \, p_{mk}(x), \quad
   s = \operatorname*{arg\,max}_s \sum_i v_i \log \sum_m s_m \, p_m(x_i)

The rows i of the second sum are held out of the fits, and v are their weights (stacking of
densities; Smyth and Wolpert, 1999): :func:`bayesrbf.numerics.stack.pooling.stacking_shares`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations, joined_points
from bayesrbf.records.specification import MixtureSpecification

Refit = Callable[[int, Observations, int], FittedMixture]
"""Fit a candidate, by its place, to weighted rows, from starts of a seed."""


def members(shares: Float[np.ndarray, " candidate"], size: int) -> list[tuple[int, float]]:
    """Candidate and share of every fit of a pool of about so many; each has one fit at least.

    >>> members(np.array([0.75, 0.0, 0.25]), 4)
    [(0, 0.25), (0, 0.25), (0, 0.25), (2, 0.25)]
    """
    fits = np.where(shares > 0, np.maximum(np.round(size * shares), 1), 0).astype(int)
    return [(m, float(shares[m] / n)) for m, n in enumerate(fits) for _ in range(n)]


def pooled(
    alone: FittedMixture,
    rows: Observations,
    shares: Float[np.ndarray, " candidate"],
    size: int,
    refit: Refit,
    seed: int,
) -> FittedMixture:
    """Fits to rows of random weights, side by side behind the maps and in the units of one.

    A row that stands for v rows has a weight of Gamma(v), as in the Bayesian bootstrap.
    """
    rng = np.random.default_rng(seed)
    mapped, tasks = alone.mapped(rows), []
    for number, (place, share) in enumerate(members(shares, size)):
        weights = rng.standard_gamma(rows.weights)
        weights *= rows.weights.sum() / weights.sum()
        tasks.append((share, place, weights, seed + number))

    def fitted(
        task: tuple[float, int, Float[np.ndarray, " obs"], int],
    ) -> tuple[float, FittedMixture]:
        share, place, own, seed = task
        return share, refit(place, replace(mapped, weights=own), seed)

    return side_by_side(alone, run_tasks(fitted, tasks, "Fits"))


def side_by_side(
    alone: FittedMixture, parts: Sequence[tuple[float, FittedMixture]]
) -> FittedMixture:
    """The components of several densities, in the units and behind the maps of another."""
    points = [mixture.start.standardised(alone.units) for _, mixture in parts]
    shapes = {mixture.specification.shape for _, mixture in parts}
    specification = replace(
        alone.specification,
        component_class=(0,) * sum(mixture.specification.n_components for _, mixture in parts),
        covariance_type="full" if len(shapes) > 1 else shapes.pop(),
    )
    own = [
        replace(
            point,
            weights=share * point.weights,
            precisions_cholesky=_own(point, mixture.specification, specification),
        )
        for (share, mixture), point in zip(parts, points, strict=True)
    ]
    return replace(alone, specification=specification, parameters=joined_points(own))


def _own(
    point: MixtureParameters, own: MixtureSpecification, joint: MixtureSpecification
) -> Float[np.ndarray, "component *feature"]:
    """A factor of the precisions for every component, whole where the joint ones are."""
    roots = point.precisions_cholesky[own.covariance_group]
    if joint.shape == own.shape:
        return roots
    return laws_of(joint).reals.of_diagonal(laws_of(own).reals.diagonal(roots))
