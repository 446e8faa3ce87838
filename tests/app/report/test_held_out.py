"""What a report says of rows that a fit has not seen is what new rows of the same kind show."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.collect import Outcome, collect
from bayesrbf.app.report.density import judge_table
from bayesrbf.app.report.families import FAMILIES, Fitted, Procedure, common_settings
from bayesrbf.app.report.filled import left_out
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.render import render
from bayesrbf.table.kinds import kind_named
from tests.app.report.tables import mixed_table

ROWS, COLUMNS, NEW = 60, 12, 2_000


def simulated(rows: int, distance: float, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Independent normal columns; two classes whose means are ``2 distance`` apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    shift = distance / np.sqrt(COLUMNS) * (2 * labels - 1)
    cells = rng.normal(size=(rows, COLUMNS)) + shift[:, None]
    names = [f"x{j}" for j in range(COLUMNS)]
    return pd.DataFrame(cells, columns=names), pd.Series(np.array(["a", "b"], object)[labels])


def point(X: pd.DataFrame, y: pd.Series) -> Outcome:
    """The report of a mixture of one structure at its fitted point."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, "mixture", replace(FAMILIES["mixture"], procedure=alone))
        return collect(job(X, y))


def alone(asked: Job) -> Procedure:
    """A component a class with a full covariance of its own, fitted to its likelihood."""
    shape = {"covariance_type": "full", "shared_covariance": False, "objective": "likelihood"}
    model = HybridMixtureClassifier(**shape, unlabelled_weight=0.0, **common_settings(asked))

    def fit(X: pd.DataFrame, y: pd.Series) -> Fitted:
        return Fitted(clone(model).fit(X, y), repr(model), "One structure.")

    return fit


def job(X: pd.DataFrame, y: pd.Series) -> Job:
    numeric = X.select_dtypes("number").columns
    kinds = {n: kind_named("real" if n in numeric else "categorical") for n in X}
    return Job("simulated", "y", X, y, kinds, "map", 0, family="mixture")


def without_some_labels() -> tuple[pd.DataFrame, pd.Series]:
    """Columns and labels that say nothing about each other, some labels hidden."""
    X, y = simulated(ROWS, 0.0, seed=0)
    return X, y.where(np.arange(ROWS) % 4 > 0, None)


@pytest.fixture(scope="module")
def noise() -> Outcome:
    return point(*without_some_labels())


@pytest.mark.slow
def test_fillings_are_as_good_as_the_report_says(noise: Outcome) -> None:
    """On noise no column helps another: error and coverage are those of new rows."""
    said = noise.report.imputations
    X, _ = simulated(NEW, 0.0, seed=1)
    judged = judge_table(job(*without_some_labels()))
    cells = left_out(judged.density, X.assign(y=None))
    error = np.sqrt(np.mean((X.to_numpy() - cells.expected) ** 2))
    (_, own), (_, of_mean) = said.error
    assert said.n_checked == ROWS * COLUMNS
    assert own > 0.99 * of_mean
    assert of_mean == pytest.approx(1, abs=0.05)
    # Cells of a row share what the row is judged by: a row is the unit of sampling.
    inside = cells.tail[..., None] >= 1 - said.nominal
    spread = inside.mean(1).std(0) / np.sqrt(ROWS)
    assert (np.abs(said.covered - inside.mean((0, 1))) < 3 * spread).all()
    assert own == pytest.approx(error, rel=0.1)


@pytest.mark.slow
def test_the_page_says_what_was_held_out(noise: Outcome) -> None:
    html = " ".join(render(noise.report).split())
    assert f"of {ROWS * COLUMNS} cells of rows held out of the fit" in html
    assert f"in {noise.report.uncertain_rows.below} of {ROWS - ROWS // 4} rows held out" in html
    (verdict,) = re.findall(r"<p class=.verdict.>(.*?)</p>", html)
    assert verdict.startswith("No")
    assert "On 45 rows that it had not seen" in html


@pytest.mark.slow
def test_doubt_is_counted_on_rows_held_out() -> None:
    """The share of unsure rows is that of new rows; the fit is surer of the rows it saw."""
    found = point(*simulated(ROWS, 2.0, seed=1))
    record = found.report.uncertain_rows
    own = found.held_out.probabilities["this model"]
    assert record.below == int((own.max(1) < record.threshold).sum())
    assert record.judged == ROWS
    X, _ = simulated(NEW, 2.0, seed=2)
    new = float((found.model.predict_proba(X).max(1) < record.threshold).mean())
    seen = float((found.uncertainty["probability"].to_numpy().max(1) < record.threshold).mean())
    assert abs(record.below / ROWS - new) < 3 * np.sqrt(new * (1 - new) / ROWS)
    assert seen < new / 3


@pytest.mark.slow
def test_columns_that_a_part_of_the_rows_lacks() -> None:
    """A column with one cell is empty in one fit; others are judged, levels are not."""
    table = mixed_table()
    labelled = table["outcome"].notna().to_numpy().argmax()
    alone = np.where(np.arange(len(table)) == labelled, 2.0, np.nan)
    X = table[["size", "colour"]].assign(rare=alone)
    known = point(X, table["outcome"]).report.imputations.n_checked
    assert known == X["size"].notna().sum()
