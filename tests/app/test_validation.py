"""Labelled new rows: what is planted is found, and chance is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup, escape

import bayesrbf
from bayesrbf import HybridMixtureClassifier, Validation, recalibrate
from bayesrbf.answers import performance
from bayesrbf.app.check import DriftCheck
from bayesrbf.app.remarks import USE, Remark
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.judgement import pictures, sentences
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.render import render_validation
from bayesrbf.app.validate import SURE, HeldOut, of_known_rows, validation_of
from bayesrbf.base.table_options import TableOptions
from bayesrbf.fit.asking import known_rows
from tests.cases import first_quick, generative

CLASSES = np.array(["a", "b", "c"])


TRAINED_ROWS = 400
USUAL = Focus(level=SURE)


def drawn(
    n: int, seed: int, shares: tuple[float, ...] = (0.5, 0.3, 0.2)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Class frequencies of training, probabilities of new rows and labels drawn from them."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(4 * np.array(shares), size=n)
    labels = (p.cumsum(1)[:, :-1] < rng.random((n, 1))).sum(1)
    return np.array(shares), p, labels


def judged(
    trained: np.ndarray,
    p: np.ndarray,
    labels: np.ndarray,
    focus: Focus = USUAL,
    groups: np.ndarray | None = None,
    before: HeldOut | None = None,
) -> Validation:
    """The judgement on probabilities of rows and the codes of their labels."""
    classes = CLASSES[: trained.size]
    X, y = pd.DataFrame(index=range(labels.size)), pd.Series(classes[labels])
    reading = TableOptions(group=None if groups is None else "group")
    job = Job("", "outcome", X, y, {}, "map", 0, focus=focus, reading=reading, groups=groups)
    rows = trained * TRAINED_ROWS
    return validation_of(p, labels, rows, classes.tolist(), job, before=before)


def findings(result: Validation) -> set[str]:
    return {remark.topic for remark in result.findings}


@pytest.mark.slow
def test_a_model_that_is_right_is_rarely_found_wrong() -> None:
    """Error, slope and frequencies are each found by chance once in a hundred tables."""
    found = [topic for seed in range(150) for topic in findings(judged(*drawn(120, seed)))]
    assert len(found) <= 9  # of three tests at 1 % in 150 tables: at most 4.5 are expected


def test_scores_are_what_brute_force_gives_and_what_is_expected_of_them() -> None:
    trained, p, labels = drawn(2000, 1)
    by_name = {one.name: one for one in judged(trained, p, labels).scores}
    loss = -np.log(p[np.arange(labels.size), labels])
    assert by_name["log loss"].value == pytest.approx(loss.mean())
    assert by_name["share right"].value == pytest.approx((p.argmax(1) == labels).mean())
    assert by_name["log loss"].frequencies == pytest.approx(-np.log(trained[labels]).mean())
    for name in ("log loss", "Brier score", "share right"):
        one = by_name[name]
        error = (one.upper - one.lower) / (2 * 1.645)
        assert abs(one.value - one.expected) < 3.5 * error


def test_every_class_is_judged_against_the_rest_as_by_brute_force() -> None:
    trained, p, labels = drawn(150, 8)
    told = judged(trained, p, labels)
    assert list(told.against_rest) == CLASSES.tolist()
    for c, found in enumerate(told.against_rest.values()):
        own, others = p[labels == c, c], p[labels != c, c]
        pairs = own[:, None] - others
        assert found.auroc.value == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
        assert found.sensitivity.value == pytest.approx((p[labels == c].argmax(1) == c).mean())
        assert found.specificity.value == pytest.approx((p[labels != c].argmax(1) != c).mean())
        for at in found.thresholds:
            assert at.called.value == pytest.approx((p[:, c] >= at.threshold).mean())
            assert at.sensitivity.value == pytest.approx((own >= at.threshold).mean())
    assert "AUROC" in str(told)


def test_probabilities_that_are_too_extreme_are_found_and_named() -> None:
    trained, p, labels = drawn(600, 2)
    sharp = p**3 / (p**3).sum(1, keepdims=True)
    told = judged(trained, sharp, labels)
    assert "calibration" in findings(told)
    assert any("too extreme" in remark.sentence for remark in told.remarks)
    flat = p**0.3 / (p**0.3).sum(1, keepdims=True)
    assert any("too timid" in remark.sentence for remark in judged(trained, flat, labels).remarks)


def test_other_class_frequencies_are_found_and_telling_them_helps() -> None:
    trained, p, labels = drawn(3000, 3, (0.5, 0.5))
    keep = (labels == 1) | (np.arange(labels.size) % 5 == 0)
    told = judged(trained, p[keep], labels[keep])
    assert {"classes", "calibration"} <= findings(told)
    (sentence,) = (one.sentence for one in told.remarks if one.topic == "classes")
    assert "class_prior" in sentence
    after, before = (float(word) for word in sentence.rstrip(".").split() if word[:2] == "0.")
    assert after < before


@pytest.mark.parametrize("seed", first_quick(range(40), 10))
def test_every_sentence_says_what_the_intervals_beside_it_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trained, p, labels = drawn(int(rng.integers(10, 400)), seed)
    bent = p ** rng.uniform(0.4, 2.5)
    costs = {"a": 5.0} if seed % 2 else {}
    bent /= bent.sum(1, keepdims=True)
    told = judged(rng.permutation(trained), bent, labels, Focus(costs, level=SURE))
    assert told.prob == 0.99
    assert f"{round(100 * told.prob)}\xa0% interval" in str(told)
    by_topic = {remark.topic: remark for remark in told.remarks}
    slope = next(one for one in told.scores if one.name == "calibration slope")
    remark = by_topic["calibration"]
    found = told.judgement.scores[0].calibration
    right = slope.lower <= 1 <= slope.upper and found.error <= found.noise[1]
    few = min(sorted(np.bincount(labels))[1:]) < 100
    assert remark.is_finding == (not right)
    assert ("come true as often as they say, as far" in remark.sentence) == (right and not few)
    assert ("cannot be judged" in remark.sentence) == (right and few)
    assert ("too timid" in remark.sentence) == (slope.lower > 1)
    assert ("too extreme" in remark.sentence) == (slope.upper < 1)
    gain, worth = told.judgement.judged.base.gain.interval, by_topic["worth"]
    assert ("It is better than the class frequencies" in worth.sentence) == (gain.lower > 0)
    assert ("too few" in worth.sentence.lower()) == told.judgement.judged.is_open
    assert worth.is_finding == (gain.lower <= 0 and "too few" not in worth.sentence.lower())
    changed = [not one.lower <= one.trained <= one.upper for one in told.classes]
    assert by_topic["classes"].is_finding == any(changed)
    assert ("No change" in by_topic["classes"].sentence) == (not any(changed))
    assert all(one.lower <= one.share <= one.upper for one in told.classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_page_has_what_the_sections_of_the_report_say_of_new_rows(n_classes: int) -> None:
    shares = (0.5, 0.3, 0.2) if n_classes == 3 else (0.6, 0.4)
    trained, p, labels = drawn(150, 7, shares)
    told = judged(trained, p, labels, Focus({"a": 3.0}, level=SURE), before=(p, labels))
    page = render_validation(told, "new <rows>")
    every = {**sentences(told.judgement), "advice": told.advice}
    for name, one in every.items():
        assert str(escape(one)) in page or name == "scores", name  # a line on rivals: there is none
    drawn_ = [one for one in pictures(told.judgement).values() if isinstance(one, Markup)]
    assert sum(one in page for one in drawn_) >= 4
    assert "new &lt;rows&gt;" in page
    record = told.to_dict()
    assert record["evidence"] == every["evidence"]
    assert record["rows"] == labels.size
    costs = (np.arange(n_classes) != np.arange(n_classes)[:, None]) * np.array(
        [[3.0], [1.0], [1.0]]
    )[:n_classes]
    paid = costs[labels, (p @ costs).argmin(1)]
    assert record["cost_of_a_row"] == pytest.approx(paid.mean())
    always = costs[labels].mean(0).min()
    assert record["leads"][1]["cost of a row"]["value"] == pytest.approx(always - paid.mean())
    assert list(record["before"]) == list(record["against_rest"])
    assert len(told.against_rest) == (1 if n_classes == 2 else 3)


def test_probabilities_of_no_worth_are_found() -> None:
    trained, p, labels = drawn(300, 4)
    told = judged(trained, p, np.random.default_rng(0).permutation(labels))
    assert {"worth", "calibration"} <= findings(told)


def test_what_is_not_known_is_not_said_to_be_so() -> None:
    """A gain that is not known is called that, and frequencies are seen not to change."""
    trained = np.array([0.5, 0.5])
    labels = np.tile([0, 1], 15)
    told = {}
    for name, right in (("some", 0.55), ("much", 0.9)):
        of_class = np.where(np.arange(30) < 12, 1 - right, right) if name == "some" else right
        p = np.stack([np.where(labels == 0, of_class, 1 - of_class)] * 2, axis=1)
        p[:, 1] = 1 - p[:, 0]
        remarks = judged(trained, p, labels).remarks
        told[name] = {remark.topic: remark.sentence for remark in remarks}
    assert told["some"]["worth"].startswith("Too few rows to tell whether it is better")
    assert told["much"]["worth"].startswith("It is better than the class frequencies")
    assert "cannot be judged with 15 rows of the rarer class" in told["some"]["calibration"]
    assert "come true as often as they say, as far" not in told["much"]["calibration"]


@pytest.fixture(scope="module")
def fitted() -> HybridMixtureClassifier:
    X, y = sick_and_well(200, 0)
    return HybridMixtureClassifier(1, cv=3, random_state=0).fit(X, y)


def sick_and_well(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Two classes that two columns tell apart, mostly."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.5
    X = pd.DataFrame({"age": rng.normal(50 + 12 * sick, 9), "enzyme": rng.normal(sick, 1.0)})
    return X, pd.Series(np.where(sick, "sick", "well"), name="outcome", dtype=object)


def test_classes_that_training_did_not_have_are_named_and_not_scored(
    fitted: HybridMixtureClassifier,
) -> None:
    X, y = sick_and_well(60, 1)
    known = y.copy()
    y[:3], y[3:7] = "new", None
    result = bayesrbf.validate(fitted, X, y)
    assert (result.target, result.rows, result.unlabelled) == ("outcome", 53, 4)
    assert "labels" in findings(result)
    assert "'new' (3)" in str(result)
    assert "53 rows labelled by outcome; 4 rows without a label" in str(result)
    without = bayesrbf.validate(fitted, X[7:], known[7:])
    for one, other in zip(result.scores, without.scores, strict=True):
        assert one.value == pytest.approx(other.value)


def test_labels_may_be_an_array_and_the_model_a_file(
    fitted: HybridMixtureClassifier, tmp_path: Path
) -> None:
    X, y = sick_and_well(60, 1)
    result = bayesrbf.validate(fitted, X, y)
    fitted.save(tmp_path / "model")
    other = bayesrbf.validate(tmp_path / "model", X, y.to_numpy())
    assert other.target == ""
    assert other.scores == result.scores
    assert str(other).startswith("60 rows with a label\n")
    assert result.to_dict()["against_rest"]["sick"]["auroc"]["value"] > 0.5


def test_numbers_are_the_classes_of_their_value() -> None:
    """Labels of which some are missing are floats where those of training were whole numbers."""
    X, y = sick_and_well(120, 0)
    model = HybridMixtureClassifier(1, cv=3, random_state=0).fit(X, (y == "sick").astype(int))
    new, labels = sick_and_well(40, 1)
    floats = (labels == "sick").astype(float)
    floats[:5] = np.nan
    result = bayesrbf.validate(model, new, floats)
    assert (result.rows, result.unlabelled) == (35, 5)
    assert [one.label for one in result.classes] == ["0", "1"]


def test_costs_decide_and_are_scored(fitted: HybridMixtureClassifier) -> None:
    X, y = sick_and_well(80, 2)
    dear = bayesrbf.validate(fitted, X, y, costs={"sick": 20.0})
    plain = bayesrbf.validate(fitted, X, y)
    assert dear.scores[-1].name == "cost of a row"
    assert "cost" in {one.topic for one in dear.remarks}
    sick = dear.against_rest["sick"].sensitivity.value
    assert sick >= plain.against_rest["sick"].sensitivity.value
    with pytest.raises(ValueError, match="'ill' has a cost and is no class"):
        bayesrbf.validate(fitted, X, y, costs={"ill": 2.0})


@pytest.mark.parametrize("labelled", [0, 1])
def test_too_few_labels_are_refused(fitted: HybridMixtureClassifier, labelled: int) -> None:
    X, y = sick_and_well(20, 3)
    y[labelled:] = None
    with pytest.raises(ValueError, match="at least 2"):
        bayesrbf.validate(fitted, X, y)


def test_no_interval_is_empty_where_every_row_is_right() -> None:
    trained = np.array([0.5, 0.5])
    labels = np.array([0, 1] * 6)
    p = np.where(labels[:, None] == np.arange(2), 0.9, 0.1)
    by_name = {one.name: one for one in judged(trained, p, labels).scores}
    right = by_name["share right"]
    assert right.lower < right.value == right.upper == 1
    assert all(each.lower < each.share < each.upper for each in judged(trained, p, labels).classes)


def test_rows_of_training_are_no_new_rows() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=60), "colour": rng.choice(["red", "blue"], 60)})
    X.loc[::7, "size"] = np.nan
    model = HybridMixtureClassifier(random_state=0).fit(X, np.arange(60) % 2)
    (remark,) = of_known_rows(model, X.iloc[10:40].reset_index(drop=True))
    assert remark.is_finding
    assert remark.sentence.startswith("30 of 30 rows equal rows that the model was fitted to")
    assert not list(of_known_rows(model, X.assign(size=X["size"] + 1)))


def test_rows_are_known_whatever_missing_indicators_tell() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    X[rng.random(X.shape) < 0.3] = np.nan
    model = generative(n_init=1, missingness="informative", random_state=0).fit(
        X, np.arange(80) % 2
    )
    updated = recalibrate(model, X + 5, np.arange(80) % 2, "slope")
    for one in (updated, copy(updated).assume_missingness("ignorable")):
        trained, of_update = known_rows(one.fitted_, X)
        assert trained.all()
        assert not of_update[X.notna().any(axis=1)].any()
        assert known_rows(one.fitted_, X + 5)[1].all()


@pytest.mark.parametrize("method", ["intercept", "slope", "refit"])
def test_rows_that_updated_a_model_are_no_new_rows(
    fitted: HybridMixtureClassifier, method: str, tmp_path: Path
) -> None:
    """The file of the model remembers them, in any order and beside new ones."""
    X, y = sick_and_well(40, 3)
    y[:2] = None
    training = sick_and_well(200, 0) if method == "refit" else None
    assert "not new" not in findings(bayesrbf.validate(fitted, X, y))
    updated = bayesrbf.recalibrate(fitted, X, y, method, training=training)
    updated.save(tmp_path / "model")
    again = bayesrbf.load(tmp_path / "model")
    labelled = X[2:].assign(enzyme=X["enzyme"] + 0.0)[::-1], y[2:][::-1]
    told = bayesrbf.validate(again, *labelled)
    verb = "fitted to" if method == "refit" else "updated with"
    (sentence,) = (one.sentence for one in told.findings if one.topic == "not new")
    assert sentence.startswith(f"38 of 38 rows equal rows that the model was {verb}")
    assert told.advice.startswith("Give rows that are new to the model")
    assert "not new" not in findings(bayesrbf.validate(again, *sick_and_well(40, 4)))
    twice = bayesrbf.recalibrate(again, *sick_and_well(40, 4), "intercept")
    assert "not new" in findings(bayesrbf.validate(twice, *labelled))
    assert "not new" in findings(bayesrbf.validate(twice, *sick_and_well(40, 4)))


def test_rows_that_moved_nothing_are_new(fitted: HybridMixtureClassifier) -> None:
    rows = sick_and_well(40, 3)
    same = bayesrbf.recalibrate(fitted, *rows, "none")
    assert "not new" not in findings(bayesrbf.validate(same, *rows))


def outcomes(p: np.ndarray, seed: int) -> np.ndarray:
    """Classes drawn from probabilities of the second one."""
    return (np.random.default_rng(seed).random(p.size) < p).astype(int)


@pytest.mark.parametrize(
    ("moved", "word"),
    [
        (lambda p: p, "Use the model as it is"),
        (lambda p: p**4 / (p**4 + (1 - p) ** 4), "Recalibrate"),
        (lambda p: np.clip(p / 4, 0, 1), "Recalibrate"),
        (lambda p: np.random.default_rng(0).permutation(p), "Refit"),
    ],
)
def test_advice_is_to_use_to_recalibrate_or_to_refit(
    moved: Callable[[np.ndarray], np.ndarray], word: str
) -> None:
    p = np.random.default_rng(1).beta(1, 1.5, 800)
    y, said = outcomes(p, 2), moved(p)
    trained = np.array([1 - p.mean(), p.mean()])
    assert judged(trained, np.column_stack([1 - said, said]), y).advice.startswith(word)


@pytest.mark.parametrize("rows", [12, 60, 800])
@pytest.mark.parametrize("share", [0.04, 0.4])
@pytest.mark.parametrize("fault", [0.0, 0.2, 0.9])
def test_advice_and_verdict_never_contradict(rows: int, share: float, fault: float) -> None:
    """To use the model as it is stands beside a yes, and beside nothing else."""
    for seed in range(3):
        p = np.random.default_rng(seed).beta(6 * share, 6 * (1 - share), rows)
        y = outcomes(p, seed + 10)
        y[:2] = 0, 1
        said = np.clip(p + fault * (0.5 - p), 1e-3, 1 - 1e-3)
        told = judged(np.array([1 - share, share]), np.column_stack([1 - said, said]), y)
        verdict = told.to_dict()["verdict"]
        assert (told.advice == USE) == verdict.startswith("Yes"), (told.advice, verdict)
        if told.advice == USE:
            odd = DriftCheck(rows, (Remark("cells", "One cell stands out."),))
            assert sentences(told.with_findings_of(odd).judgement)["verdict"].startswith("With")


def test_a_worse_ranking_than_in_training_is_to_be_refitted() -> None:
    p = np.random.default_rng(1).beta(0.3, 0.4, 800)
    weak = 0.5 + 0.3 * (p - 0.5)
    trained, both = np.array([0.5, 0.5]), np.column_stack([1 - weak, weak])
    before = np.column_stack([1 - p, p]), outcomes(p, 2)
    now = judged(trained, both, outcomes(weak, 3), before=before)
    assert "ranking" in findings(now)
    assert now.advice.startswith("Refit")


def few_resamples(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Groups are drawn so often for an interval."""
    monkeypatch.setattr(performance, "resampled", partial(performance.resampled, n=n))


