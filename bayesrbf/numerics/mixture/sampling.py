"""Draws from a mixture: whole rows, and the missing cells of given ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.mixture.conditional import conditionals, responsibilities
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification


def conditional_draws(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> Observations:
    """Draw the missing cells of every row jointly, given its observed cells.

    Rows and point are in standard units; labels are not used.
    """
    weights = responsibilities(observations, parameters, specification)
    components = draw_categories(weights, rng)
    noise = rng.standard_normal(observations.real.shape)
    real = observations.real.copy()
    for block in conditionals(observations, parameters, specification):
        lane = np.arange(block.rows.size)
        mine = components[block.rows]
        means = block.means[lane, mine]
        if block.roots is None:
            steps = noise[block.rows] * np.sqrt(block.variances[lane, mine])
        else:
            steps = np.zeros_like(means)
            hole = np.isnan(observations.real[block.rows])
            m = block.roots.shape[-1]
            steps[hole] = np.einsum(
                "nij,nj->ni", block.roots[lane, mine], noise[block.rows, :m]
            ).reshape(-1)
        real[block.rows] = np.where(np.isnan(real[block.rows]), means + steps, real[block.rows])
    laws, values = laws_of(specification), parameters.further
    return replace(
        observations,
        real=real,
        codes=laws.levels.completed(observations.codes, components, parameters, rng),
        further=tuple(
            np.where(np.isnan(cells), law.sample(components, values, rng), cells)
            for law, cells in zip(laws.further, observations.further, strict=True)
        ),
    )


def sample(
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    n_rows: int,
    rng: np.random.Generator,
    labels: Int[np.ndarray, " row"] | None = None,
) -> tuple[Observations, Int[np.ndarray, " row"]]:
    """Draw complete rows, in the units of the point, and the component of each.

    Labels are drawn from the class probabilities unless they are given.
    """
    laws, classes = laws_of(specification), np.asarray(specification.component_class)
    if labels is None:
        priors = np.broadcast_to(parameters.class_probabilities, (n_rows, specification.n_classes))
        labels = draw_categories(priors, rng)
    within = np.where(classes == labels[:, None], parameters.weights, 0.0)
    components = draw_categories(within, rng)
    noise = rng.standard_normal((n_rows, specification.n_features))
    real = parameters.means[components].copy()
    factors = parameters.precisions_cholesky[specification.covariance_group]
    for k in range(specification.n_components):
        mine = components == k
        real[mine] += laws.reals.spread(noise[None, mine], factors[k : k + 1])[0]
    missing = np.full((n_rows, len(specification.levels)), -1)
    codes = laws.levels.completed(missing, components, parameters, rng)
    further = tuple(law.sample(components, parameters.further, rng) for law in laws.further)
    return Observations(real, codes, labels, np.ones(n_rows), further), components
