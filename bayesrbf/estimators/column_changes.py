"""New cells that are surely not as in training: in other units, exchanged, missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.warning import warn
from bayesrbf.posterior.two_tables import (
    APART,
    FAR,
    FEWEST,
    Change,
    by_chance,
    changed_columns,
    differ,
    distance,
    tail_of_count,
)
from bayesrbf.records.mixture import Observations
from bayesrbf.table import Columns
from bayesrbf.table.containers import missing_cells, read_cells

ENOUGH: Final = 10
"""Number of new cells from which a change of unit, and missing cells, are told."""
CHANCE: Final = 1e-6
"""Probability that a change of unit is reported by chance alone."""
MORE: Final = 0.1
"""Share of the rows, beyond that in training, from which missing cells are told."""
GLANCED: Final = 1000
"""Training rows, about, that a column is first compared with."""
GLANCE: Final = 0.8
"""Part of the distance of a change, to those, from which it is compared with all."""

Pair = tuple[np.ndarray, np.ndarray]
"""Cells of a column in training, and now."""


def warn_of_columns(columns: Columns, old: Observations, new: Observations, X: object) -> None:
    """Warn once of columns that are surely not as in training: other units, exchanged, missing.

    Who asks about missing cells has more of them, so that these are told of a table X to be
    predicted only, and X is None else.
    """
    if new.n_obs < FEWEST:
        return
    reals = [table.real_cells(rows.real, rows.codes, columns) for rows in (old, new)]
    changed = list(_changed(columns.real_names, *reals))
    if changed:
        changed.append("Give every column as it was in training.")
    enough = X is not None and new.n_obs >= ENOUGH
    if sentences := changed + list(_missing(columns, old, new, X) if enough else ()):
        warn(" ".join(sentences))


def _changed(
    names: tuple[str, ...],
    old: Float[np.ndarray, "row feature"],
    new: Float[np.ndarray, "obs feature"],
) -> Iterator[str]:
    """Real columns that are exchanged, as ``check`` finds them, or surely in another unit."""
    if not _far_off(old, new):
        return
    pairs = zip(map(_observed, old.T), map(_observed, new.T), strict=True)
    cells = dict(zip(names, pairs, strict=True))
    for one in changed_columns(cells):
        if one.change is None:
            yield _of_exchange(one.columns, [cells[name] for name in one.columns])
        else:
            (name,) = one.columns
            if _is_apart(*cells[name]) and differ(*cells[name], CHANCE):
                yield _of_change(name, one.change, *cells[name])


def _missing(columns: Columns, old: Observations, new: Observations, X: object) -> Iterator[str]:
    """Columns that are missing far more often than in training."""
    absent, before = (~table.observed_cells(rows, columns) for rows in (new, old))
    more = np.flatnonzero(absent.mean(axis=0) > before.mean(axis=0) + MORE)
    cells = read_cells(X).columns if more.size else ()
    for place in more.tolist():
        now, then = missing_cells(cells[place]), before[:, place]  # without levels that are new
        counts = int(now.sum()), now.size, int(then.sum()), then.size
        if now.mean() > then.mean() + MORE and tail_of_count(*counts) < CHANCE:
            yield (
                f"Column {columns.names[place]!r} is missing in {now.mean():.0%} of {now.size} "
                f"rows, in training in {then.mean():.0%}."
            )


def _observed(cells: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """Cells that are not missing."""
    return cells[~np.isnan(cells)]


def _far_off(old: Float[np.ndarray, "row feature"], new: Float[np.ndarray, "obs feature"]) -> bool:
    """Whether some column may have changed: a glance at some old rows, before all are compared."""
    some = old[:: max(1, len(old) // GLANCED)]
    pairs = ((_observed(before), _observed(now)) for before, now in zip(some.T, new.T, strict=True))
    apart = [
        (distance(before, now), by_chance(before, now))
        for before, now in pairs
        if min(before.size, now.size) >= FEWEST
    ]
    # An exchange moves two columns, less far than a change of unit moves one.
    moved = sum(far >= max(GLANCE * APART, chance) for far, chance in apart)
    return moved > 1 or any(far >= GLANCE * FAR for far, _ in apart)


def _is_apart(before: Float[np.ndarray, " n"], now: Float[np.ndarray, " m"]) -> bool:
    """Whether no new cell lies among the old ones, and there are enough of both."""
    outside = now.min() > before.max() or now.max() < before.min()
    return bool(outside) and min(now.size, before.size) >= ENOUGH


def _of_exchange(names: tuple[str, ...], pairs: list[Pair]) -> str:
    """Two exchanged columns in words."""
    now, before = (" and ".join(f"{np.median(pair[i]):.4g}" for pair in pairs) for i in (1, 0))
    return (
        f"Columns {' and '.join(map(repr, names))} look exchanged: their middle cells are {now}, "
        f"in training {before}."
    )


def _of_change(name: str, change: Change, before: np.ndarray, now: np.ndarray) -> str:
    """A change of unit in words."""
    cause = f" ({change.name})" if change.name else ""
    what = f"{abs(change.offset):.3g} {'more' if change.offset > 0 else 'less'}"
    if change.scale != 1 and not change.offset:
        size = max(change.scale, 1 / change.scale)
        what = f"{size:.3g} times {'larger' if change.scale > 1 else 'smaller'}"
    elif change.scale != 1:
        what = "on another scale"
    return (
        f"Column {name!r} is {what}{cause} than in training: its {now.size} cells lie between "
        f"{now.min():.4g} and {now.max():.4g}, those of training between {before.min():.4g} "
        f"and {before.max():.4g}."
    )
