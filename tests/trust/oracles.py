"""Log densities against 50 digits and against the declared graphs; invariances of the fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tests.invariance import LAWS, broken
from tests.oracle_grid import TOLERANCE, cases, furthest, graph_equals_numerics, some
from tests.trust.sections import Section, Tried, portion, suite

GRAPHS = {True: 8, False: 1}
"""Configurations whose graph is compiled, which takes most of a minute each."""


def run(long: bool) -> Iterator[Tried | str]:
    """The whole product of configurations, or some of it."""
    chosen = some(portion(len(list(cases()))) if long else 30, seed=0)
    errors = np.array([furthest(case) for case in chosen])
    yield Tried(
        "configurations of mixtures whose log densities have 50 digits beside them",
        len(chosen),
        int(np.sum(~(errors[:, 0] < TOLERANCE))),
        "largest relative error {:.1e}, condition up to {:.1e}".format(*errors.max(axis=0)),
    )
    wrong = Counter(str(case) for case in some(GRAPHS[long], seed=1) if differs(case))
    yield Tried(
        "configurations of the same whose graph is compiled: value and gradient",
        GRAPHS[long],
        wrong.total(),
        "; ".join(wrong),
    )
    yield suite(
        "graph = numerics = brute force: pairs of options, factors, counts, every family",
        "tests/models",
        "tests/inference/test_plug.py",
        long=long,
    )
    for law in LAWS:
        found = broken(law, long)
        through = [
            f"{name}: {error:.1e}" for name, error in found.items() if error > LAWS[law].most
        ]
        yield Tried(
            law,
            len(found),
            len(through),
            "; ".join([f"largest difference {max(found.values()):.1e}", *through]),
        )
    yield suite("order of rows, columns and labels", "tests/estimators/test_orders.py", long=long)


def differs(case: object) -> bool:
    """Whether the graph of a configuration is another density."""
    try:
        graph_equals_numerics(case)
    except AssertionError:
        return True
    return False


SECTION = Section("oracle", "Densities and invariances", run)
