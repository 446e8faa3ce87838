"""Leave-one-out against the exact answer: a normal mean with known variance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from arviz_base import from_dict
from arviz_stats import loo as arviz_loo
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bayesrbf.inference.diagnose import judge_leave_one_out, leave_one_out
from bayesrbf.inference.draws import Draws, pareto_smooth, point
from bayesrbf.inference.laplace import laplace
from tests.inference.targets import Target


class NormalMean(Target):
    """Rows x ~ Normal(mu, 1) with mu ~ Normal(0, 10)."""

    def __init__(self, n: int = 30, outlier: float = 0.0) -> None:
        super().__init__(1)
        self.rows = np.random.default_rng(0).normal(size=n)
        self.rows[0] += outlier

    def value_and_gradient(self, theta, jacobian=True):
        deviations = self.rows - theta[0]
        value = -0.5 * deviations @ deviations - 0.5 * theta[0] ** 2 / 100
        return float(value), np.array([deviations.sum() - theta[0] / 100])

    def pointwise(self, theta):
        return norm.logpdf(self.rows, theta[0])

    def exact(self) -> np.ndarray:
        """Log predictive density of every row given all others."""
        precision = len(self.rows) - 1 + 1 / 100
        means = (self.rows.sum() - self.rows) / precision
        return norm.logpdf(self.rows, means, np.sqrt(1 + 1 / precision))


def posterior(target: NormalMean, draws: int = 1000) -> Draws:
    """Exact draws: Laplace's approximation is the posterior."""
    made = laplace(target, np.zeros(1), draws=draws, random_state=0)
    return Draws(made.theta, {"lp": made.stats["lp"]}, "nuts")


@pytest.mark.slow
def test_elpd_is_the_exact_one():
    target = NormalMean()
    exact = target.exact()
    for draws in (posterior(target), laplace(target, np.zeros(1), random_state=0)):
        found = leave_one_out(target, draws)
        assert found.elpd == pytest.approx(exact.sum(), abs=0.05)
        assert found.se == pytest.approx(np.sqrt(exact.size) * exact.std(), rel=0.05)
        assert found.n_bad == 0
        assert found.n_draws == 4000


def test_figures_are_those_of_arviz():
    target = NormalMean()
    draws = posterior(target)
    found = leave_one_out(target, draws)
    rows = np.array([[target.pointwise(theta) for theta in chain] for chain in draws.theta])
    tree = from_dict({"posterior": {"mu": draws.theta[..., 0]}, "log_likelihood": {"x": rows}})
    expected = arviz_loo(tree, pointwise=True)
    assert found.elpd == pytest.approx(expected.elpd, rel=1e-12)
    assert found.p_loo == pytest.approx(expected.p, rel=1e-10)
    assert found.se == pytest.approx(expected.se, rel=0.03)  # ours divides by n - 1
    assert found.good_k == pytest.approx(expected.good_k)
    np.testing.assert_allclose(found.pareto_k, expected.pareto_k, rtol=1e-10)


def test_a_wrong_posterior_is_noticed():
    """A negative control: a shifted posterior predicts its rows worse."""
    target = NormalMean()
    draws = posterior(target)
    shifted = replace(draws, theta=draws.theta + 0.5)
    assert leave_one_out(target, shifted).elpd < target.exact().sum() - 1


def approximation(target: NormalMean, width: float, draws: int = 1000) -> Draws:
    """Draws of a normal of this many posterior standard deviations, with their k-hat."""
    z = np.random.default_rng(1).normal(size=(4, draws))
    precision = len(target.rows) + 1 / 100
    theta = (target.rows.sum() / precision + width * z / np.sqrt(precision))[..., None]
    lp = np.array([[target.value_and_gradient(one)[0] for one in chain] for chain in theta])
    log_q = -0.5 * z**2
    weights, pareto_k = pareto_smooth((lp - log_q).ravel())
    about = {"pareto_k": pareto_k, "importance_share": 1 / (weights.size * np.sum(weights**2))}
    return Draws(theta, {"lp": lp, "log_q": log_q}, "laplace", True, about)


def test_figures_of_an_approximation_are_those_of_its_draws_and_the_weighted_ones_beside_them():
    target = NormalMean()
    wide = approximation(target, 1.5)
    found = leave_one_out(target, wide)
    rows = np.array([[target.pointwise(theta) for theta in chain] for chain in wide.theta])
    tree = from_dict({"posterior": {"v": wide.theta}, "log_likelihood": {"x": rows}})
    assert found.elpd == pytest.approx(arviz_loo(tree).elpd, rel=1e-12)
    assert found.weighted == pytest.approx(target.exact().sum(), abs=0.1)
    assert "taken as draws of the posterior" in found.how
    resampled = replace(wide, attributes={**wide.attributes, "resampled": 1})
    assert not leave_one_out(target, resampled).approximate


