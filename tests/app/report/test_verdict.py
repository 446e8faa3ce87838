"""The headline never says more than the held-out rows do."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from bayesrbf.answers.scores import LEVEL, mean
from bayesrbf.app.report.held_out import FOREST, LOGISTIC, HeldOutRows
from bayesrbf.app.report.judgement import FREQUENCIES, MODEL
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.trust import (
    Gain,
    JudgedByRivals,
    Rival,
    best_of,
    compute,
    evidence,
    gain,
    verdict,
)
from tests.cases import first_quick

GOOD = "its probabilities come true"


def judged(
    labels: np.ndarray, own: np.ndarray, logistic: np.ndarray, costs: dict[str, float] | None = None
) -> JudgedByRivals:
    """Probabilities of the second of two classes by the model and by logistic regression."""
    share = labels.mean()
    tables = {MODEL: own, FREQUENCIES: np.full(labels.size, share), LOGISTIC: logistic}
    p = {name: np.column_stack([1 - one, one]) for name, one in tables.items()}
    held_out = HeldOutRows(("no", "yes"), labels, np.arange(labels.size) % 5, p)
    return compute(held_out, Focus(costs or {}), MODEL, FREQUENCIES, LOGISTIC)


def said(found: JudgedByRivals) -> str:
    """The headline, and the sentence of figures below it."""
    return f"{verdict(found, True, GOOD)} {evidence(found)}"


def drawn(n: int, strength: float, seed: int, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and the probabilities that they were drawn from."""
    rng = np.random.default_rng(seed)
    p = expit(strength * rng.normal(size=n) + np.log(share / (1 - share)))
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_noise_is_never_trusted(share: float) -> None:
    """Probabilities and labels that say nothing of each other: at most one slip in 60 tables."""
    trusted = 0
    for seed in range(60):
        labels, _ = drawn(120, 0.0, seed, share)
        _, own = drawn(120, 0.5, 1000 + seed, share)
        _, other = drawn(120, 0.5, 2000 + seed, share)
        text = verdict(judged(labels, own, other), True, GOOD)
        trusted += not text.startswith(("No:", "Too few rows to tell"))
    assert trusted <= 1


def test_both_rivals_are_in_the_headline_with_figures() -> None:
    labels, p = drawn(400, 3.0, 0)
    found = judged(labels, p, np.full(400, 0.5))
    text = verdict(found, True, GOOD)
    same = max(labels.mean(), 1 - labels.mean())
    better = "the class frequencies, always answering “{}” and logistic regression"
    answer = ("no", "yes")[int(labels.mean() > 0.5)]
    assert text == f"Yes: it is better than {better.format(answer)}; {GOOD}."
    figures = evidence(found)
    assert figures.startswith("On 400 rows that it had not seen")
    assert f"{100 * same:.3g}\xa0% by always answering “" in figures
    assert "by logistic regression" in figures


def test_no_better_than_logistic_regression_is_said() -> None:
    labels, p = drawn(300, 3.0, 1)
    text = said(judged(labels, p, p))
    assert not text.startswith("Yes")
    told = (
        "As much as logistic regression's, and no more so far as these rows tell: it is better than"
    )
    assert text.startswith(told)


def test_worse_than_logistic_regression_asks_for_care() -> None:
    labels, p = drawn(600, 3.0, 2)
    worse = expit(0.3 * np.log(p / (1 - p)))
    text = said(judged(labels, worse, p))
    assert text.startswith("With care:")
    assert "worse than logistic regression" in text


def test_nineteen_of_twenty_the_same_is_never_yes() -> None:
    """The model ranks rows, yet always answering "no" is right as often: no plain yes."""
    for seed in range(10):
        labels, p = drawn(600, 1.5, seed, share=0.04)
        found = judged(labels, p, np.full(600, labels.mean()))
        if not found.base.gain_of_answers.better:
            assert not verdict(found, True, GOOD).startswith("Yes")
        if found.base.gain.better and not found.base.gain_of_answers.better:
            assert verdict(found, True, GOOD).startswith("With care")
            assert "no better than always answering “no” so far" in said(found)


def test_right_less_often_than_always_the_same_is_never_yes() -> None:
    labels, p = drawn(800, 1.0, 3, share=0.1)
    bold = np.where(p > np.quantile(p, 0.7), 0.55, p)
    found = judged(labels, bold, np.full(800, labels.mean()))
    assert found.answers > found.base.answers
    assert not verdict(found, True, GOOD).startswith("Yes")


@pytest.mark.parametrize("rows", [4, 12, 19])
def test_few_rows_tell_nothing(rows: int) -> None:
    labels = np.arange(rows) % 2
    p = np.where(labels == 1, 0.9, 0.1)
    text = said(judged(labels, p, p))
    assert text.startswith("Too few rows to tell:")
    assert "mostly luck" in text


def test_few_rows_of_a_class_tell_nothing() -> None:
    labels = (np.arange(200) < 4).astype(int)
    p = np.where(labels == 1, 0.9, 0.01)
    assert verdict(judged(labels, p, p), True, GOOD).startswith("Too few rows to tell:")


def test_probabilities_that_do_not_come_true_ask_for_care() -> None:
    labels, p = drawn(400, 3.0, 4)
    assert verdict(judged(labels, p, np.full(400, 0.5)), False, GOOD).startswith("With care:")


