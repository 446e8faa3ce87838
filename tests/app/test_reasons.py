"""Sentences on what speaks for a decision and against it: whom they name, and about which class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf.app.explain import CellEffect, Reasons, Why, explain_row, lines_of_row, reasons_of
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.datasets import demo_tables


def told(adds: list[float], error: float = 0.0) -> Reasons:
    """Reasons of cells with these contributions; column j holds j."""
    order = np.argsort(-np.abs(adds), kind="stable").tolist()
    cells = [CellEffect(f"c{j}", float(j), adds[j], error, 9.0) for j in order]
    return reasons_of(Why("a", 0.0, sum(adds), cells), "grant")


def places(sentences: object, verb: str) -> list[int]:
    """Columns that sentences name, all of which have the same verb."""
    assert isinstance(sentences, list)
    words = [sentence.split() for sentence in sentences]
    assert {(one[1], one[3], one[4], one[5]) for one in words} <= {
        ("of", "speaks", verb, "“grant”.")
    }
    assert [one[0] for one in words] == [f"c{one[2]}" for one in words]
    return [int(one[2]) for one in words]


@pytest.mark.parametrize("seed", range(5))
def test_the_four_strongest_of_each_sign_are_told_in_their_order(seed: int) -> None:
    adds = np.random.default_rng(seed).normal(size=14)
    order = np.argsort(adds)
    found = told(adds.tolist())
    assert places(found.against, "against") == [j for j in order if adds[j] < 0][:4]
    assert places(found.in_favour, "for") == [j for j in order[::-1] if adds[j] > 0][:4]


def test_a_cell_whose_sign_is_not_sure_or_not_shown_is_not_told() -> None:
    assert told([0.3, -0.3, 0.1, -0.1], error=0.1) == Reasons(
        "grant", ["c1 of 1 speaks against “grant”."], ["c0 of 0 speaks for “grant”."]
    )
    assert told([0.004, -0.004]) == Reasons("grant", [], [])


@pytest.fixture(scope="module")
def tumours() -> tuple[bayesrbf.HybridMixtureClassifier, pd.DataFrame]:
    """A fitted model, and its rows."""
    table = demo_tables(np.random.default_rng(0))[1].iloc[:120, [0, 1, 4, -1]]
    X, y = table.iloc[:, :-1], table.iloc[:, -1]
    return bayesrbf.HybridMixtureClassifier(calibrate=False, random_state=0).fit(X, y), X


def test_with_costs_the_reasons_are_those_of_the_decision(
    tumours: tuple[bayesrbf.HybridMixtureClassifier, pd.DataFrame],
) -> None:
    """The class of least expected cost is not the most probable one, and has the other signs."""
    model, X = tumours
    p = model.predict_proba(X)
    place = int(np.argmin(np.abs(p.max(axis=1) - 0.8)))
    likely, other = (str(model.classes_[c]) for c in (p[place].argmax(), p[place].argmin()))
    plain = explain_row(model, X, place + 1, ANYTHING)
    asked = explain_row(model, X, place + 1, Focus({other: 50.0}, actions={other: "operate"}))
    assert (plain.reasons.decision, asked.reasons.decision) == (likely, "operate")
    assert asked.decision == "operate"
    shapley = model.explain(X.iloc[[place]])["shapley"].isel(obs=0).sel(label=other).to_numpy()
    for sentences, verb, sign in (
        (asked.reasons.against, "against", -1),
        (asked.reasons.in_favour, "for", 1),
    ):
        own = [j for j in np.argsort(-np.abs(shapley)) if sign * shapley[j] > 0.005]
        assert [one.split(" of ")[0] for one in sentences] == [X.columns[j] for j in own]
        assert all(one.endswith(f" speaks {verb} “operate”.") for one in sentences)
    assert len(plain.reasons.against) == len(asked.reasons.in_favour)
    assert set(asked.reasons.against) | set(asked.reasons.in_favour)
    lines = lines_of_row(asked)
    assert all(f"  {one}" in lines for one in (*asked.reasons.against, *asked.reasons.in_favour))


def test_a_row_without_a_cell_has_no_reasons(
    tumours: tuple[bayesrbf.HybridMixtureClassifier, pd.DataFrame],
) -> None:
    model, X = tumours
    found = explain_row(model, X.iloc[[0]].assign(**dict.fromkeys(X.columns, np.nan)), 1)
    assert (found.reasons.against, found.reasons.in_favour) == ([], [])
    lines = lines_of_row(found)
    assert {"  No cell speaks against it.", "  No cell speaks for it."} <= set(lines)
