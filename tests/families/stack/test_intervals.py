"""Intervals of a bootstrapped stack: around what is delivered, narrower with more rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf import StackedClassifier
from bayesrbf.base.hidden_share import missing_share
from bayesrbf.families.stack.members import DEFAULT
from bayesrbf.fit.asking import new_rows
from tests.fit.class_tables import table

pytestmark = pytest.mark.slow  # draws fit the stack anew


@pytest.fixture(scope="module")
def bootstrapped() -> StackedClassifier:
    """Three members of three kinds on a table with holes."""
    model = StackedClassifier(cv=3, random_state=0).fit(*table(60))
    return model.refine("bootstrap", draws=201, refits=4)


def test_draws_have_about_the_delivered_probability_as_their_mean(bootstrapped) -> None:
    """Their median, strays apart, lies further from 1/2, by the stretch in log odds."""
    X, _ = table(40, seed=1)
    rows = new_rows(bootstrapped.fitted_, X).cells
    stretch = bootstrapped.fitted_.class_posterior.predictor(rows).stretch
    knows = missing_share(rows) < 1  # without a cell there is nothing to disagree about
    assert (stretch[knows] > 1).all()
    assert (stretch[~knows] == 1).all()
    point, posterior = bootstrapped.predict_proba(X), bootstrapped.fitted_.class_posterior
    assert posterior.strays is not None
    middle = replace(posterior, strays=None).summary(rows, 1e-9, point)
    expected = stretch * np.log(point / (1 - point))
    ends = np.stack([middle.lower, middle.upper])
    found = np.where(point < 0.5, ends.min(axis=0), ends.max(axis=0))
    np.testing.assert_allclose(np.log(found / (1 - found)), expected, atol=1e-3)


@pytest.mark.parametrize("prob", [0.01, 0.5, 0.9])
def test_the_delivered_probability_lies_inside_its_interval(bootstrapped, prob: float) -> None:
    X, _ = table(40, seed=1)
    point, told = bootstrapped.predict_proba(X), bootstrapped.uncertainty(X, prob)
    np.testing.assert_array_equal(told["probability"], point)
    assert ((told["lower"] <= point) & (point <= told["upper"])).all()


def test_the_table_counts_at_rows_where_members_agree(bootstrapped) -> None:
    """Without the variance of the table the same draws spread less at every row."""
    X, _ = table(40, seed=1)
    refits, model = bootstrapped.fitted_.details, bootstrapped.model_
    assert refits.variance.of_table > 0
    known = model, bootstrapped.rows_, bootstrapped.draws_
    spreads = []
    for some in (refits, replace(refits, shifts=np.zeros_like(refits.shifts))):
        posterior = some.class_posterior(*known, np.zeros(bootstrapped.classes_.size), 0)
        said = posterior.predictor(new_rows(bootstrapped.fitted_, X).cells).at_all(
            posterior.theta[0]
        )
        spreads.append(np.diff(said.log_probabilities, axis=-1).std(axis=0))
    assert (spreads[1] < spreads[0]).mean() > 0.9


def two_gaussians(n_obs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n_obs) % 2
    return rng.normal(size=(n_obs, 2)) + 1.5 * y[:, None], y


@pytest.mark.parametrize(("last", "factor"), [((), 0.9), (("forest",), 1.0)])
def test_intervals_are_narrower_with_more_rows(last: tuple[str, ...], factor: float) -> None:
    """Two Gaussians: smooth members come nearer to the truth, and so to each other.

    The leaves of a forest have few rows however many there are, so it comes nearer more slowly.
    """
    new = np.random.default_rng(1).normal(0.75, 1.0, size=(100, 2))
    members = [*(name for name in DEFAULT if name != "forest"), *last]
    widths = []
    for n_obs in (60, 960):
        model = StackedClassifier(members, cv=5, random_state=0).fit(*two_gaussians(n_obs))
        told = model.refine("bootstrap", refits=8, draws=200).uncertainty(new)
        widths.append(float((told["upper"] - told["lower"]).mean()))
    assert widths[1] < factor * widths[0]


@pytest.mark.filterwarnings("ignore:.*Give the column in the unit of training:UserWarning")
def test_intervals_are_wide_off_the_data(bootstrapped) -> None:
    """At least twice as wide where a sure answer is given to a row unlike all others."""
    X, _ = table(40, seed=1)
    sure = bootstrapped.predict_proba(X).max(axis=1) > 0.9
    far = X[sure].assign(pressure=X["pressure"][sure] + 3e4)
    told = [bootstrapped.uncertainty(some) for some in (X[sure], far)]
    near, off = (float((one["upper"] - one["lower"]).mean()) for one in told)
    assert off > 2 * near
