"""The whole page from a small table: what is said is true."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.dummy import DummyClassifier

from bayesrbf.app.report import families
from bayesrbf.app.report.collect import Outcome, Report, collect
from bayesrbf.app.report.job import Job, Truth
from bayesrbf.app.report.options import FamilyName, Focus, Inference
from bayesrbf.app.report.reading import compute as read_columns
from bayesrbf.app.report.refits import read_learning
from bayesrbf.app.report.render import render
from bayesrbf.base.table_options import TableOptions
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.sensitivity import prior_sensitivity
from bayesrbf.table.kinds import kind_named
from tests.app.report.tables import mixed_table
from tests.house import ROOT

pytestmark = pytest.mark.slow

KINDS = {"size": "real", "weight": "real", "colour": "categorical"}
FEWER: Final = 40
"""Rows where a test fits many models, or those of a slow family."""


def job(inference: Inference = "laplace", n_obs: int = 70, **changes: Any) -> Job:
    """A job on the small table."""
    table = mixed_table(n_obs)
    fields = {
        "title": "small",
        "target": "outcome",
        "X": table[["size", "weight", "colour"]],
        "y": table["outcome"],
        "kinds": KINDS,
        "inference": inference,
        "seed": 0,
        "draws": 100,
        "folds": 2,
        "family": "mixture",
    }
    fields |= changes
    fields["kinds"] = {name: kind_named(word) for name, word in fields["kinds"].items()}
    return Job(**fields)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return collect(job())


def test_scores_are_of_all_labelled_rows(outcome: Outcome) -> None:
    labelled = int(job().y.notna().sum())
    assert outcome.report.performance.confusion.sum() == labelled
    assert [score.name for score in outcome.report.scores] == [
        "this model", "class frequencies", "logistic regression", "random forest",
    ]  # fmt: skip
    own, frequencies = outcome.report.scores[:2]
    assert own.log_loss[0] < frequencies.log_loss[0]
    right = np.trace(outcome.report.performance.confusion) / labelled
    assert own.accuracy[0] == pytest.approx(right)


def test_refits_are_those_of_the_recipe_on_samples_and_on_drawn_tables() -> None:
    groups = np.arange(FEWER) // 3
    together = {"groups": groups, "reading": TableOptions(group="ward")}
    own = job(n_obs=FEWER, stability=2, focus=Focus({"yes": 3.0}), **together)
    report = collect(own).report
    assert report.refits.stability is not None
    (event,) = report.refits.stability.events
    assert (event.event, event.threshold) == ("yes", 0.25)
    rng, drawn_by = np.random.default_rng(own.seed), groups.astype(str)
    names = np.unique(drawn_by)  # groups may have any names, and are in the order of these
    fit = families.FAMILIES["mixture"].procedure(dataclasses.replace(own, groups=groups))
    for refit in event.refits:
        drawn = names[rng.integers(names.size, size=names.size)]
        rows = np.concatenate([np.flatnonzero(drawn_by == one) for one in drawn])
        p = fit(own.X.iloc[rows], own.y.iloc[rows]).model.predict_proba(own.X)
        np.testing.assert_array_equal(refit, p[:, 1])
    labelled = int(own.y.notna().sum())
    assert report.refits.learning is not None
    assert report.refits.learning.n_obs == labelled < len(own.X)
    assert report.refits.learning.sizes.tolist() == [round(f * labelled) for f in (0.5, 1, 2, 4)]
    assert report.refits.learning.excess.shape == (4, 2)
    assert 0 < report.refits.learning.excess[-1].mean() < report.refits.learning.excess[0].mean()


def test_a_report_without_a_learning_curve_says_why() -> None:
    with pytest.warns(UserWarning, match=r"no learning curve: .* must have the method sample"):
        assert read_learning(job(stability=2), DummyClassifier().fit([[0]], [0]), None) is None


def test_the_slip_is_found(outcome: Outcome) -> None:
    worst = outcome.report.oddities.cells[0]
    assert worst.row == "5"
    assert worst.column in {"size", "weight"}
    assert outcome.report.uncertain_rows.novel[0].row == "5"


def test_figures_are_those_of_the_held_out_rows(outcome: Outcome) -> None:
    report, rows = outcome.report, outcome.held_out.scored
    p, labels = outcome.held_out.probabilities["this model"][rows], outcome.held_out.labels[rows]
    ((name, one, _),) = report.performance.classes
    c = report.classes.index(name)
    pairs = p[labels == c, c][:, None] - p[labels != c, c]
    assert one.auroc.value == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
    right = np.diag(report.performance.confusion) / report.performance.confusion.sum(axis=1)
    assert (one.sensitivity.value, one.specificity.value) == pytest.approx((right[c], right[1 - c]))
    assert report.judged.answers == pytest.approx((p.argmax(1) != labels).mean())
    assert report.oddities.improbable.number >= len(report.oddities.labels)


def test_doubt_is_ordered_by_the_threshold_and_adds_up(outcome: Outcome) -> None:
    record = outcome.report.uncertain_rows
    assert record.event is not None
    far = [abs(logit(row.probability) - logit(record.event.threshold)) for row in record.rows]
    assert far == sorted(far)
    for row in record.rows:
        called = row.predicted == record.event.name
        assert called == (row.probability >= record.event.threshold)
    assert record.undecided is not None
    open_here = sum(row.lower < record.event.threshold < row.upper for row in record.rows)
    assert open_here <= record.undecided <= len(record.outcome)
    assert len(record.rows) == 20
    own = outcome.held_out.probabilities["this model"][:, int(record.event.name == "yes")]
    for row in record.rows:  # of rows held out probability and interval are those of a new row
        if row.label:
            assert row.probability == pytest.approx(own[int(row.row) - 1])
        assert row.lower < row.probability < row.upper
        assert 0 < row.epistemic < row.aleatoric + row.epistemic <= np.log(2)


def test_everything_is_said_about_convergence(outcome: Outcome) -> None:
    names = [name for name, *_ in outcome.report.diagnostics.variables]
    assert {"class_probabilities", "means", "precision_diagonal"} <= set(names)
    assert {one.row for one in outcome.report.diagnostics.findings} >= {"pareto_k"}
    fit = outcome.model.fitted_
    told = prior_sensitivity(fit, new_rows(fit, job().X).cells).message
    assert f"Prior: {told}" in outcome.report.diagnostics.status


def test_coverage_without_truth_is_of_observed_cells(outcome: Outcome) -> None:
    imputations = outcome.report.imputations
    assert not imputations.hidden_truth
    assert imputations.n_checked == int(job().X[["size", "weight"]].notna().to_numpy().sum())
    assert np.all(np.diff(imputations.covered) >= 0)
    assert imputations.covered[-1] > 0.85


def test_page_of_a_real_run(outcome: Outcome) -> None:
    html = render(outcome.report)
    assert html.count("<section") == 9
    assert "nan" not in html.lower().split()
    assert ">None<" not in html
    section = html[html.index('id="unsure"') : html.index('id="odd"')]
    assert '<span class="option">--rehearse</span>' in section
    shares = re.findall(r"takes away about ([0-9.]+) %", html)
    assert all(float(share) <= 100 for share in shares)


FAMILIES: dict[FamilyName, str] = {
    "stack": "StackedClassifier",
    "rbf": "RBFNetworkClassifier",
    "sdgm": "SDGMClassifier",
    "median_lvq": "MedianLVQClassifier",
}


@pytest.fixture(scope="module", params=FAMILIES)
def of_family(request: pytest.FixtureRequest) -> tuple[str, Outcome]:
    """The small table by each of the other families."""
    family = request.param
    return family, collect(job("auto", rows_of(family), family=family, draws=40))


def rows_of(family: FamilyName) -> int:
    """Fewer rows for the families that fit longest."""
    return FEWER if family in {"rbf", "sdgm"} else 70


def test_every_family_gives_a_page(of_family: tuple[FamilyName, Outcome]) -> None:
    family, found = of_family
    report = found.report
    assert type(found.model).__name__ == report.described.estimator == FAMILIES[family]
    assert report.performance.confusion.sum() == int(job(n_obs=rows_of(family)).y.notna().sum())
    assert report.scores[0].log_loss[0] < report.scores[1].log_loss[0]
    assert report.imputations.n_checked > 0
    assert report.column_effects.contributions[0].most > 0
    for effect in report.column_effects.effects:
        np.testing.assert_allclose(effect.probabilities.sum(axis=1), 1)
        assert effect.weights.sum() == pytest.approx(1)
    assert found.uncertainty["epistemic_entropy"].notnull().all()
    html = render(report)
    assert html.count("<section") == 9
    assert "nan" not in html.lower().split()
    assert (">nearest component<" in html) == (family in {"mixture", "rbf"})
    assert ("members of the stack and their weights" in html) == (family == "stack")
    assert report.diagnostics.variables


def test_columns_are_shown_by_their_labelled_cells(
    of_family: tuple[FamilyName, Outcome],
) -> None:
    family, found = of_family
    report = found.report
    for column in report.learned.by_class:
        own = job(n_obs=rows_of(family))
        labelled = own.X[column.name][own.y.notna()].count()
        assert sum(of_class.cells for of_class in column.classes) == labelled
    assert bool(report.learned.means) == (family in {"mixture", "rbf"})
    if family == "stack":
        assert report.oddities.cells[0].row == "5"
        assert report.uncertain_rows.novel[0].row == "5"


def test_members_are_those_of_the_stack(of_family: tuple[FamilyName, Outcome]) -> None:
    family, found = of_family
    members = found.report.learned.members
    if family != "stack":
        assert members == ()
        return
    assert len({member.name for member in members}) == len(found.model.members_)
    assert sum(member.fitted for member in members) == pytest.approx(1)
    assert sum(member.mean for member in members) == pytest.approx(1)
    fitted = [member.fitted for member in members]  # the weights of what is given out
    assert fitted == sorted(fitted, reverse=True) == sorted(found.model.weights_, reverse=True)
    for member in members:
        assert 0 <= member.lower <= member.mean <= member.upper <= 1


@pytest.fixture(scope="module")
def pointed() -> Report:
    """A point estimate of a table whose truth is known."""
    complete = mixed_table(hidden=0.0)
    filled = complete.fillna({"size": 0.5, "weight": 1.0, "colour": "red"})
    truth = Truth(filled[["size", "weight", "colour"]], filled["outcome"])
    return collect(job("map", truth=truth)).report


def test_truth_is_used_where_it_is_known(pointed: Report) -> None:
    assert pointed.check is not None
    assert pointed.check.rows == int(job().y.isna().sum())
    assert pointed.imputations.hidden_truth
    holes = job().X[["size", "weight"]].isna().to_numpy().sum()
    assert pointed.imputations.n_checked == holes == pointed.imputations.truth.size


def test_point_estimate_claims_no_intervals(pointed: Report) -> None:
    assert not pointed.uncertain_rows.epistemic.any()
    html = render(pointed)
    assert "point estimate" in html
    assert "– to –" not in html


def test_rows_go_by_their_names_and_mistakes_by_their_costs() -> None:
    """An index that names rows is what the page and the draws call them."""
    ids = pd.Index([f"p{i:03d}" for i in range(len(job().X))], name="patient")
    named = job("laplace", X=job().X.set_axis(ids), focus=Focus({"yes": 4.0}))
    found = collect(named)
    report = found.report
    assert report.row_title == "patient"
    assert report.oddities.cells[0].row == "p004"
    assert all(row.row in ids for row in report.uncertain_rows.rows)
    assert found.uncertainty["obs"].to_numpy().tolist() == ids.tolist()
    assert ">patient</th>" in render(report)
    assert report.costs is not None
    assert report.costs.by_class[1] == 4.0 * report.performance.confusion[1, 0]
    mean = sum(report.costs.by_class) / report.performance.confusion.sum()
    assert report.judged.answers == report.costs.rows[0][1] == pytest.approx(mean)


def test_same_seed_same_report() -> None:
    small = job("map", X=job().X[["colour"]], kinds={"colour": "categorical"})
    first, again = (render(collect(small).report) for _ in range(2))
    assert first == again


PAGES = """
from bayesrbf.app.report.collect import collect
from bayesrbf.app.report.render import render
from bayesrbf.app.report.run import sharing
from tests.app.report.test_collect import FEWER, job
pages = []
for jobs in (1, 2):
    with sharing(jobs):
        pages.append(render(collect(job("auto", FEWER, draws=20)).report))
