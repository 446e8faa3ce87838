"""Sample size before data: published figures, formulas by another way, and what they promise."""

from __future__ import annotations

import json
import sys
from itertools import combinations, permutations
from math import ceil, exp, log

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2, norm, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import bayesrbf
from bayesrbf.answers.sample_size import SampleSize, most_r2, r2_of
from bayesrbf.app.commands import main


def rows_of(found: SampleSize) -> list[int]:
    """Rows of the three criteria."""
    return list(found.criteria.values())


def gaussian(
    n: int, event: float, c_statistic: float, columns: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two Gaussian classes, told apart by the first column."""
    y = rng.random(n) < event
    X = rng.normal(size=(n, columns))
    X[:, 0] += y * np.sqrt(2) * norm.ppf(c_statistic)
    return X, y


# Two classes.


def test_the_example_of_pmsampsize() -> None:
    found = bayesrbf.plan_sample_size(0.174, 24, cox_snell=0.288)
    assert (found.rows, rows_of(found)) == (662, [221, 623, 662])


@pytest.mark.parametrize("event", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("columns", [1, 7, 60])
@pytest.mark.parametrize("share", [0.05, 0.15, 0.6])
def test_criteria_are_those_of_pmsampsize(event: float, columns: int, share: float) -> None:
    null = 1000 * event * log(event) + 1000 * (1 - event) * log(1 - event)
    most = 1 - exp(2 * null / 1000)
    r2 = share * most
    small = r2 / (r2 + 0.05 * most)
    expected = [
        ceil((1.959964 / 0.05) ** 2 * event * (1 - event)),
        ceil(columns / ((0.9 - 1) * log(1 - r2 / 0.9))),
        ceil(columns / ((small - 1) * log(1 - r2 / small))),
    ]
    assert rows_of(bayesrbf.plan_sample_size(event, columns, cox_snell=r2)) == expected


@pytest.mark.parametrize(("event", "c_statistic"), [(0.174, 0.89), (0.5, 0.7), (0.05, 0.8)])
def test_r2_of_a_c_statistic_is_that_of_a_logistic_regression(
    event: float, c_statistic: float
) -> None:
    X, y = gaussian(400_000, event, c_statistic, 1, np.random.default_rng(0))
    p = LogisticRegression(C=np.inf).fit(X, y).predict_proba(X)
    none = -(y.mean() * log(y.mean()) + (1 - y.mean()) * log(1 - y.mean()))
    assert roc_auc_score(y, p[:, 1]) == pytest.approx(c_statistic, abs=0.003)
    simulated = 1 - exp(-2 * (none - log_loss(y, p)))
    assert r2_of(c_statistic, event) == pytest.approx(simulated, abs=0.004)


def test_r2_rises_with_the_c_statistic_from_none_to_its_most() -> None:
    for event in (0.1, 0.5):
        values = [r2_of(c, event) for c in (0.5, 0.6, 0.8, 0.99, 1 - 1e-12)]
        assert values == sorted(values)
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(most_r2([event, 1 - event]), abs=1e-4)
        assert values[2] == pytest.approx(r2_of(0.8, 1 - event))


def test_more_columns_and_a_weaker_model_need_more_rows() -> None:
    by_columns = [bayesrbf.plan_sample_size(0.2, columns).rows for columns in (5, 20, 80)]
    by_c = [bayesrbf.plan_sample_size(0.2, 20, c_statistic=c).rows for c in (0.9, 0.7, 0.55)]
    assert by_columns == sorted(by_columns)
    assert by_c == sorted(by_c)
    assert len({*by_columns}) == len({*by_c}) == 3


def test_by_default_the_model_reaches_15_percent_of_the_most() -> None:
    found = bayesrbf.plan_sample_size(0.2, 20)
    assert found.cox_snell / found.most_cox_snell == pytest.approx(0.15)
    assert found == bayesrbf.plan_sample_size(0.2, 20, cox_snell=found.cox_snell)


def test_a_regression_of_so_many_rows_shrinks_by_a_tenth() -> None:
    event, c_statistic, columns, rng = 0.3, 0.75, 12, np.random.default_rng(0)
    n = rows_of(bayesrbf.plan_sample_size(event, columns, c_statistic=c_statistic))[1]
    new, happened = gaussian(20_000, event, c_statistic, columns, rng)
    slopes = []
    for _ in range(60):
        fit = LogisticRegression(C=np.inf).fit(*gaussian(n, event, c_statistic, columns, rng))
        log_odds = logit(fit.predict_proba(new)[:, 1:])
        slopes.append(LogisticRegression(C=np.inf).fit(log_odds, happened).coef_.item())
    assert np.mean(slopes) == pytest.approx(0.9, abs=0.03)


# Validation of two classes.


OF_PMVALSAMPSIZE = {
    (0.2, 0.8, 0.1): (1538, 2671, 471, 334),
    (0.05, 0.7, 0.05): (7305, 15_739, 2184, 2881),
    (0.4, 0.9, 0.3): (577, 1492, 165, 199),
}
"""Rows by version 0.2.1, at shares of the event, C statistics and thresholds; slope and benefit
are means of two seeds, by two million simulated scores each, and it rounds standard errors."""


@pytest.mark.parametrize("anticipated", OF_PMVALSAMPSIZE)
def test_rows_of_a_validation_are_those_of_pmvalsampsize(
    anticipated: tuple[float, float, float],
) -> None:
    (event, c, threshold), published = anticipated, OF_PMVALSAMPSIZE[anticipated]
    found = bayesrbf.plan_sample_size(event, c_statistic=c, threshold=threshold)
    assert rows_of(found) == pytest.approx(published, rel=0.006)
    assert rows_of(found)[2] == published[2]
    assert rows_of(bayesrbf.plan_sample_size(event, c_statistic=c)) == rows_of(found)[:3]


@pytest.mark.parametrize("anticipated", OF_PMVALSAMPSIZE)
def test_intervals_of_simulated_validations_are_as_wide_as_planned(
    anticipated: tuple[float, float, float],
) -> None:
    event, c, threshold = anticipated
    planned = bayesrbf.plan_sample_size(event, c_statistic=c, threshold=threshold)
    rng, distance = np.random.default_rng(0), np.sqrt(2) * norm.ppf(c)

    def validated(n: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = gaussian(n, event, c, 1, rng)  # that is all that a right model has to know
        return y, log(event / (1 - event)) + distance * X[:, 0] - distance**2 / 2

    def log_ratio(y: np.ndarray, eta: np.ndarray) -> float:
        return log(y.mean() / event)

    def slope(y: np.ndarray, eta: np.ndarray) -> float:
        design, at = np.column_stack([np.ones(eta.size), eta]), np.array([0.0, 1.0])
        for _ in range(5):  # Newton from the truth
            p = expit(design @ at)
            at = at + np.linalg.solve(design.T * (p * (1 - p)) @ design, design.T @ (y - p))
        return float(at[1])

    def area(y: np.ndarray, eta: np.ndarray) -> float:
        n = np.count_nonzero(y)
        return float((rankdata(eta)[y].sum() - n * (n + 1) / 2) / (n * (y.size - n)))

    def benefit(y: np.ndarray, eta: np.ndarray) -> float:
        acted = eta > logit(threshold)
        lost = (acted & ~y).mean() * threshold / (1 - threshold)
        return float(((acted & y).mean() - lost) / y.mean())

    repeats = {log_ratio: 2000, slope: 400, area: 400, benefit: 2000}
    errors = [
        np.std([figure(*validated(n)) for _ in range(often)])
        for (figure, often), n in zip(repeats.items(), rows_of(planned), strict=True)
    ]
    widths = np.multiply([np.sinh(1.96 * errors[0]) / 1.96, *errors[1:]], 2 * 1.96)
    # standard errors of 3.5 %, or of 1.6 %, and Newcombe's formula is no exact one
    np.testing.assert_allclose(widths, [0.2, 0.2, 0.1, 0.2], rtol=0.11)


# More classes.


def test_two_shares_are_an_event() -> None:
    of_event, both = (bayesrbf.plan_sample_size(one, 9) for one in (0.25, (0.75, 0.25)))
    assert of_event == both


def test_criteria_of_more_classes_are_those_of_pate_whatever_their_order() -> None:
    shares, columns, part = (0.6, 0.3, 0.1), 17, 0.15
    most = 1 - np.prod([share**share for share in shares]) ** 2
    needed = []
    for a, b in combinations(shares, 2):
        phi = a / (a + b)
        r2 = part * (1 - (phi**phi * (1 - phi) ** (1 - phi)) ** 2)
        needed.append(columns / ((0.9 - 1) * log(1 - r2 / 0.9)) / (a + b))
    r2 = part * most
    small = r2 / (r2 + 0.05 * most)
    expected = [
        ceil(max(chi2.ppf(1 - 0.05 / 3, 1) * one * (1 - one) / 0.05**2 for one in shares)),
        ceil(max(needed)),
        ceil(2 * columns / ((small - 1) * log(1 - r2 / small))),
    ]
    for order in permutations(shares):
        assert rows_of(bayesrbf.plan_sample_size(order, columns)) == expected


def test_rows_of_the_pairs_of_five_classes_are_those_of_the_authors() -> None:
    """Their package multsampsize expects 13,136 rows of its test, by simulated R squared."""
    rows = [2557, 186, 176, 467, 120]
    c_statistics = [0.85, 0.92, 0.99, 0.95, 0.75, 0.95, 0.87, 0.87, 0.71, 0.82]
    needed = [
        rows_of(bayesrbf.plan_sample_size(b / (a + b), 17, c_statistic=c))[1] * sum(rows) / (a + b)
        for (a, b), c in zip(combinations(rows, 2), c_statistics, strict=True)
    ]
    assert max(needed) == pytest.approx(13_136, rel=0.01)


# What is refused, and what is printed.


@pytest.mark.parametrize(
    ("events", "more", "message"),
    [
        (0.0, {}, "strictly between 0 and 1"),
        (1.2, {}, "strictly between 0 and 1"),
        ((0.5, 0.3), {}, "which sum to 1"),
        ((1.0,), {}, "which sum to 1"),
        (0.2, {"columns": 0}, "columns"),
        (0.2, {"c_statistic": 0.5}, "between .5 and 1"),
        (0.2, {"c_statistic": 0.4}, "between .5 and 1"),
        (0.2, {"c_statistic": 1.0}, "between .5 and 1"),
        (0.2, {"cox_snell": 0.0}, "above 0"),
        (0.2, {"cox_snell": 0.7}, "below 0.632"),
        (0.2, {"c_statistic": 0.8, "cox_snell": 0.1}, "or for two classes"),
        ((0.5, 0.3, 0.2), {"c_statistic": 0.8}, "or for two classes"),
        (0.2, {"columns": None}, "received neither"),
        (0.2, {"columns": None, "cox_snell": 0.1}, "or the c_statistic of two classes"),
        (0.2, {"threshold": 0.1}, "without columns"),
        (0.2, {"columns": None, "c_statistic": 0.8, "threshold": 1.0}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(events: object, more: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayesrbf.plan_sample_size(events, **{"columns": 5, **more})


def test_the_page_has_every_criterion() -> None:
    found = bayesrbf.plan_sample_size(0.2, 20, c_statistic=0.8)
    told = str(found)
    assert f"At least {found.rows:,} rows" in told
    assert all(f"{rows:,}  {why}" in told for why, rows in found.criteria.items())
    assert "flexible models need more" in told
    told = str(bayesrbf.plan_sample_size(0.2, c_statistic=0.8))
    assert "flexible models" not in told
    assert "one model as it is" in told


def test_the_command_says_what_python_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["bayesrbf", "plan", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return capsys.readouterr().out

    for words, events in (("0.2", 0.2), ("0.5,0.3,0.2", (0.5, 0.3, 0.2))):
        found = bayesrbf.plan_sample_size(events, 20)
        assert printed("--events", words, "--columns", "20").split() == str(found).split()
        said = json.loads(printed("--events", words, "--columns", "20", "--json"))
        assert (said["rows"], said["criteria"]) == (found.rows, found.criteria)
    found = bayesrbf.plan_sample_size(0.2, c_statistic=0.8, threshold=0.1)
    words = "--events", "0.2", "--c-statistic", "0.8", "--threshold", "0.1"
    assert printed(*words).split() == str(found).split()


@pytest.mark.parametrize("words", [["--events", "many"], ["--events", "0.2,0.3"], []])
def test_the_command_refuses_what_are_no_shares(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bayesrbf", "plan", *words, "--columns", "5"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "events" in capsys.readouterr().err
