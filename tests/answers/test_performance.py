"""The record of performance against other libraries, closed forms and simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit
from scipy.stats import t as student
from statsmodels.stats.meta_analysis import combine_effects

import bayesrbf
from bayesrbf.answers.comparisons import RowsOf, differences, performance_by, random_effects
from bayesrbf.answers.performance import (
    EventForecasts,
    EventPerformance,
    calibration_curve,
    event_performance,
    spline_basis,
)
from bayesrbf.answers.scores import LEVEL


def rows(n: int = 600, seed: int = 0, tilt: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities that are too extreme, and whether the event happened."""
    rng = np.random.default_rng(seed)
    x = rng.normal(-0.5, 1.5, n)
    return expit(x), rng.random(n) < expit(0.3 + tilt * x)


def judged(**options: object) -> EventPerformance:
    return event_performance("event", *rows(), **options)  # type: ignore[arg-type]


def test_intercept_and_slope_are_those_of_a_logistic_regression() -> None:
    p, happened = rows()
    x, found = logit(p), judged()
    large = sm.GLM(happened, np.ones(p.size), offset=x, family=sm.families.Binomial()).fit()
    tilted = sm.GLM(happened, sm.add_constant(x), family=sm.families.Binomial()).fit()
    ends = large.conf_int(1 - LEVEL)[0]
    np.testing.assert_allclose(list(vars(found.intercept).values()), [large.params[0], *ends], 1e-5)
    # Weak priors keep the slope finite, and move its third digit at most.
    ends = tilted.conf_int(1 - LEVEL)[1]
    np.testing.assert_allclose(list(vars(found.slope).values()), [tilted.params[1], *ends], 2e-3)


def test_observed_over_expected_is_of_the_events_that_the_intercept_expects() -> None:
    p, happened = rows()
    found = judged()
    moved = [expit(logit(p) + end).mean() for end in vars(found.intercept).values()]
    ends = list(vars(found.observed_to_expected).values())
    np.testing.assert_allclose(ends, np.array(moved) / p.mean())
    assert found.observed_to_expected.value == pytest.approx(happened.mean() / p.mean())


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("times", [0.7, 0.8, 0.9, 1.0])
def test_one_question_about_the_number_of_events_has_one_answer(
    times: float, grouped: bool
) -> None:
    """A Wilson interval takes the rows for alike, and held 1 where the intercept left 0 out."""
    p, _ = rows()
    for seed in range(1 if grouped else 5):
        happened = np.random.default_rng(seed).random(p.size) < times * p
        subjects = np.arange(p.size) // 2 if grouped else None
        found = event_performance("event", p, happened, subjects=subjects)
        large, ratio = found.intercept, found.observed_to_expected
        assert (ratio.lower > 1, ratio.upper < 1) == (large.lower > 0, large.upper < 0)


def test_the_scaled_brier_score_has_the_spread_of_a_bootstrap() -> None:
    p, happened = rows()
    found, rng = judged().scaled_brier, np.random.default_rng(1)

    def scaled(some: np.ndarray) -> float:
        y = happened[some]
        return float(1 - ((p[some] - y) ** 2).mean() / (y.mean() * (1 - y.mean())))

    drawn = [scaled(rng.integers(p.size, size=p.size)) for _ in range(2000)]
    ends = np.quantile(drawn, [0.05, 0.95])
    assert found.value == pytest.approx(scaled(np.arange(p.size)))
    assert found.upper - found.lower == pytest.approx(ends[1] - ends[0], rel=0.1)


def test_the_smooth_curve_is_that_of_a_regression_on_its_basis() -> None:
    p, happened = rows()
    x = logit(p)
    knots = np.quantile(x, (0.05, 0.275, 0.5, 0.725, 0.95))
    basis = spline_basis(x, knots)
    fit = sm.GLM(happened, basis, family=sm.families.Binomial()).fit()
    found = calibration_curve(p, happened)
    assert found is not None
    grid = spline_basis(logit(found.probability), knots)
    told = fit.get_prediction(grid).summary_frame(1 - LEVEL)
    np.testing.assert_allclose(found.observed, told["mean"], atol=2e-3)
    np.testing.assert_allclose(found.lower, told["mean_ci_lower"], atol=5e-3)
    np.testing.assert_allclose(found.upper, told["mean_ci_upper"], atol=5e-3)
    away = np.abs(fit.predict(basis) - p)
    expected = [away.mean(), np.median(away), np.quantile(away, 0.9)]
    np.testing.assert_allclose([found.ici, found.e50, found.e90], expected, atol=2e-3)


