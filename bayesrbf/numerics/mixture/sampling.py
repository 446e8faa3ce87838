"""Draws from a mixture: whole rows, and the missing cells of given ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Int

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.mixture.conditional import responsibilities
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification


def conditional_draws(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    rng: np.random.Generator,
    draws: int = 1,
) -> list[Observations]:
    """Draw the missing cells of every row jointly, given its observed cells, some times.

    Rows and point are in standard units; labels are not used.
    """
    weights = responsibilities(observations, parameters, specification)
    laws, tables = laws_of(specification), []
    components = np.empty((draws, observations.n_obs), dtype=np.intp)
    noise = np.empty((draws, *observations.real.shape))
    for own, normal in zip(components, noise, strict=True):
        own[:] = draw_categories(weights, rng)
        rng.standard_normal(out=normal)
        tables.append(laws.levels.completed(observations, own, parameters, rng))
    real = laws.reals.drawn(observations.real, components, parameters, noise)
    return [replace(table, real=cells) for table, cells in zip(tables, real, strict=True)]


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
    classes = np.asarray(specification.component_class)
    if labels is None:
        priors = np.broadcast_to(parameters.class_probabilities, (n_rows, specification.n_classes))
        labels = draw_categories(priors, rng)
    within = np.where(classes == labels[:, None], parameters.weights, 0.0)
    components = draw_categories(within, rng)
    rows = Observations(
        np.full((n_rows, specification.n_features), np.nan),
        np.full((n_rows, len(specification.levels)), -1),
        labels,
        np.ones(n_rows),
    )
    laws = laws_of(specification)
    rows = laws.reals.sampled(rows, components, parameters, rng)
    return laws.levels.completed(rows, components, parameters, rng), components
