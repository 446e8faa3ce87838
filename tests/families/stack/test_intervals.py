"""Intervals of a stack: the error of its pool, which labels held out refute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, logit

from bayesrbf import StackedClassifier, explain_interval
from bayesrbf.base import names
from bayesrbf.base.rows import Observations, Subjects
from bayesrbf.families.stack import intervals
from bayesrbf.families.stack.fitted import FittedStack
from bayesrbf.families.stack.intervals import ErrorCoordinates, ErrorOfRows, class_error
from bayesrbf.families.stack.members import DEFAULT
from bayesrbf.fit.asking import new_rows
from tests.cases import generative
from tests.fit.class_tables import table


@pytest.fixture(scope="module")
def refined() -> StackedClassifier:
    """The default on a table with holes."""
    model = StackedClassifier(cv=5, random_state=0).fit(*table(60))
    return model.refine("laplace", draws=500)


def places(n: int, seed: int) -> ErrorCoordinates:
    """Rows of which something is known."""
    return ErrorCoordinates(np.random.default_rng(seed).normal(size=(n, 4)), np.ones(n))


NO_CODES = np.zeros((1000, 0), int)


def of_rows(held: Sequence[ErrorCoordinates], information: np.ndarray) -> intervals.PoolError:
    """The error of a pool on a table without categories, no row with a copy."""
    return intervals.pool_error(held, information, len(information), None, 10, 0)


def variance(error: intervals.ClassError, rows: ErrorCoordinates) -> np.ndarray:
    coefficients, left = error.at(rows)
    return np.square(coefficients).sum(axis=1) + left**2


def test_the_variance_is_that_of_a_gaussian_process_given_labels() -> None:
    """Against the textbook: k - k (K + W^-1)^-1 k^T, row by row."""
    held, new = places(60, 0), places(20, 1)
    information = np.random.default_rng(2).uniform(0.05, 0.25, 60)
    prior = held.covariance(held) + np.diag(1 / information)
    k = new.covariance(held)
    expected = new.variance - (k * np.linalg.solve(prior, k.T).T).sum(axis=1)
    np.testing.assert_allclose(variance(class_error(held, information), new), expected, rtol=1e-4)


def test_the_error_of_a_row_held_out_is_that_without_its_own_labels() -> None:
    """Those of the row as it is and with cells hidden."""
    held = [places(30, 0), places(30, 1)]
    information = np.random.default_rng(2).uniform(0.05, 0.25, (30, 2))
    versions = np.column_stack([np.arange(10), np.arange(10, 30).reshape(10, 2)])
    found = of_rows(held, information).left_out(versions, NO_CODES).variance
    for row, own in enumerate(versions):
        others = information.copy()
        others[own] = 0
        error = of_rows(held, others).at([one.take(own[:1]) for one in held], NO_CODES)
        np.testing.assert_allclose(found[row], error.variance[0], rtol=1e-5)


@pytest.mark.slow
def test_rows_held_out_have_the_intervals_of_new_rows() -> None:
    """Those of rows that the fit has seen are wider: kinds of members disagree on them."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 4)) + 0.6 * y[:, None]
    model = StackedClassifier(random_state=0).fit(X[:200], y[:200]).refine("laplace", draws=100)
    p = model.out_of_fold_.reindex(range(200)).to_numpy()
    found = model.fitted_.held_out_summary(p)
    assert found is not None
    positions, summary = found
    np.testing.assert_array_equal(positions, np.arange(200))
    np.testing.assert_array_equal(summary.mean, p)
    width = (summary.upper - summary.lower).mean()
    told = [model.uncertainty(X[rows]) for rows in (slice(200), slice(200, None))]
    seen, new = (float((one["upper"] - one["lower"]).mean()) for one in told)
    assert abs(width - new) < (seen - new) / 4


def test_the_covariance_is_that_of_the_formula(refined: StackedClassifier) -> None:
    """From what members say of rows: the pool's log odds, deviations of kinds, hidden shares."""
    model, c = refined.model_, 1
    values, hidden = model.held.values[:20], model.held.missing_fraction[:20]
    found = model.error_coordinates(values, hidden)[0][c]
    at_point = model.pool_posterior.of_rows(hidden, model.fitted_point)
    members = logit(np.clip(at_point.members(values)[..., c], 1e-4, 1 - 1e-4))
    pool = logit(np.clip(np.exp(model.pooled(values, hidden))[:, c], 1e-4, 1 - 1e-4))
    kinds = np.stack(
        [members[:, model.member_groups == k].mean(axis=1) for k in set(model.member_groups)],
        axis=1,
    )
    i, j = 3, 11
    apart = (pool[i] - pool[j]) ** 2 / intervals.LENGTH**2
    deviations = kinds - pool[:, None]
    weights = np.array(
        [model.pool.weights[model.member_groups == k].sum() for k in set(model.member_groups)]
    )
    apart += weights @ np.square(deviations[i] - deviations[j]) / intervals.GROUP_LENGTH**2
    apart += (hidden[i] - hidden[j]) ** 2 / intervals.MISSING_LENGTH**2
    covariance = found.covariance(found)
    np.testing.assert_allclose(covariance[i, j], intervals.VARIANCE * np.exp(-apart / 2))
    np.testing.assert_allclose(np.diag(covariance), found.variance)


