"""Questions to the density about rows and their missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.answers.asking import Fit, new_rows
from bayesrbf.fitted.completed_rows import drawn, most_likely


def score_samples(fit: Fit, X: object) -> Float[np.ndarray, " obs"]:
    """Log density of the observed cells of each row.

    ``log p(x_o) = log sum_k p(k) p(x_o | k)`` at the fitted point: of the model itself, its
    hidden layer, or the mixture that was fitted beside it.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.

    Returns
    -------
    ndarray of shape (n_obs,)
        Log densities in nats, in the units of ``X``. They cannot be compared between rows with
        different cells missing: see :meth:`novelty`.
    """
    return fit.density.log_density(new_rows(fit, X).cells)


def novelty(fit: Fit, X: object) -> Float[np.ndarray, " obs"]:
    """How unlike the training table each row is, from 0 to 1; high is novel.

    It is the share of 500 rows drawn from the density, with the same cells missing, that are
    more probable. Two log densities are combined, that of the whole row and that of its cells
    one by one, as tails among the drawn rows. So rows with different missing cells can be
    compared, and 1 in 100 of the density's own rows has a novelty above .99.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.

    Returns
    -------
    ndarray of shape (n_obs,)
        Novelties; .5 for a row without a cell.
    """
    return fit.novelty(new_rows(fit, X).cells)


def impute(fit: Fit, X: object, draws: int | None = None) -> Any:
    """Fill the missing cells; observed cells are returned as they came.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows with missing cells.
    draws : int, optional
        Number of completed tables to draw. None: one table, with the
        conditional mean ``E[x | x_o]`` of real and the most probable level
        of categorical cells, at the fitted point; of counts and ordered
        levels, the one nearest to their mean.

    Returns
    -------
    same container as ``X``, or list of them
        One completed table; with ``draws``, a list of tables whose missing
        cells are joint draws, each under another draw of the posterior if
        there is one for the density.

    Raises
    ------
    ValueError
        If ``draws`` is below 1.
    """
    rows, density = new_rows(fit, X).cells, fit.density
    if draws is None:
        return fit.table.decoded(most_likely(density, rows, fit.columns), X)
    if draws < 1:
        raise ValueError(f"impute(draws=...) must be at least 1; received {draws}.")
    rng = np.random.default_rng(fit.table.seed)
    points = [density.parameters] * draws
    if fit.draws is not None:
        points = fit.drawn_densities(draws, rng)
    return [fit.table.decoded(cells, X) for cells in drawn(density, rows, points, rng)]