assert pages[0] == pages[1]
"""
"""In a process of its own: functions whose types are checked cannot be sent to others."""


def test_any_number_of_processes_makes_the_same_page() -> None:
    """Of a mixture, whose chains have processes; the fit of a stack is in test_cli_answers."""
    words = [sys.executable, "-W", "ignore", "-c", PAGES]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("columns", [["colour"], ["size"]])
def test_tables_of_one_kind(columns: list[str]) -> None:
    table = mixed_table()
    found = collect(job("map", X=table[columns], kinds={c: KINDS[c] for c in columns}))
    assert "<svg" in render(found.report)


def test_complete_table_with_every_label() -> None:
    table = mixed_table(hidden=0.0).fillna({"size": 0.0, "weight": 0.0, "colour": "red"})
    found = collect(job("map", X=table[["size", "weight", "colour"]], y=table["outcome"])).report
    assert found.imputations.missing == 0
    assert found.reading.missing == 0
    render(found)


def test_oddities_of_columns_are_said() -> None:
    rng = np.random.default_rng(0)
    n = 60
    y = pd.Series(rng.choice(["a", "b"], n), dtype=object)
    X = pd.DataFrame(
        {
            "constant": np.ones(n),
            "empty": np.full(n, np.nan),
            "one": (one := rng.normal(size=n)),
            "same": 3 * one + 1,
            "name": [f"row {i}" for i in range(n)],
            "fine": rng.normal(size=n),
        }
    )
    kinds = {c: "categorical" if c == "name" else "real" for c in X}
    told = read_columns(job("map", X=X, y=y, kinds=kinds)).notes
    assert [next(name for name in X if f"“{name}”" in note) for note in told] == ["one"]
    assert "“same”" in told[-1]
    assert not any(f"“{name}”" in note for note in told for name in ("fine", "constant", "name"))


def test_records_are_frozen(outcome: Outcome) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        outcome.report.title = "other"  # type: ignore[misc]


def test_degenerate_columns_and_a_class_of_one_row_are_survived() -> None:
    rng = np.random.default_rng(0)
    n = 30
    y = pd.Series(["rare", *np.tile(["a", "b"], n)[: n - 1]], dtype=object)
    X = pd.DataFrame(
        {
            "constant": np.full(n, 7.0),
            "empty": np.full(n, np.nan),
            "offset": 1e8 + rng.normal(size=n),
            "tiny": 1e-8 * rng.normal(size=n),
            "one level": ["k"] * n,
        }
    )
    kinds = {c: "categorical" if c == "one level" else "real" for c in X}
    found = collect(job("map", X=X, y=y, kinds=kinds)).report
    assert found.performance.confusion.sum() == n - 1
    assert "<svg" in render(found)
    losses = [score.log_loss[0] for score in found.scores]
    assert np.isfinite(losses).all()
