"""Log densities against 50 digits and against the declared graphs; invariances of the fits."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from tests.invariance import FAMILIES, LAWS, broken
from tests.oracle_grid import POINTS, TOLERANCE, Case, cases, furthest, graph_equals_numerics
from tests.trust.sections import Line, Row, Section

SHORT = 30
GRAPHS = {True: 8, False: 1}
"""Configurations whose graph is compiled, which takes most of a minute each."""


@cache
def chosen(seed: int) -> list[Case]:
    """All configurations, in a random order: a share of them is spread over the product."""
    every = list(cases())
    return [every[i] for i in np.random.default_rng(seed).permutation(len(every))]


def digits(long: bool) -> list[Line]:
    """The whole product of configurations, or some of it."""
    asked = len(chosen(0)) if long else SHORT
    return [
        *(
            Line(
                f"log densities and conditional moments of mixtures beside 50 digits, {kind}",
                partial(beside, kind),
                asked,
                "configurations",
                100,
            )
            for kind in POINTS
        ),
        Line(
            "value and gradient of mixtures beside their compiled graphs",
            graphs,
            GRAPHS[long],
            "configurations",
            1,
        ),
    ]


def beside(kind: str, number: int, times: int) -> Row:
    """Errors of so many configurations of a part."""
    found = [furthest(case, kind) for case in chosen(0)[100 * number :][:times]]
    away = [max(one.log_density, one.conditional) for one in found]
    return {
        "tried": times,
        "through": sum(not error < TOLERANCE for error in away),
        "largest relative error of a log density": max(one.log_density for one in found),
        "of a mean or variance": max(one.conditional for one in found),
        "largest condition number": max(one.condition for one in found),
    }


def graphs(number: int, times: int) -> Row:
    """Configurations whose graph is another density."""
    wrong = [str(case) for case in chosen(1)[number:][:times] if differs(case)]
    return {"tried": times, "through": len(wrong), "": "; ".join(wrong)}


def differs(case: Case) -> bool:
    """Whether the graph of a configuration is another density."""
    try:
        graph_equals_numerics(case)
    except AssertionError:
        return True
    return False


def invariances(long: bool) -> list[Line]:
    """One line a law: all families, some tables."""
    return [
        Line(f"{law}, {len(FAMILIES)} models", partial(law_of, law), 2 if long else 1, "tables", 1)
        for law in LAWS
    ]


def law_of(law: str, seed: int, times: int) -> Row:
    """Largest difference of any model on a table."""
    found = broken(law, range(seed, seed + times))
    through = [f"{name}: {away:.1e}" for name, away in found.items() if away > LAWS[law].most]
    return {
        "tried": len(found),
        "through": len(through),
        "largest difference": max(found.values()),
        "": "; ".join(through),
    }


SECTIONS = (
    Section("digits", digits),
    Section("invariance", invariances),
)
