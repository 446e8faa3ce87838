"""Log densities against 50 digits and against the declared graphs; invariances of the fits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.invariance import LAWS, broken
from tests.oracle_grid import TOLERANCE, Case, cases, furthest, graph_equals_numerics, some
from tests.trust.sections import Section, Tried, portion, suite

GRAPHS = {True: portion(8), False: 1}
"""Configurations whose graph is compiled, which takes most of a minute each."""


def digits(long: bool) -> Iterator[Tried | str]:
    """The whole product of configurations, or some of it."""
    chosen = some(portion(len(list(cases()))) if long else 30, seed=0)
    errors = np.array([furthest(case) for case in chosen])
    yield Tried(
        "configurations of mixtures whose log densities have 50 digits beside them",
        len(chosen),
        int(np.sum(~(errors[:, 0] < TOLERANCE))),
        "largest relative error {:.1e}, condition up to {:.1e}".format(*errors.max(axis=0)),
    )
    wrong = [str(case) for case in some(GRAPHS[long], seed=1) if differs(case)]
    yield Tried(
        "configurations of the same whose graph is compiled: value and gradient",
        GRAPHS[long],
        len(wrong),
        "; ".join(wrong),
    )


def differs(case: Case) -> bool:
    """Whether the graph of a configuration is another density."""
    try:
        graph_equals_numerics(case)
    except AssertionError:
        return True
    return False


def invariances(long: bool) -> Iterator[Tried | str]:
    """One line a law: all families, some tables."""
    for law in LAWS:
        found = broken(law, long)
        through = [f"{name}: {away:.1e}" for name, away in found.items() if away > LAWS[law].most]
        remark = "; ".join([f"largest difference {max(found.values()):.1e}", *through])
        yield Tried(law, len(found), len(through), remark)


def suites(long: bool) -> Iterator[Tried | str]:
    """Tests of the same kind."""
    yield suite(
        "graph = numerics = brute force: pairs of options, factors, counts, every family",
        "tests/models",
        "tests/inference/test_plug.py",
        long=long,
    )
    yield suite("order of rows, columns and labels", "tests/estimators/test_orders.py", long=long)


SECTIONS = (
    Section("digits", "Densities: fifty digits and graphs", digits),
    Section("invariance", "Units, order and weights", invariances),
    Section("oracles", "Densities: brute force", suites),
)
