"""Figures of rows held out along a path of objectives, from the likelihood to discrimination."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fitted.folds import NumberedFold
from bayesrbf.fitted.holding_out import HeldOut, over_folds
from bayesrbf.fitted.mixture_candidates import Setting
from bayesrbf.fitted.mixture_selection import Task
from bayesrbf.posterior.scores import mean_and_error
from bayesrbf.records.mixture import Observations


def path_figures(
    task: Task, settings: Sequence[Setting], folds: Sequence[NumberedFold]
) -> list[Mapping[str, Sequence[float]]]:
    """Means of every fold's held-out rows, by figure, along the path."""

    def figures(
        number: int, train: Observations, test: Observations
    ) -> Mapping[str, Sequence[float]]:
        along: defaultdict[str, list[float]] = defaultdict(list)
        for mixture in task.fits(train, settings, task.solver.seed + 1 + number):
            joint = mixture.class_log_joint(test)
            log_density = np.logaddexp.reduce(joint, axis=1) + mixture.log_unit(test)
            for name, value in held_out_figures(joint, test.labels, test.weights).items():
                along[name].append(value)
            along["log_density"].append(float(np.average(log_density, weights=test.weights)))
        return along

    return over_folds(folds, figures)


def held_out_figures(
    joint: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
) -> dict[str, float]:
    """Scores in nats, share of errors and margin of one fit."""
    rows = np.arange(labels.size)
    rivals = joint.copy()
    rivals[rows, labels] = -np.inf
    margins = joint[rows, labels] - rivals.max(axis=1)
    held_out = HeldOut(joint, labels, weights)
    calibrated = held_out.log_scores(held_out.temperature)
    return {
        "log_score": mean_and_error(held_out.log_scores(), weights)[0],
        "calibrated_log_score": mean_and_error(calibrated, weights)[0],
        "error": float(np.average(margins <= 0, weights=weights)),
        "margin": float(np.average(margins, weights=weights)),
    }
