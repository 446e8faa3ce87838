"""Refuses targets that a classifier cannot be judged on.

It is asked before anything that fits is imported: a bad table is refused at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    from bayesrbf.reading.read import Judge


MOST_TARGET_CLASSES: Final = 50


def problems_of_target(target: str, costs: Mapping[str, float]) -> Judge:
    """A judge of target columns: sentences on why a report is impossible."""

    def judge(y: pd.Series) -> Iterator[str]:
        yield from _of_classes(y, target)
        yield from problems_of_costs(costs, y.dropna().unique(), repr(target))

    return judge


def _of_classes(y: pd.Series, target: str) -> Iterator[str]:
    """Fewer than two classes of two rows, or a class for every other row."""
    counts = Counter(y.dropna().tolist())
    if not counts:
        yield f"Target {target!r} is empty: at least two classes need labelled rows."
    elif len(counts) == 1:
        only = next(iter(counts))
        yield f"Target {target!r} has one class, {str(only)!r}: a classifier needs at least two."
    elif len(counts) > max(2, min(MOST_TARGET_CLASSES, counts.total() / 2)):
        yield (
            f"Target {target!r} has {len(counts)} different values in {counts.total()} labelled "
            "rows: a classifier needs few classes with many rows; is it a number to predict?"
        )
    elif sum(rows >= 2 for rows in counts.values()) < 2:
        yield (
            f"Target {target!r} has no two classes with two labelled rows each, so nothing can be "
            "held out; label more rows."
        )


def problems_of_costs(
    costs: Mapping[str, float], classes: Iterable[object], owner: str
) -> Iterator[str]:
    """Costs of classes that the owner does not have, and costs that are not above 0, as sentences.

    >>> list(problems_of_costs({"ill": 0.0}, ["sick", "well"], "the model"))
    ["'ill' has a cost and is no class of the model: sick, well.", "The cost of 'ill' must be above
    0 and finite; received 0."]
    """
    names = sorted(str(label) for label in classes)
    for name, cost in costs.items():
        if name not in names:
            yield f"{name!r} has a cost and is no class of {owner}: {', '.join(names)}."
        if not (math.isfinite(cost) and cost > 0):
            yield f"The cost of {name!r} must be above 0 and finite; received {cost:g}."