def test_the_basis_spans_all_natural_splines_with_its_knots() -> None:
    """Any cubic spline that is linear beyond the outer knots is a sum of the columns."""
    knots, x = np.array([-1.0, 0.0, 0.5, 2.0]), np.linspace(-3, 4, 200)
    spline = CubicSpline(knots, np.random.default_rng(0).normal(size=4), bc_type="natural")
    inside = spline(np.clip(x, -1, 2))
    natural = inside + spline(np.clip(x, -1, 2), 1) * (x - np.clip(x, -1, 2))
    basis = spline_basis(x, knots)
    assert basis.shape[1] == knots.size
    weights = np.linalg.lstsq(basis, natural, rcond=None)[0]
    np.testing.assert_allclose(basis @ weights, natural, atol=1e-9)


@pytest.mark.parametrize("n", [60, 400])
def test_the_band_holds_the_diagonal_of_a_calibrated_model(n: int) -> None:
    inside, repeats = 0.0, 150
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(-0.5, 1.5, n))
        found = calibration_curve(p, rng.random(n) < p)
        assert found is not None
        at = int(np.abs(found.probability - 0.3).argmin())
        inside += found.lower[at] <= found.probability[at] <= found.upper[at]
    assert abs(inside / repeats - LEVEL) < 0.08


def test_the_band_is_narrow_where_hundreds_of_rows_have_one_outcome() -> None:
    """The likelihood alone bounds a bent curve there on one side only."""
    coverage, widths = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = expit(rng.normal(0, 6, 400))
        found = calibration_curve(p, rng.random(400) < p)
        assert found is not None
        band = (found.lower <= found.probability) & (found.probability <= found.upper)
        coverage.append(band.mean())
        widths.append((found.upper - found.lower)[-8:].mean())
    assert np.mean(coverage) == pytest.approx(LEVEL, abs=0.08)
    assert np.mean(widths) < 0.2


@pytest.mark.parametrize("values", [(0.2, 0.8), (0.1, 0.3, 0.5, 0.7), (0.1, 0.4, 0.9)])
def test_the_curve_of_few_values_goes_through_their_shares(values: tuple[float, ...]) -> None:
    rng = np.random.default_rng(len(values))
    p = np.repeat(values, 120)
    happened = rng.random(p.size) < 1.2 * p**1.3
    found = calibration_curve(p, happened)
    assert found is not None
    for value in values:
        at = int(np.abs(found.probability - value).argmin())
        assert found.observed[at] == pytest.approx(happened[p == value].mean(), abs=0.05)


def test_the_intercept_of_a_sure_model_is_found() -> None:
    found = event_performance("event", np.ones(1000), np.arange(1000) < 1)
    assert found.intercept.value < -30
    assert found.curve is None


def test_groups_widen_curves_and_bands() -> None:
    p, happened = rows(150)
    copies = [np.repeat(one, 4) for one in (p, happened)]
    groups = np.repeat(np.arange(150), 4)
    alone, rows_ = event_performance("event", p, happened), event_performance("event", *copies)
    grouped = event_performance("event", *copies, subjects=groups)
    for name, low, high in (("curve", "lower", "upper"), ("decision_curve", "lower", "upper")):
        widths = [
            np.mean(getattr(getattr(one, name), high) - getattr(getattr(one, name), low))
            for one in (alone, rows_, grouped)
        ]
        assert widths[1] < 0.6 * widths[0]
        assert widths[2] == pytest.approx(widths[0], rel=0.1)


