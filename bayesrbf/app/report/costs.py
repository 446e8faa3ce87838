"""Costs of decisions: at least expected cost, under simpler rules, and as costs vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fit.decisions import constant, cost_curve, expected_costs, mistakes, paid

COST_STEPS: Final = 101
FURTHEST: Final = 2.0
"""Times the given cost of the dearest class up to which it is varied."""
SAME: Final = "the best answer that is the same for all rows"

if TYPE_CHECKING:
    from bayesrbf.app.report.held_out import HeldOutRows


@dataclass(frozen=True)
class Costs:
    """Held-out costs of the decisions of least expected cost, all in the unit that was given."""

    given: tuple[tuple[str, float], ...]  # Of a mistaken row, by class.
    rows: tuple[tuple[str, float], ...]  # Classifier and mean cost of a row; the model first.
    dearest: str  # The class whose cost varies along the curves.
    here: float  # Its cost as it was given.
    along: Float[np.ndarray, " step"]  # Its cost along the curves; the others stay as given.
    curves: tuple[tuple[str, Float[np.ndarray, " step"]], ...]
    """Mean cost of a row by classifier; ``SAME`` comes last."""
    by_class: tuple[float, ...]  # What the mistaken rows of each class cost together.


def costs_of(classes: Sequence[object], costs: Mapping[str, float]) -> Float[np.ndarray, " label"]:
    """Cost of a mistaken row of every class: 1 where none is given."""
    return np.array([costs.get(str(label), 1.0) for label in classes], dtype=np.float64)


def decisions(
    probabilities: Float[np.ndarray, "obs label"],
    classes: Sequence[object],
    costs: Mapping[str, float],
) -> Int[np.ndarray, " obs"]:
    """Answers of least expected cost; the most probable class where all cost the same."""
    return expected_costs(probabilities, mistakes(costs_of(classes, costs))).argmin(axis=1)


def read_costs(
    held_out: HeldOutRows, costs: Mapping[str, float], classifiers: Sequence[str]
) -> Costs | None:
    """Judge decisions on the held-out rows; None where no cost was given.

    A class without a cost costs 1. The first of the classifiers is the model.
    """
    if not costs:
        return None
    each = costs_of(held_out.classes, costs)
    names = [str(label) for label in held_out.classes]
    rows = held_out.scored
    labels = held_out.labels[rows]
    probabilities = {name: held_out.probabilities[name][rows] for name in classifiers}
    dear = int(np.argmax(each))
    along = each[dear] * np.linspace(0, FURTHEST, COST_STEPS)
    is_dear = np.arange(each.size) == dear
    given, varied = mistakes(each), mistakes(np.where(is_dear, along[:, None], each))
    curves = [(name, cost_curve(p, labels, varied)) for name, p in probabilities.items()]
    best = np.array([constant(labels, step) for step in varied])
    own = paid(probabilities[classifiers[0]], labels, given)
    return Costs(
        given=tuple(zip(names, map(float, each), strict=True)),
        rows=(
            *((name, float(paid(p, labels, given).mean())) for name, p in probabilities.items()),
            (SAME, constant(labels, given)),
        ),
        dearest=names[dear],
        here=float(each[dear]),
        along=along,
        curves=(*curves, (SAME, best)),
        by_class=tuple(map(float, np.bincount(labels, own, minlength=each.size))),
    )
