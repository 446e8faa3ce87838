r"""Rows with holes as several complete points, drawn from a companion mixture.

The components of this family are no densities of x: adding one quadratic function to
all of them changes every "marginal" and no :math:`p(c | x)`. So missing cells cannot
be integrated out of the components. What is sound is

.. math:: p(c | x_o) = \int p(c | x) \, p(x_m | x_o) \, dx_m

with a density of x of its own: a mixture that never sees the labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics import completion
from bayesrbf.numerics.categories import one_hot
from bayesrbf.order import Order
from bayesrbf.parameters import MixtureParameters, Observations, Standardisation
from bayesrbf.specification import MixtureSpecification


def complete(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    units: Standardisation,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of every row: itself if it is whole, else its completions.

    Parameters
    ----------
    observations : Observations
        Rows in the user's units; labels are not used.
    parameters : MixtureParameters
        Point of the companion, in standard units.
    specification : MixtureSpecification
        Structure of the companion.
    units : Standardisation
        Location and scale of the real columns.
    draws : int
        Completions of a row with holes, a power of two.
    replicate : int
        Which of the independent sets of draws.
    order : Order, optional
        Order of columns and components in which cells are drawn, whatever theirs is; None: as
        they stand.

    Returns
    -------
    points : ndarray of shape (n_points, n_coordinates)
        Reals in the user's units, then indicators of all levels.
    starts : ndarray of shape (n_rows,)
        First point of every row.
    """
    standard = replace(observations, real=units.forward(observations.real))
    rows, starts = completion.complete(
        standard, parameters, specification, draws=draws, replicate=replicate, order=order
    )
    sizes = np.diff(starts, append=rows.n_obs)
    # Cells that were seen stay what they were, to the last bit.
    seen = np.repeat(observations.real, sizes, axis=0)
    real = np.where(np.isnan(seen), units.backward(rows.real), seen)
    return np.column_stack([real, one_hot(rows.codes, specification.levels)]), starts
