"""Log densities against 50 digits and against the declared graphs; invariances of the fits."""

from __future__ import annotations

from collections.abc import Iterator

from tests.invariance import LAWS, broken
from tests.oracle_grid import POINTS, TOLERANCE, Case, cases, furthest, graph_equals_numerics, some
from tests.trust.sections import Section, Tried, portion, suite

GRAPHS = {True: portion(8), False: 1}
"""Configurations whose graph is compiled, which takes most of a minute each."""


def digits(long: bool) -> Iterator[Tried | str]:
    """The whole product of configurations, or some of it."""
    chosen = some(portion(len(list(cases()))) if long else 30, seed=0)
    for kind in POINTS:
        found = [furthest(case, kind) for case in chosen]
        condition = max(one.condition for one in found)
        for what, errors in (
            ("log densities", [one.log_density for one in found]),
            ("conditional means and variances", [one.conditional for one in found]),
        ):
            yield Tried(
                f"configurations of mixtures whose {what} have 50 digits beside them, {kind}",
                len(chosen),
                sum(not error < TOLERANCE for error in errors),
                f"largest relative error {max(errors):.1e}, condition up to {condition:.1e}",
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
