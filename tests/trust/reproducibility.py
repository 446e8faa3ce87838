"""The same seed: the same bits on threads and processes, and nearly the same on another machine."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.degenerate import METHODS
from tests.same_bits import OTHER, QUICK, THREADS, furthest, under
from tests.trust.sections import Line, Row, Section

ACROSS = 1e-10
(FIRST, ALONE), *OTHERS = THREADS.items()


def lines(long: bool) -> list[Line]:
    """Every environment beside the first, by a model after the other."""
    models = list(METHODS) if long else list(QUICK)
    environments = [(f"bit-equal: {FIRST}, {name}", among, 0.0) for name, among in OTHERS]
    if long:
        what = "within 1e-10 on an older processor's instructions"
        environments.append((what, OTHER, ACROSS))
    return [
        Line(
            f"answers {what}",
            partial(beside, tuple(among.items()), most, tuple(models)),
            len(models),
            "models and methods",
            5,
        )
        for what, among, most in environments
    ]


def beside(
    among: tuple[tuple[str, str], ...], most: float, models: tuple[str, ...], part: int, times: int
) -> Row:
    """Answers of some models in two environments."""
    chosen = models[5 * part :][:times]
    found = furthest(answers(tuple(ALONE.items()), chosen), answers(among, chosen))
    away = [f"{name}: {distance:.0e}" for name, distance in found.items() if distance > most]
    return {"tried": len(found), "through": len(away), "": "; ".join(away)}


@cache
def answers(environment: tuple[tuple[str, str], ...], chosen: tuple[str, ...]) -> dict[str, Any]:
    """What models say in an environment, once."""
    with tempfile.TemporaryDirectory() as folder:
        return under(dict(environment), Path(folder) / "answers.npz", chosen)


SECTION = Section("bits", lines)
