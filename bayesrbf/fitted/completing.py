"""Cells that a mixture fills in, or takes away."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.numerics.mixture.conditional import (
    conditional_means,
    conditional_moments,
    conditional_probabilities,
)
from bayesrbf.numerics.mixture.sampling import conditional_draws
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.table import Columns

Cells = tuple[Float[np.ndarray, "obs feature"], Int[np.ndarray, "obs categorical"]]


def most_likely(mixture: FittedMixture, rows: Observations) -> Cells:
    """Rows in the user's units, missing cells at their conditional mean or most probable level."""
    standard, structure = mixture.standardise(rows), mixture.specification
    if mixture.maps is None:
        standard_mean, _ = conditional_moments(standard, mixture.parameters, structure)
        mean = mixture.units.backward(standard_mean)
    else:
        mean = conditional_means(standard, mixture.parameters, structure, mixture.in_users_units)
    levels = conditional_probabilities(standard, mixture.parameters, structure)
    best = [probabilities.argmax(axis=1) for probabilities in levels]
    return _fill(rows, mean, np.column_stack([rows.codes[:, :0], *best]))


def drawn(
    mixture: FittedMixture, rows: Observations, point: MixtureParameters, rng: np.random.Generator
) -> Cells:
    """Rows in the user's units, missing cells drawn jointly under a point in standard units."""
    standard = mixture.standardise(rows)
    whole = conditional_draws(standard, point, mixture.specification, rng)
    return _fill(rows, mixture.in_users_units(whole.real), whole.codes)


def _fill(rows: Observations, real: np.ndarray, codes: np.ndarray) -> Cells:
    """Observed cells as they came, the others as they were found."""
    return (
        np.where(np.isnan(rows.real), real, rows.real),
        np.where(rows.codes < 0, codes, rows.codes),
    )


def hide_masked(
    real: Float[np.ndarray, "obs feature"],
    codes: Int[np.ndarray, "obs categorical"],
    columns: Columns,
) -> Cells:
    """Take away the cells of drawn rows whose mask was drawn as missing."""
    real, codes = real.copy(), codes.copy()
    masks = codes[:, len(columns.levels) :] == 1
    for position, mask in zip(columns.masked, masks.T, strict=True):
        if columns.kinds[position] == "real":
            real[mask, columns.real_positions.index(position)] = np.nan
        else:
            codes[mask, columns.categorical_positions.index(position)] = -1
    return real, codes
