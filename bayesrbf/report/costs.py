"""What mistakes cost if one acts on the held-out probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.posterior.decisions import constant, cost_curve, mistakes, paid, varied
from bayesrbf.report.validate import HeldOut

STEPS = 101
SAME = "the best answer that is the same for all rows"


@dataclass(frozen=True)
class Costs:
    """Held-out costs of acting on probabilities."""

    given: tuple[tuple[str, float], ...]  # Of a mistaken row, by class.
    rows: tuple[tuple[str, float], ...]  # Rule of decision and mean cost of a row; the model first.
    dearest: str  # The class whose cost varies along the curves.
    here: float  # Its share in the costs that were given.
    shares: Float[np.ndarray, " step"]
    """Of its cost in the sum of its own and of the others' mean cost."""
    curves: tuple[tuple[str, Float[np.ndarray, " step"]], ...]
    """Mean cost of a row where costs add up to 1, by classifier; ``SAME`` comes last."""


def read_costs(
    held_out: HeldOut, costs: Mapping[str, float], classifiers: Sequence[str]
) -> Costs | None:
    """Judge decisions on the held-out rows; None where no cost was given.

    A class without a cost costs 1. The first of the classifiers is the model.
    """
    if not costs:
        return None
    names = [str(label) for label in held_out.classes]
    each = np.array([costs.get(name, 1.0) for name in names])
    rows = held_out.scored
    labels = held_out.labels[rows]
    probabilities = {name: held_out.probabilities[name][rows] for name in classifiers}
    own = classifiers[0]
    dear = int(np.argmax(each))
    others = np.delete(each, dear).mean()
    shares = np.linspace(0, 1, STEPS)
    given, along = mistakes(each), mistakes(varied(each, dear, shares))
    curves = [(name, cost_curve(p, labels, along)) for name, p in probabilities.items()]
    best = np.array([constant(labels, one) for one in along])
    ignoring = each[labels] * (probabilities[own].argmax(axis=1) != labels)
    return Costs(
        given=tuple(zip(names, map(float, each), strict=True)),
        rows=(
            *((name, float(paid(p, labels, given).mean())) for name, p in probabilities.items()),
            (f"{own} if it answered with the most probable class", float(ignoring.mean())),
            (SAME, constant(labels, given)),
        ),
        dearest=names[dear],
        here=float(each[dear] / (each[dear] + others)),
        shares=shares,
        curves=(*curves, (SAME, best)),
    )