def test_fewer_inducing_points_leave_more_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    held, new, information = places(200, 0), places(50, 1), np.full(200, 0.2)
    whole = variance(class_error(held, information), new)
    monkeypatch.setattr(intervals, "MAX_INDUCING", 20)
    fewer = variance(class_error(held, information), new)
    # Labels between inducing points count as labels of these points, which may tell more of a row.
    assert (fewer > 0.95 * whole).all()
    assert fewer.mean() > 1.2 * whole.mean()


def test_labels_refute_and_far_from_them_all_is_open() -> None:
    """More rows, or rows of more weight, leave less; far from all of them everything is open."""
    held, near = places(100, 0), places(20, 1)
    found = [
        variance(class_error(held.take(range(n)), np.full(n, 0.2)), near) for n in (0, 25, 100)
    ]
    np.testing.assert_allclose(found[0], near.variance)
    assert (found[1] <= found[0] + 1e-9).all()
    assert (found[2] <= found[1] + 1e-9).all()
    twice = class_error(held.take([*range(100)] * 2), np.full(200, 0.2))
    heavy = class_error(held, np.full(100, 0.4))
    np.testing.assert_allclose(variance(twice, near), variance(heavy, near), rtol=1e-4)
    far = replace(near, coordinates=near.coordinates + 100)
    np.testing.assert_allclose(variance(heavy, far), far.variance)


@pytest.mark.parametrize("n", [1, 7, 40])
def test_labels_at_a_row_are_so_many_labels(n: int) -> None:
    """Of n labels exactly at a row, ``1 / V = 1 / k + n p q``."""
    here, p = places(1, 3), 0.3
    many = here.take([0] * n)
    error = class_error(many, np.full(n, p * (1 - p)))
    numbers = np.zeros((1, 1, intervals.MAX_INDUCING + 2))
    coefficients = intervals.with_levels(here, *error.at(here), None)
    at = ErrorOfRows((coefficients,), numbers, here.variance[:, None], intervals.VARIANCE)
    np.testing.assert_allclose(at.labels_near(np.array([[p]])), n, rtol=1e-6)


def test_parts_of_an_interval_are_those_of_its_law(refined: StackedClassifier) -> None:
    """Each alone is at most as wide as all, and labels leave at most what there was before."""
    X, _ = table(40)
    told = explain_interval(refined, X)
    whole = refined.uncertainty(X)
    for name in ("probability", "lower", "upper"):
        np.testing.assert_array_equal(told[name], whole[name])
    width = told["component_upper"] - told["component_lower"]
    before, holes, given = (
        width.sel(uncertainty_component=one) for one in names.COMPONENTS_OF_ERROR[:3]
    )
    assert float(given.mean()) < 0.9 * float(holes.mean())
    # The error of the other classes moves a class, too, so one of a row may be a little wider.
    assert bool((holes <= before + 0.05).all())
    complete = X.notna().all(axis=1).to_numpy()
    np.testing.assert_array_equal(holes[complete], before[complete])
    assert float(holes[~complete].mean()) < 0.95 * float(before[~complete].mean())
    assert bool((told["component_lower"] <= told["probability"]).all())
    assert bool((told["component_upper"] >= told["probability"]).all())
    rest = names.INDUCING_POINTS, names.RARE_LEVELS, names.CLASS_SHARES, names.LABEL_NOISE
    alone = width.sel(uncertainty_component=list(rest)).max("uncertainty_component")
    assert bool((alone <= told["upper"] - told["lower"] + 0.02).all())


def test_the_interval_of_a_row_without_a_cell_is_of_the_class_shares(
    refined: StackedClassifier,
) -> None:
    X, _ = table(4)
    empty = X.iloc[:1].mask(np.ones((1, X.shape[1]), bool))
    told = explain_interval(refined, empty).isel(obs=0)
    assert bool(np.isnan(told["labels_near"]).all())
    shares = told.sel(uncertainty_component=names.CLASS_SHARES)
    np.testing.assert_allclose(shares["component_lower"], told["lower"], atol=0.02)
    np.testing.assert_allclose(shares["component_upper"], told["upper"], atol=0.02)
    assert bool(
        (
            told.sel(uncertainty_component=names.LABELS_HELD_OUT)["component_upper"]
            == told["probability"]
        ).all()
    )