def test_parts_and_a_score_stand_beside_the_model(
    fitted: HybridMixtureClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_resamples(monkeypatch, 10)
    X, y = sick_and_well(300, 5)
    ward, points = np.arange(300) % 3, 40.0 + 3 * X["enzyme"].rename("points")
    points[:20] = np.nan
    by = pd.DataFrame({"ward": np.array(["a", "b", "c"])[ward], "age": X["age"]})
    told = bayesrbf.validate(fitted, X, y, by=by, score=points, groups=np.arange(300) // 2)
    assert [parts.by for parts in told.parts] == ["ward", "age"]
    assert [part.performance.rows for part in told.parts[0].parts] == [100, 100, 100]
    assert len(told.parts[1].parts) == 4
    assert told.event is not None
    p = fitted.predict_proba(X)[:, list(fitted.classes_).index(told.event.name)]
    of_a = bayesrbf.performance(
        y[ward == 0], p[ward == 0], event=told.event.name, level=told.prob
    ).events[0]
    assert told.parts[0].parts[0].performance.auroc.value == of_a.auroc.value
    assert told.score is not None
    assert told.score.score.rows == 280
    assert told.score.differences.auroc.value == pytest.approx(
        told.score.model.auroc.value - told.score.score.auroc.value
    )
    assert "by ward" in str(told)
    with pytest.raises(ValueError, match="inconsistent"):
        bayesrbf.validate(fitted, X, y, by=by[:10])
    turned = {name: by[name].set_axis(np.arange(300)[::-1]) for name in by}
    again = bayesrbf.validate(fitted, X, y, by=turned)
    assert [len(parts.parts) for parts in again.parts] == [3, 4]
    for one, other in zip(told.parts[1].parts, again.parts[1].parts, strict=True):
        assert one.performance.auroc.value == other.performance.auroc.value
    json.dumps(told.to_dict())


def test_parts_of_like_names_and_of_whole_numbers_stay_apart(
    fitted: HybridMixtureClassifier,
) -> None:
    X, y = sick_and_well(300, 5)
    name = "University Hospital of Northern Town "
    by = {
        "site": np.array([name + "A", name + "B"])[np.arange(300) % 2],
        "year": 2010 + np.arange(300) % 10,
    }
    site, year = bayesrbf.validate(fitted, X, y, by=by).parts
    assert [part.performance.rows for part in site.parts] == [150, 150]
    assert sum(part.performance.rows for part in year.parts) == 300
    assert len({part.name for part in year.parts}) == len(year.parts)
    assert not year.spread


@pytest.mark.slow
def test_rows_of_groups_are_no_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right probabilities of patients with 8 equal rows: nothing is found that groups explain."""
    few_resamples(monkeypatch, 60)
    found = 0
    for seed in range(2):
        p = np.random.default_rng(seed).beta(1, 1.5, 60)
        y = outcomes(p, seed + 100)
        many, groups = np.repeat(p, 8), np.repeat(np.arange(60), 8)
        trained = np.array([1 - p.mean(), p.mean()])
        both = np.column_stack([1 - many, many])
        told = judged(trained, both, np.repeat(y, 8), groups=groups)
        rows_ = judged(trained, both, np.repeat(y, 8))
        found += len(told.findings)
        for one, other in zip(told.scores, rows_.scores, strict=True):
            assert one.upper - one.lower > 1.7 * (other.upper - other.lower)
        slope = next(one for one in told.scores if one.name == "calibration slope")
        assert slope.lower == told.against_rest["b"].slope.lower
    assert found <= 1


def test_a_score_needs_two_classes() -> None:
    X, _ = sick_and_well(90, 1)
    y = np.arange(90) % 3
    model = HybridMixtureClassifier(1, cv=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="leave score and by out"):
        bayesrbf.validate(model, X, y, score=X["age"])


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.7])
def test_a_threshold_decides_for_both_classes(threshold: float) -> None:
    """What is not called an event is called the other class."""
    _, p, labels = drawn(200, 3, (0.6, 0.4))
    focus = Focus({"b": (1 - threshold) / threshold}, "b", level=SURE)
    own = judged(np.array([0.6, 0.4]), p, labels, focus).against_rest["b"]
    assert own.sensitivity.value == pytest.approx((p[labels == 1, 1] >= threshold).mean())
    assert own.specificity.value == pytest.approx((p[labels == 0, 1] < threshold).mean())


def test_events_that_come_too_seldom_are_found() -> None:
    _, p, _ = drawn(600, 4, (0.5, 0.5))
    labels = (np.random.default_rng(0).random(600) < 0.8 * p[:, 1]).astype(int)
    told = judged(np.array([0.5, 0.5]), p, labels)
    assert told.event is not None
    ratio = told.against_rest[told.event.name].observed_to_expected
    assert (ratio.upper < 1) or (ratio.lower > 1)
    assert "calibration" in findings(told)


def test_a_column_in_another_unit_is_found_and_to_be_mended(
    fitted: HybridMixtureClassifier,
) -> None:
    X, y = sick_and_well(300, 9)
    told = bayesrbf.validate(fitted, X.assign(enzyme=X["enzyme"] / 1000), y)
    assert "unit" in findings(told)
    assert told.advice.startswith("Give column 'enzyme' in the units of training.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 95.0}, "must lie between 0 and 1; received 95"),
        ({"by": "sex"}, "sex"),
        ({"by": 3}, "names of columns of the frame X; received a int"),
        ({"score": "points"}, "received the name 'points'"),
    ],
)
def test_options_that_cannot_be_used_are_told_by_name(
    fitted: HybridMixtureClassifier, options: dict[str, Any], message: str
) -> None:
    X, y = sick_and_well(50, 9)
    with pytest.raises((ValueError, KeyError), match=message):
        bayesrbf.validate(fitted, X, y, **options)


def test_parts_may_be_named(fitted: HybridMixtureClassifier) -> None:
    X, y = sick_and_well(200, 9)
    by_name = bayesrbf.validate(fitted, X, y, by=["age"])
    assert by_name.to_dict() == bayesrbf.validate(fitted, X, y, by=X[["age"]]).to_dict()
