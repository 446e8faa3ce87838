"""Held-out scores along the weight between density and discrimination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.base import clone

from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.estimators.mixture.hybrid_arguments import HybridArguments
from bayesrbf.fitted.folds import numbered_folds, split_rows
from bayesrbf.fitted.mixture_candidates import Setting
from bayesrbf.fitted.mixture_selection import Task
from bayesrbf.fitted.objective_path import path_figures
from bayesrbf.records.mixture_objectives import objective_of
from bayesrbf.records.priors import MixturePrior

if TYPE_CHECKING:
    import xarray as xr

FOLD: Final = "fold"
DIALS: Final = {"blend": ("kappa", "kappa"), "hinge": ("hinge_weight", "weight")}
"""The constant that leads from the likelihood away, and its field, by objective."""
VALUES: Final = {
    "kappa": (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01),
    "hinge_weight": (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
}
"""Steps of a dial, from the likelihood on."""


def hybrid_path(
    X: object,
    y: object,
    *,
    estimator: HybridMixtureClassifier | None = None,
    values: Sequence[float] | None = None,
    sample_weight: object = None,
) -> xr.Dataset:
    """Fit a hybrid mixture for several weights of density and discrimination, fold by fold.

    Every fit starts at the one before, so that the path costs little more than its first
    fit.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; NaN, None and NA are missing cells.
    y : array-like of shape (n_obs,)
        Class labels; NaN and None are hidden.
    estimator : HybridMixtureClassifier, optional
        What is swept: ``kappa`` of a :class:`bayesrbf.Blend` (default) or ``weight`` of a
        :class:`bayesrbf.Hinge`; its ``cv`` gives the folds. It is not changed.
    values : sequence of float, optional
        Steps of the dial, in the order in which they are taken; ``VALUES`` by default.
    sample_weight : array-like of shape (n_obs,), optional
        Row weights.

    Returns
    -------
    xarray.Dataset
        Over the dial and fold, means of held-out rows: ``log_score`` and
        ``calibrated_log_score`` (``log p(y | x)`` in nats, raw and at the best
        temperature of the fold), ``error`` (share of rows), ``margin``
        (``log p(x, y)`` less that of the best other class, in nats) and
        ``log_density`` (``log p(x)`` in nats, in the user's units).

    Raises
    ------
    ValueError
        If the estimator's objective has no dial, or no row is held out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> X = rng.normal(size=(60, 2)) + y[:, None]
    >>> path = hybrid_path(X, y, values=[1.0, 0.1])
    >>> path["log_score"].dims
    ('kappa', 'fold')
    """
    asked = HybridMixtureClassifier() if estimator is None else estimator
    aim = objective_of(asked.objective)
    name = aim.constants.name
    if name not in DIALS:
        raise ValueError(
            f"hybrid_path sweeps an objective in {tuple(DIALS)}, which have a dial; received "
            f"objective={name!r}."
        )
    dial, field = DIALS[name]
    steps = [float(value) for value in (VALUES[dial] if values is None else values)]
    begun = replace(aim, **{field: steps[0]})
    first = clone(asked).set_params(objective=begun, calibrate=False, inference="map")
    first.fit(X, y, sample_weight)
    objective, structure = first.fitted_.model.objective, first.fitted_.model.specification
    settings = [Setting(replace(objective, **{dial: step}), 1.0, structure) for step in steps]
    prior = MixturePrior() if first.prior is None else first.prior
    solver = HybridArguments.of(first.get_params(deep=False)).solver(first.seed_)
    task = Task(prior, solver, chained=True, column_maps=first.column_maps)
    splits = split_rows(first.cv, first.rows_, first.kept_, first.seed_)
    figures = path_figures(task, settings, numbered_folds(splits, first.classes_))
    if not figures:
        raise ValueError(
            f"hybrid_path: cv={first.cv} holds out no labelled row (the only row of a "
            "class never is); label more rows, or give other splits."
        )
    return _dataset(figures, dial, steps, name)


def _dataset(
    figures: Sequence[Mapping[str, Sequence[float]]],
    dial: str,
    steps: Sequence[float],
    objective: str,
) -> xr.Dataset:
    """The figures of all folds with their units."""
    import xarray as xr

    units = {"error": "share of rows"}
    variables: dict[str, tuple[tuple[str, str], np.ndarray, dict[str, str]]] = {
        name: (
            (dial, FOLD),
            np.array([fold[name] for fold in figures]).T,
            {"units": units.get(name, "nats")},
        )
        for name in figures[0]
    }
    coords = {dial: steps, FOLD: np.arange(len(figures))}
    return xr.Dataset(variables, coords=coords, attrs={"objective": objective, "dial": dial})