@pytest.mark.parametrize("outlier", [pytest.param(0.0, marks=pytest.mark.slow), 30.0])
def test_a_worse_approximation_never_gets_the_better_verdict(outlier):
    """Narrower and narrower normals: k-hat is about 1 - width**2 and goes through 0.7."""
    target = NormalMean(outlier=outlier)
    seen = []
    for width in (1.2, 1.0, 0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.4, 0.3):
        draws = approximation(target, width)
        loo = leave_one_out(target, draws)
        verdict = {one.row: one for one in judge_leave_one_out(loo)}["loo_bad_rows"].good
        seen.append((draws.attributes["pareto_k"], verdict, loo.n_far))
    k_hats, verdicts, far = map(np.array, zip(*sorted(seen), strict=True))
    assert k_hats[0] < 0.1
    assert k_hats[-1] > 0.8
    assert (np.diff(verdicts.astype(int)) <= 0).all()
    assert (np.diff(far) >= 0).all()
    assert verdicts[0] == (outlier == 0)
    assert not verdicts[k_hats > 0.7].any()


@given(st.floats(-1, 2), st.floats(-1, 2), st.floats(0, 0.9), st.integers(0, 1))
def test_the_verdict_falls_with_the_k_hat_of_the_same_draws(one, other, share, resampled):
    target = NormalMean(n=5)
    made = approximation(target, 1.0, draws=50)
    verdicts = []
    for pareto_k in sorted((one, other)):
        about = {"pareto_k": pareto_k, "importance_share": share, "resampled": resampled}
        loo = leave_one_out(target, replace(made, attributes=about))
        verdicts.append(loo.trusted)
        assert not loo.trusted or pareto_k <= 0.7
    assert verdicts[0] >= verdicts[1]


def test_a_row_that_decides_alone_is_counted():
    found = leave_one_out(NormalMean(outlier=30.0), posterior(NormalMean(outlier=30.0)))
    assert found.n_bad == 1
    assert found.pareto_k.argmax() == 0
    judged = {one.row: one for one in judge_leave_one_out(found)}
    assert not judged["loo_bad_rows"].good
    assert judged["loo_bad_rows"].value == 1
    assert "1 of 30 rows" in judged["loo_bad_rows"].sentence


def test_long_tables_are_sampled_and_many_draws_thinned(monkeypatch):
    target = NormalMean(n=400)
    draws = posterior(target, draws=250)
    whole = leave_one_out(target, draws)
    monkeypatch.setattr("bayesrbf.inference.diagnose._ROWS_LEFT_OUT", 100)
    monkeypatch.setattr("bayesrbf.inference.diagnose._ENTRIES", 50_000)
    part = leave_one_out(target, draws)
    assert part.pareto_k.size == 100
    assert part.thinning == 2
    assert part.n_draws == 500
    assert abs(part.elpd - whole.elpd) < 4 * part.se
    assert part.se > 1.2 * whole.se  # rows that were not left out are not known
    assert "one in 2" in part.how
    assert "scaled up from 100 rows" in part.how


def test_all_rows_of_a_long_table_are_never_asked_for_under_all_draws(monkeypatch):
    asked = []

    class InOneGo(NormalMean):
        def log_likelihoods(self, thetas):
            asked.append(len(thetas))
            return np.stack([self.pointwise(theta) for theta in thetas])

    monkeypatch.setattr("bayesrbf.inference.diagnose._ROWS_LEFT_OUT", 100)
    monkeypatch.setattr("bayesrbf.base.rows.AT_ONCE", 50_000)
    draws = posterior(NormalMean(n=400), draws=250)
    one_by_one = leave_one_out(NormalMean(n=400), draws)
    found = leave_one_out(InOneGo(n=400), draws)
    assert max(asked) * 400 <= 50_000
    assert sum(asked) == found.n_draws
    np.testing.assert_array_equal(found.pareto_k, one_by_one.pareto_k)


def test_a_point_cannot_leave_anything_out():
    with pytest.raises(ValueError, match="received a point estimate"):
        leave_one_out(NormalMean(), point(NormalMean(), np.zeros(1)))


def test_few_draws_have_no_tail_and_say_so():
    target = NormalMean()
    found = leave_one_out(target, posterior(target, draws=5))
    assert found.elpd == pytest.approx(target.exact().sum(), abs=1)
    assert found.n_bad == 30
    assert "plain importance sampling of 20 draws" in found.how
    judged = {one.row: one for one in judge_leave_one_out(found)}
    assert "too few" in judged["loo_bad_rows"].sentence


class TwoPoints(NormalMean):
    """Two values of the mean, as a discrete parameter has them."""

    def pointwise(self, theta):
        return norm.logpdf(self.rows, np.round(theta[0]))


def test_ratios_of_a_discrete_parameter_have_no_tail_to_smooth():
    target = TwoPoints(n=3)
    values = np.random.default_rng(0).integers(0, 2, (4, 250, 1)).astype(float)
    found = leave_one_out(target, Draws(values, {"lp": values[..., 0]}, "gibbs"))
    likelihood = np.stack([target.pointwise(theta) for theta in values.reshape(-1, 1)])
    exact = -np.log(np.mean(np.exp(-likelihood), axis=0))
    assert found.elpd == pytest.approx(exact.sum())
    assert found.n_bad == 0