def test_an_interval_that_assumes_the_model_has_no_parts() -> None:
    X, y = table(60)
    mixture = generative(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs draws"):
        explain_interval(mixture, X)
    with pytest.raises(ValueError, match=r"model_uncertainty='pool'"):
        explain_interval(mixture.refine("laplace"), X)


def test_inducing_points_have_the_variance_of_all_rows() -> None:
    """Of 1,500 rows of a sure pool, by the share of hidden cells."""
    rng = np.random.default_rng(0)
    hidden = np.repeat([0.0, 0.5, 5 / 6], 500)
    log_odds = rng.normal(size=1500) * 4 * (1 - hidden)
    apart = np.outer(log_odds, [0.15, 0.05, -0.1]) * rng.normal(1, 0.5, size=(1500, 3))
    scales = intervals.LENGTH, intervals.GROUP_LENGTH, intervals.MISSING_LENGTH
    coordinates = np.column_stack([log_odds / scales[0], apart / scales[1], hidden / scales[2]])
    held = ErrorCoordinates(coordinates, np.ones(1500))
    given = held.take(np.arange(0, 1500, 5))
    information = held.bernoulli_variance
    k = given.covariance(held)
    told = k @ np.linalg.solve(held.covariance(held) + np.diag(1 / information), k.T)
    exact = given.variance - np.diag(told)
    found = variance(class_error(held, information), given)
    for share in np.unique(hidden):
        some = given.missing_fraction == share
        assert found[some].mean() == pytest.approx(exact[some].mean(), rel=0.2)


def test_a_mean_over_completions_has_a_smaller_error() -> None:
    """``k(x, x)`` has the mean ``tau^2 (1 + 2 s^2)^(-1/2)`` over independent completions."""
    rng = np.random.default_rng(0)
    alike, s, h = np.zeros((4000, 4)), 1.5, 0.5 / intervals.MISSING_LENGTH
    rows, copies = alike.copy(), alike.copy()
    rows[:, 0] = s * rng.normal(size=4000)
    copies[:, -1] = h
    held = ErrorCoordinates(np.concatenate([rows, copies]), np.ones(8000))
    new = ErrorCoordinates(np.array([[0.0, 0, 0, h], [0, 0, 0, 0]]), np.ones(2))
    found = intervals.completions_of(held, 4000).marginalised(new).variance
    two = s * rng.normal(size=(2, 100_000))
    expected = intervals.VARIANCE * np.exp(-((two[0] - two[1]) ** 2) / 2).mean()
    np.testing.assert_allclose(found, [expected, intervals.VARIANCE], rtol=0.03)


def test_a_combination_of_levels_has_the_error_that_its_own_rows_leave() -> None:
    """However well the process knows it, and as the process has it where many rows are alike."""
    held = places(400, 0)
    codes = np.repeat([[0, 0], [1, 1]], [390, 10], axis=0)
    rows = Observations(np.zeros((400, 0)), codes, np.ones(400, int), np.ones(400))
    levels = intervals.training_levels(rows)
    assert levels is not None
    asked = np.array([[0, 0], [1, 1], [0, 1], [-1, 1], [-1, -1]])
    np.testing.assert_allclose(levels.effective_count(asked), [390, 10, 0, 10, 400], atol=0.1)
    error = intervals.pool_error([held] * 2, np.full((400, 2), 50.0), 400, levels, 10, 0)
    here = held.take([0] * 5)
    found, process = (
        error.at([here] * 2, of).variance[:, 0] for of in (asked, asked[:1].repeat(5, 0))
    )
    variance, before = here.bernoulli_variance[0], intervals.LEVELS_VARIANCE
    np.testing.assert_allclose(
        found[1:4], 1 / (1 / before + np.array([10, 0, 10]) * variance), rtol=0.05
    )
    np.testing.assert_allclose(
        found[[0, 4]], np.maximum(process[[0, 4]], 1 / (390 * variance)), rtol=0.05
    )


def test_a_row_without_a_cell_has_no_error() -> None:
    bare = replace(places(3, 0), scale=np.zeros(3))
    np.testing.assert_allclose(variance(class_error(places(40, 1), np.full(40, 0.2)), bare), 0)


def error_of(model: FittedStack, rows: Observations) -> ErrorOfRows:
    values = model.members.log_probabilities(rows)
    error = model.pool_error(1000, 0, replace(rows, codes=rows.codes[:, :0]))
    return error.at(model.error_coordinates(values, model.missing_fraction(rows))[0], rows.codes)


def test_draws_have_the_variance_of_the_error(refined: StackedClassifier) -> None:
    X, _ = table(40, seed=1)
    rows = new_rows(refined.fitted_, X).cells
    error = error_of(refined.model_, rows)
    found = error.draws(np.arange(1000)).var(axis=0)
    np.testing.assert_allclose(found, error.variance / 2, rtol=0.25, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_the_median_correction_is_of_the_variance_of_the_draws(n_classes: int) -> None:
    """So the mean of the draws is about what is given out, however many classes there are."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(n_classes, 2.0), size=20)
    sizes, numbers = 0.3 * np.ones((20, 2)), rng.standard_normal((4000, n_classes, 2))
    error = ErrorOfRows((sizes,) * n_classes, numbers, np.ones((20, n_classes)), 1.0)
    moved = log_softmax(np.log(p) + error.draws(np.arange(4000)), axis=-1)
    of_odds = logit(np.exp(moved)).var(axis=0)
    np.testing.assert_allclose(
        error.median_correction(p), np.sqrt(1 + np.pi * of_odds / 8), rtol=0.01
    )


def test_draws_are_functions_of_the_row(refined: StackedClassifier) -> None:
    """Whatever rows are asked for beside it, and however many draws at a time."""
    X, _ = table(40, seed=1)
    whole, one = refined.uncertainty(X), refined.uncertainty(X.iloc[[7]])
    for name in ("lower", "upper", "sd"):
        np.testing.assert_allclose(whole[name][[7]], one[name], atol=1e-9)
    small = refined.uncertainty(X, memory=100_000)
    np.testing.assert_allclose(small["upper"], whole["upper"], atol=1e-9)


def test_rows_of_one_unit_count_as_one_row(refined: StackedClassifier) -> None:
    X, _ = table(40, seed=1)
    rows, model = new_rows(refined.fitted_, X).cells, refined.model_
    pairs = Subjects.of(np.arange(model.held.labels.size) // 2)
    paired = replace(model, held=replace(model.held, subjects=pairs))
    alone, together = (error_of(one, rows).variance for one in (model, paired))
    knows = model.missing_fraction(rows) < 1
    assert (together >= alone - 1e-6).all()
    assert (together[knows] > alone[knows] + 0.01).mean() > 0.5


def test_the_median_of_the_draws_has_its_correction(
    refined: StackedClassifier,
) -> None:
    X, _ = table(40, seed=1)
    rows = new_rows(refined.fitted_, X).cells
    point, chain = refined.predict_proba(X), refined.fitted_.chain
    correction = chain.on(rows).at(np.array([0])).median_correction
    assert correction is not None
    knows = refined.model_.missing_fraction(rows) < 1
    assert (correction[knows] > 1).all()
    assert (correction[~knows] == 1).all()
    assert chain.label_noise is not None
    middle = replace(chain, label_noise=None).summary(rows, 1e-9, point)
    ends = np.stack([middle.lower, middle.upper])
    found = np.where(point < 0.5, ends.min(axis=0), ends.max(axis=0))
    np.testing.assert_allclose(logit(found), correction * logit(point), atol=0.02)


@pytest.mark.parametrize("prob", [0.01, 0.5, 0.9])
def test_the_delivered_probability_lies_inside_its_interval(
    refined: StackedClassifier, prob: float
) -> None:
    X, _ = table(40, seed=1)
    point, told = refined.predict_proba(X), refined.uncertainty(X, prob)
    np.testing.assert_array_equal(told["probability"], point)
    assert ((told["lower"] <= point) & (point <= told["upper"])).all()


def two_gaussians(n_obs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n_obs) % 2
    return rng.normal(size=(n_obs, 2)) + 1.5 * y[:, None], y


@pytest.mark.slow
def test_intervals_are_narrower_with_more_rows() -> None:
    """Whatever members there are."""
    new = np.random.default_rng(1).normal(0.75, 1.0, size=(100, 2))
    for members in ([name for name in DEFAULT if name != "forest"], [*DEFAULT]):
        widths = []
        for n_obs in (60, 480):
            model = StackedClassifier(members, cv=5, random_state=0).fit(*two_gaussians(n_obs))
            told = model.refine("laplace").uncertainty(new)
            widths.append(float((told["upper"] - told["lower"]).mean()))
        assert widths[1] < 0.7 * widths[0]


@pytest.mark.filterwarnings("ignore:.*Give the column in the unit of training:UserWarning")
def test_intervals_are_wide_off_the_data(refined: StackedClassifier) -> None:
    """Far wider where a sure answer is given to a row unlike all others."""
    X, _ = table(40, seed=1)
    sure = refined.predict_proba(X).max(axis=1) > 0.9
    far = X[sure].assign(pressure=X["pressure"][sure] + 6 * X["pressure"].std())
    told = [refined.uncertainty(some) for some in (X[sure], far)]
    near, off = (float((one["upper"] - one["lower"]).mean()) for one in told)
    assert off > 1.7 * near
