"""Held-out scores along the weight between density and discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.base import clone

from bayesrbf.estimators.folds import numbered_folds, split_rows
from bayesrbf.estimators.mixture.hybrid import HybridMixtureClassifier
from bayesrbf.estimators.mixture.hybrid_objective import (
    DIALS,
    Setting,
    Task,
    asked_objective,
    hybrid_solver,
)
from bayesrbf.posterior.recalibration import log_score
from bayesrbf.records.mixture import Observations
from bayesrbf.records.priors import MixturePrior

if TYPE_CHECKING:
    import xarray as xr

FOLD: Final = "fold"
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
        What is swept: ``kappa`` of a blend (default) or ``hinge_weight`` of a hinge;
        its ``cv`` gives the folds. It is not changed.
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
    asked = HybridMixtureClassifier(objective="blend") if estimator is None else estimator
    if asked.objective not in DIALS:
        raise ValueError(
            f"hybrid_path sweeps an objective in {tuple(DIALS)}, which have a dial; received "
            f"objective={asked.objective!r}."
        )
    dial = DIALS[asked.objective]
    steps = [float(value) for value in (VALUES[dial] if values is None else values)]
    first = clone(asked).set_params(**{dial: steps[0]}, calibrate=False, inference="map")
    first.fit(X, y, sample_weight)
    settings = [
        Setting(
            asked_objective(clone(first).set_params(**{dial: step})),
            1.0,
            first.model_.specification,
        )
        for step in steps
    ]
    seed = first.seed_
    prior = MixturePrior() if first.prior is None else first.prior
    task = Task(prior, hybrid_solver(first, seed), chained=True, column_maps=first.column_maps)
    splits = split_rows(first.cv, first.rows_, first.kept_, seed)
    figures = [_figures(task, settings, *fold) for fold in numbered_folds(splits, first.classes_)]
    if not figures:
        raise ValueError(
            f"hybrid_path: cv={first.cv} holds out no labelled row (the only row of a "
            "class never is); label more rows, or give other splits."
        )
    return _dataset(figures, dial, steps, asked.objective)


def _figures(
    task: Task, settings: list[Setting], index: int, train: Observations, test: Observations
) -> dict[str, list[float]]:
    """Held-out means of one fold along the path."""
    found: dict[str, list[float]] = {}
    for mixture in task.fits(train, settings, task.solver.seed + 1 + index):
        joint = mixture.class_log_joint(test)
        figures = _held_out(joint, test.labels, test.weights)
        log_density = np.logaddexp.reduce(joint, axis=1) + mixture.log_unit(test)
        figures["log_density"] = float(np.average(log_density, weights=test.weights))
        for name, value in figures.items():
            found.setdefault(name, []).append(value)
    return found


def _held_out(joint: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Figures of one fit on held-out rows."""
    rows = np.arange(labels.size)
    rivals = joint.copy()
    rivals[rows, labels] = -np.inf
    margins = joint[rows, labels] - rivals.max(axis=1)
    return {
        "log_score": log_score(joint, labels, weights, calibrate=False),
        "calibrated_log_score": log_score(joint, labels, weights, calibrate=True),
        "error": float(np.average(margins <= 0, weights=weights)),
        "margin": float(np.average(margins, weights=weights)),
    }


def _dataset(
    figures: list[dict[str, list[float]]], dial: str, steps: list[float], objective: str
) -> xr.Dataset:
    """The figures of all folds with their units."""
    import xarray as xr

    units = {"error": "share of rows"}
    variables: dict[str, Any] = {
        name: (
            (dial, FOLD),
            np.array([fold[name] for fold in figures]).T,
            {"units": units.get(name, "nats")},
        )
        for name in figures[0]
    }
    coords = {dial: steps, FOLD: np.arange(len(figures))}
    return xr.Dataset(variables, coords=coords, attrs={"objective": objective, "dial": dial})
