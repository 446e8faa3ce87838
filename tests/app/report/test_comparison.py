"""Comparisons: the best comes first, and differences are those of the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesrbf.app.report import families
from bayesrbf.app.report.families import (
    FAMILIES,
    Fitted,
    Procedure,
    compare,
    judged,
    lines_of,
    peers,
)
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.table.kinds import kind_named
from tests.app.report.tables import mixed_table


def held_out(n: int = 400) -> HeldOutRows:
    """The truth, the truth made too sure, and the frequencies."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0], size=n)
    labels = (p[:, 0] < rng.random(n)).astype(int)
    sharp = p**4 / (p**4).sum(1, keepdims=True)
    every = {"sharp": sharp, "half": np.full((n, 2), 0.5), "truth": p}
    seconds = dict.fromkeys(every, 1.0)
    return HeldOutRows(("a", "b"), labels, np.arange(n) % 5, every, seconds)


def test_the_truth_comes_first_and_differences_are_paired() -> None:
    found = held_out()
    told = judged(found)
    assert told.contestants[0].name == "truth"
    assert [one.log_loss for one in told.contestants] == sorted(
        one.log_loss for one in told.contestants
    )
    rows = np.arange(found.labels.size)
    losses = {name: -np.log(p[rows, found.labels]) for name, p in found.probabilities.items()}
    for one in told.contestants:
        gap = losses[one.name] - losses["truth"]
        assert one.behind == pytest.approx(gap.mean())
        assert one.behind_error == pytest.approx(gap.std(ddof=1) / np.sqrt(gap.size))
        assert one.behind_lower <= one.behind <= one.behind_upper
    assert lines_of(told)[-1] == (
        "truth has the lowest log loss; the 90\xa0% intervals of all differences are above 0."
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_sentence_names_those_whose_interval_holds_0(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1.0, 1.0], size=100)
    labels = (p[:, 0] < rng.random(100)).astype(int)
    bent = {f"model {t:.2f}": p**t for t in rng.uniform(0.5, 3.0, 6)}
    every = {name: one / one.sum(1, keepdims=True) for name, one in bent.items()}
    seconds = dict.fromkeys(every, 1.0)
    told = judged(HeldOutRows(("a", "b"), labels, np.arange(100) % 5, every, seconds))
    for one in told.contestants[1:]:
        assert (one.name in told.message) == (one.behind_lower <= 0)
    assert "90\xa0% interval" in told.message


def test_contestants_do_not_depend_on_who_else_takes_part() -> None:
    found = held_out()
    few = replace(found, probabilities={"half": found.probabilities["half"]})
    (alone,) = judged(few).contestants
    (beside,) = (one for one in judged(found).contestants if one.name == "half")
    assert (alone.log_loss, alone.standard_error) == (beside.log_loss, beside.standard_error)


def job() -> Job:
    table = mixed_table(60)
    y = table.pop("outcome").astype(object)
    real = kind_named("real")
    kinds = {"size": real, "weight": real, "colour": kind_named("categorical")}
    return Job("t", "outcome", table, y.where(y.notna(), None), kinds, "map", 0, folds=2)


def test_every_peer_takes_holes_categories_and_hidden_labels() -> None:
    asked = job()
    told = compare(asked, ())
    assert {one.name for one in told.contestants} == set(peers(asked))
    by_name = {one.name: one for one in told.contestants}
    assert by_name["logistic regression"].log_loss < by_name["class frequencies"].log_loss
    assert all(one.seconds > 0 for one in told.contestants)


def test_a_peer_sees_no_level_of_new_rows_as_a_known_one() -> None:
    asked = job()
    for fit in peers(asked).values():
        model = fit(asked.X, asked.y)
        new = asked.X.assign(colour=pd.Series("green", asked.X.index, dtype=object))
        assert np.isfinite(model.predict_proba(new)).all()


def test_a_family_that_cannot_be_fitted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Job) -> Procedure:
        def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
            raise ValueError("too few rows.")

        return fit

    broken = replace(FAMILIES["rbf"], procedure=refuse)
    monkeypatch.setitem(families.FAMILIES, "rbf", broken)
    with pytest.raises(ValueError, match=r"rbf cannot be fitted .* too few rows\. .*--model"):
        compare(job(), ("rbf",))