def test_one_kind_of_rows_has_no_curve_and_no_calibration() -> None:
    found = event_performance("event", np.array([0.2, 0.4, 0.1]), np.zeros(3, bool))
    assert found.curve is None
    values = [found.auroc, found.slope, found.intercept, found.scaled_brier, found.ppv]
    assert np.isnan([one.value for one in values]).all()
    assert found.observed_to_expected.value == 0
    assert found.observed_to_expected.upper > 1


def test_decisions_at_thresholds_are_counts() -> None:
    p, happened = rows()
    for at in judged(thresholds=(0.5, 0.2)).thresholds:
        called = p >= at.threshold
        assert at.called.value == pytest.approx(called.mean())
        assert at.sensitivity.value == pytest.approx(called[happened].mean())
        assert at.ppv.value == pytest.approx(happened[called].mean())
        odds = at.threshold / (1 - at.threshold)
        benefit = (called & happened).mean() - odds * (called & ~happened).mean()
        assert at.net_benefit.value == pytest.approx(benefit)
        assert at.everybody == pytest.approx(happened.mean() - odds * (1 - happened.mean()))
    counts = judged().distribution
    assert counts.sum(axis=1).tolist() == [(~happened).sum(), happened.sum()]


def test_copies_in_one_group_are_as_sure_as_one_row() -> None:
    p, happened = rows(150)
    alone = event_performance("event", p, happened)
    copies = [np.repeat(one, 4) for one in (p, happened)]
    groups = np.repeat(np.arange(150), 4)
    counted = event_performance("event", *copies)
    grouped = event_performance("event", *copies, subjects=groups)
    for name in ("auroc", "brier", "log_loss", "intercept", "slope", "observed_to_expected"):
        own, rows_, by_group = (getattr(one, name) for one in (alone, counted, grouped))
        assert own.value == pytest.approx(by_group.value, abs=0.02)
        assert rows_.upper - rows_.lower < 0.65 * (own.upper - own.lower)
        assert by_group.upper - by_group.lower == pytest.approx(own.upper - own.lower, rel=0.3)


def test_differences_are_paired() -> None:
    """AUROCs against DeLong's law of two on the same rows; a model less itself is nothing."""
    p, happened = rows()
    other = expit(logit(p) + np.random.default_rng(2).normal(size=p.size))
    found = differences(p, other, happened, threshold=0.3)

    def placements(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wins = score[happened][:, None] - score[~happened]
        shares = (wins > 0) + (wins == 0) / 2
        return shares.mean(axis=1), shares.mean(axis=0)

    (a, b), (c, d) = placements(p), placements(other)
    variance = np.var(a - c, ddof=1) / a.size + np.var(b - d, ddof=1) / b.size
    assert found.auroc.value == pytest.approx(a.mean() - c.mean())
    width = 2 * 1.645 * np.sqrt(variance)
    assert found.auroc.upper - found.auroc.lower == pytest.approx(width, rel=0.2)
    moved = found.reclassified
    assert moved.events_up == ((p >= 0.3) & (other < 0.3) & happened).sum()
    assert moved.others_down == ((p < 0.3) & (other >= 0.3) & ~happened).sum()
    same = differences(p, p, happened)
    assert same.auroc.lower == same.log_loss.upper == 0


def test_random_effects_are_those_of_another_library() -> None:
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.1, 0.4, 9)
    values = 1 + 0.5 * rng.normal(size=9) + errors * rng.normal(size=9)
    found = random_effects(values, errors)
    other = combine_effects(values, errors**2, method_re="iterated")
    assert found is not None
    assert found.tau == pytest.approx(np.sqrt(other.tau2), rel=1e-3)
    assert found.mean.value == pytest.approx(other.mean_effect_re, rel=1e-3)
    half = student.ppf(0.5 + LEVEL / 2, 8) * other.sd_eff_w_re
    assert other.sd_eff_w_re_hksj == pytest.approx(other.sd_eff_w_re, rel=1e-3)
    assert found.mean.upper - found.mean.value == pytest.approx(half, rel=1e-3)
    assert found.new.upper - found.new.lower > found.mean.upper - found.mean.lower
    assert random_effects(values[:2], errors[:2]) is None