def test_the_rival_is_the_one_of_least_log_loss() -> None:
    """Whatever it is called, its figures are those that the headline compares with."""
    labels, p = drawn(300, 3.0, 6)
    timid = expit(0.3 * np.log(p / (1 - p)))
    for logistic, forest, best, name in (
        (p, timid, LOGISTIC, "logistic regression"),
        (timid, p, FOREST, "the random forest"),
    ):
        tables = {MODEL: p, FREQUENCIES: np.full(300, 0.5), LOGISTIC: logistic, FOREST: forest}
        both = {key: np.column_stack([1 - one, one]) for key, one in tables.items()}
        held_out = HeldOutRows(("no", "yes"), labels, np.arange(300) % 5, both)
        assert best_of(held_out, (LOGISTIC, FOREST)) == best
        found = compute(held_out, ANYTHING, MODEL, FREQUENCIES, best)
        assert found.rival.name == name
        assert verdict(found, True, GOOD).startswith(f"As much as {name}'s, and no more")
        assert found.rival.log_loss == pytest.approx(-np.log(np.where(labels, p, 1 - p)).mean())


@pytest.mark.parametrize("seed", first_quick(range(40), 10))
def test_the_headline_says_what_the_intervals_beside_it_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    labels, p = drawn(n, rng.uniform(0, 3), seed)
    own, other = (expit(rng.uniform(0.3, 2) * np.log(p / (1 - p))) for _ in range(2))
    found = judged(labels, own, other)
    if not found.enough:
        return
    text = verdict(found, True, GOOD)
    losses = [-np.log(np.where(labels, one, 1 - one)) for one in (own, other)]
    lead = mean(losses[1] - losses[0], LEVEL)
    told = found.rival.gain.interval
    assert (told.value, told.lower, told.upper) == pytest.approx(
        (lead.value, lead.lower, lead.upper)
    )
    answers = found.rival.gain_of_answers.interval
    base = found.base.gain.interval
    few = base.lower <= 0 and base.upper >= 0.05 * found.base.log_loss
    assert text.startswith("Too few rows to tell") == few
    if few:
        return
    worse_than = text.partition("worse than")[2].partition(", though")[0]
    assert ("logistic regression" in worse_than) == (told.upper < 0 or answers.upper < 0)
    if text.startswith("Yes"):
        assert told.lower > 0
        assert not answers.upper < 0
        assert found.base.gain.interval.lower > 0
        assert found.base.gain_of_answers.interval.lower > 0
    if text.startswith("As much"):
        assert told.lower <= 0 <= told.upper
    assert text.startswith("No:") == (base.lower <= 0)
    assert [len(line) for line in found.leads] == [3, 3, 3]


def test_copies_of_rows_make_nothing_surer() -> None:
    """Ten copies of a row are one group: figures, errors and the headline stay."""
    rng = np.random.default_rng(7)
    own, other = rng.random(30), rng.random(30)
    once, groups = gain(own, other), np.repeat(np.arange(30), 10)
    copied = gain(np.repeat(own, 10), np.repeat(other, 10), groups)
    assert (copied.mean, copied.error, copied.sure) == pytest.approx(
        (once.mean, once.error, once.sure)
    )
    assert once.error == pytest.approx((other - own).std(ddof=1) / np.sqrt(30))
    few = np.zeros(30, dtype=int)
    assert not gain(own, own + 1, few).better


def test_costs_are_what_answers_are_judged_by() -> None:
    labels, p = drawn(500, 2.0, 5, share=0.2)
    found = judged(labels, p, np.full(500, 0.2), {"yes": 5.0})
    decided = p * 5 > 1 - p
    cost = np.where(labels == 1, 5.0, 1.0)[decided != labels].sum() / 500
    assert found.answers == pytest.approx(cost)
    text = verdict(found, True, GOOD)
    assert text.startswith("Yes: it is better than")
    assert "a row costs" in evidence(found)
    assert "of its answers are right" not in evidence(found)
    shares = labels.mean()
    assert found.base.answers == pytest.approx(min(5 * shares, 1 - shares))


def test_a_headline_has_at_most_three_lines_of_the_page() -> None:
    """About 91 letters stand in a line of the page; names of classes are clipped."""
    best, worst = Gain(1.0, 0.1, 2.0), Gain(0.0, 0.1, 2.0)
    name = f"always answering “{'m' * 24}”"
    half = "its probabilities are somewhat too extreme (slope 0.451, 0.212 to 0.690; 1 is right)"
    for gains in product((best, worst, replace(worst, mean=-1.0)), repeat=4):
        base = Rival(name, 0.7, 0.4, *gains[:2])
        rival = Rival("logistic regression", 0.5, 0.2, *gains[2:])
        for groups in (None, 1000):
            found = JudgedByRivals(10_000, 5_000, 0.4, 0.1, base, rival, False, groups)
            assert len(verdict(found, True, half)) <= 3 * 91


def test_the_reason_of_a_no_comes_first() -> None:
    """Better than a logistic regression that is worse than nothing is no praise."""
    none, good = Gain(0.0, 0.01, 2.0), Gain(1.0, 0.1, 2.0)
    base = Rival("always answering “a”", 0.7, 0.4, none, none)
    rival = Rival("logistic regression", 0.9, 0.5, good, good)
    text = verdict(JudgedByRivals(100, 50, 0.7, 0.4, base, rival, False), True, GOOD)
    assert text == (
        "No: it is no better than the class frequencies or always answering “a” so far as these "
        f"rows tell, though better than logistic regression; {GOOD}."
    )