@pytest.mark.slow
def test_the_interval_of_a_new_part_holds_as_often_as_it_promises() -> None:
    rng, held, repeats = np.random.default_rng(0), 0, 400
    for _ in range(repeats):
        errors = rng.uniform(0.2, 0.3, 12)
        values = 0.5 * rng.normal(size=12) + errors * rng.normal(size=12)
        found = random_effects(values, errors)
        assert found is not None
        held += found.new.lower <= 0.5 * rng.normal() <= found.new.upper
    assert abs(held / repeats - LEVEL) < 0.06


def test_parts_that_are_alike_have_no_spread_and_others_have() -> None:
    p, happened = rows(3000)
    parts = [RowsOf(f"part {k}", np.arange(3000) % 5 == k) for k in range(5)]
    alike = performance_by("part", parts, EventForecasts("event", p, happened))
    assert len(alike.parts) == 5
    assert sum(one.performance.rows for one in alike.parts) == 3000
    rng = np.random.default_rng(4)
    shift = rng.normal(size=5)[np.arange(3000) % 5]
    moved = rng.random(3000) < expit(logit(p) + shift)
    apart = performance_by("part", parts, EventForecasts("event", p, moved))
    taus = [each.spread["calibration intercept"].tau for each in (apart, alike)]
    assert taus[0] > 0.4 > 0.2 > taus[1]
    few = performance_by(
        "part", [RowsOf("few", np.arange(3000) < 12)], EventForecasts("event", p, happened)
    )
    assert few.parts[0].few
    assert not few.spread
    ranges = [replace(part, exchangeable=False) for part in parts]
    assert not performance_by("part", ranges, EventForecasts("event", p, moved)).spread


def test_parts_that_are_ranked_without_error_count() -> None:
    p, happened = rows(2000)
    parts = [RowsOf(str(k), np.arange(2000) % 4 == k) for k in range(4)]
    p[::4] = np.where(happened[::4], 0.9, 0.1)
    found = performance_by("part", parts, EventForecasts("event", p, happened))
    assert found.parts[0].performance.auroc.value == 1
    assert found.spread["AUROC"].parts == 4
    assert found.spread["AUROC"].mean.value > found.parts[1].performance.auroc.value


def test_probabilities_of_anybody_are_judged() -> None:
    p, happened = rows(200)
    y = np.where(happened, "sick", "well")
    found = bayesrbf.performance(y, p, event="sick", thresholds=(0.3, 0.5))
    assert found.events[0].events == happened.sum()
    assert found.events[0].at.threshold == 0.3
    both = bayesrbf.performance(y, np.column_stack([p, 1 - p]), event="sick")
    assert both.log_loss == found.log_loss
    assert "AUROC" in str(found)
    assert "at 0.3: sensitivity" in str(found)
    assert found.to_dict()["events"][0]["event"] == "sick"
    three = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    many = bayesrbf.performance(three.argmax(1), three, groups=np.arange(60) // 2)
    assert [one.event for one in many.events] == ["0", "1", "2"]
    assert many.groups == 30


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"p": [0.2, 1.2]}, "between 0 and 1"),
        ({"p": [0.2, np.nan]}, "none of them missing"),
        ({"p": [[0.2, 0.8]]}, "received shapes"),
        ({"classes": ["a", "c"]}, "none of the classes: b"),
        ({"event": "c"}, "event must be one of"),
        ({"thresholds": ()}, "at least one"),
        ({"thresholds": (1.0,)}, "strictly between 0 and 1"),
        ({"groups": [1]}, "one entry for each of 2 rows"),
        ({"p": [[0.9, 0.9], [0.2, 0.8]]}, "must sum to 1"),
        ({"y": ["a", None], "classes": ["a", "b"]}, "missing labels"),
        ({"y": ["a", "a"]}, "must name the two classes"),
    ],
)
def test_what_cannot_be_judged_is_refused(options: dict[str, object], problem: str) -> None:
    given: dict[str, object] = {"y": ["a", "b"], "p": [0.2, 0.8]}
    with pytest.raises(ValueError, match=problem):
        bayesrbf.performance(**(given | options))  # type: ignore[arg-type]
