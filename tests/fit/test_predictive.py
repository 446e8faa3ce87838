from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit, softmax
from scipy.stats import beta, kstest

from bayesrbf.base.log_posterior import OneByOne
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.rows import Observations
from bayesrbf.fit.calibration import tempered
from bayesrbf.fit.chain import Chain, Draws, Seen, Source, Stage, State, Step
from bayesrbf.fit.label_noise import LabelNoise, fit_label_noise
from bayesrbf.fit.probabilities import entropy
from bayesrbf.fit.row_answers import to_dataset
from bayesrbf.fit.stages import Calibration, Prevalence

N_OBS, N_CLASSES = 11, 3
AS_TRAINED = np.zeros(N_CLASSES)
MOVED = np.array([1.5, -2.0, 0.5])


def rows(n: int = N_OBS, seed: int = 0) -> Observations:
    real = np.random.default_rng(seed).normal(size=(n, 2))
    return Observations(real, np.empty((n, 0), dtype=np.intp), np.full(n, -1), np.ones(n))


def predictor(observations: Observations):
    """Linear logits with one slope per coordinate of a draw, and a density of its own."""

    def predict(theta):
        slopes = theta.reshape(2, N_CLASSES)
        return ClassPrediction(observations.real @ slopes, observations.real @ theta[:2] - 3.0)

    return OneByOne(predict)


class Stretched(Stage):
    """Knows how much further out the median of the draws lies."""

    @staticmethod
    def factor(observations: Observations) -> np.ndarray:
        """The factor in log odds."""
        return 1.5 + np.abs(observations.real[:, [0, 1, 0]])

    def on(self, seen: Seen) -> Step:
        def step(state: State, point: State, draws: Draws | None) -> State:
            return replace(state, median_correction=self.factor(seen.rows))

        return step


def source(theta: np.ndarray, prepare=predictor) -> Source:
    return Source(
        theta.shape[:2],
        lambda: theta,
        prepare,
        lambda rows: prepare(rows)(theta[0, 0]).log_probabilities,
        lambda rows: np.zeros(rows.n_obs),
    )


def chain_of(given: Source, log_ratio: np.ndarray = AS_TRAINED, temperature: float = 1.0) -> Chain:
    """A chain that reports the mean of the draws."""
    numbers = np.arange(np.prod(given.shape)).reshape(given.shape)
    return Chain(
        given,
        (Calibration(temperature),),
        (Prevalence(log_ratio),) if log_ratio.any() else (),
        numbers,
        log_ratio.size,
        is_mean=True,
        is_centred=False,
    )


def posterior(n_draws: int = 40, memory: int = 2**31, spread: float = 1.0, **options) -> Chain:
    theta = spread * np.random.default_rng(1).normal(size=(2, n_draws, 2 * N_CLASSES))
    return replace(chain_of(source(theta), **options), memory=memory)


def around(chain: Chain) -> Chain:
    """The chain whose draws are moved around what is reported."""
    return replace(chain, is_centred=True)


def mean(chain: Chain, observations: Observations) -> np.ndarray:
    return np.exp(chain.reported(observations))


def brute(p: Chain, observations: Observations) -> np.ndarray:
    """All draws of all rows in one array."""
    log_joint = np.einsum(
        "nf,cdfk->cdnk", observations.real, p.source.theta().reshape(2, -1, 2, N_CLASSES)
    )
    log_p = tempered(log_joint, p.stages[0].temperature)
    return softmax(log_p + (p.use[0].log_ratio if p.use else 0), axis=-1)


OPTIONS = [{}, {"temperature": 0.4}, {"log_ratio": MOVED}, {"log_ratio": MOVED, "temperature": 0.4}]


@pytest.mark.parametrize("options", OPTIONS)
def test_draws_are_the_softmax_of_each(options):
    p = posterior(**options)
    found, thinning = p.draws(rows())
    assert thinning == 1
    np.testing.assert_allclose(found, brute(p, rows()), rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS[:2])
@pytest.mark.parametrize("memory", [1, 8 * 80 * 3 * 5 * 4, 2**31])
def test_summary_is_that_of_all_draws_at_any_memory(options, memory):
    p = posterior(memory=memory, **options)
    summary = p.summary(rows(), prob=0.8)
    draws = brute(p, rows()).reshape(-1, N_OBS, N_CLASSES)
    np.testing.assert_allclose(summary.mean, draws.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mean(p, rows()), draws.mean(axis=0), rtol=1e-12)
    low, high = np.quantile(draws, (0.1, 0.9), axis=0)
    np.testing.assert_allclose(summary.sd, draws.std(axis=0, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(summary.lower, np.minimum(low, summary.mean), rtol=1e-9)
    np.testing.assert_allclose(summary.upper, np.maximum(high, summary.mean), rtol=1e-9)
    np.testing.assert_allclose(summary.total, entropy(draws.mean(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(summary.aleatoric, entropy(draws).mean(axis=0), rtol=1e-12)
    log_density = np.stack(
        [predictor(rows())(t).log_density for t in p.source.theta().reshape(-1, 6)]
    )
    density = np.log(np.exp(log_density).mean(axis=0))
    np.testing.assert_allclose(summary.log_density, density, rtol=1e-12)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("prob", [0.01, 0.5, 0.9])
def test_what_is_given_out_lies_within_its_interval_whatever_the_draws_are(options, prob):
    p = around(posterior(**options))
    given = np.random.default_rng(3).dirichlet(np.full(N_CLASSES, 0.05), size=N_OBS)
    given[0] = [1.0, 0.0, 0.0]
    summary = p.summary(rows(), prob, given)
    np.testing.assert_array_equal(summary.mean, given)
    assert ((summary.lower <= given) & (given <= summary.upper)).all()
    assert (summary.total >= summary.aleatoric).all()
    assert (summary.aleatoric >= 0).all()


def test_draws_are_laid_around_what_is_given_out_in_log_odds():
    p = around(posterior())
    given = np.random.default_rng(3).dirichlet(np.ones(N_CLASSES), size=N_OBS)
    found = p.summary(rows(), 0.8, given)
    low, middle, high = np.quantile(brute(p, rows()).reshape(-1, N_OBS, 3), (0.1, 0.5, 0.9), axis=0)
    np.testing.assert_allclose(
        logit(found.lower) - logit(given), logit(low) - logit(middle), atol=0.02
    )
    np.testing.assert_allclose(
        logit(found.upper) - logit(given), logit(high) - logit(middle), atol=0.02
    )


def test_the_median_of_draws_is_the_reported_one_times_its_correction():
    given = np.random.default_rng(3).dirichlet(np.ones(N_CLASSES), size=N_OBS)
    p = around(posterior(memory=1))
    p = replace(p, stages=(*p.stages, Stretched()))
    middle = p.summary(rows(), 1e-9, given)
    found = np.where(given < 0.5, middle.lower, middle.upper)
    expected = logit(given) * Stretched.factor(rows())
    np.testing.assert_allclose(logit(found), expected, atol=0.02)
    np.testing.assert_array_equal(middle.mean, given)


def test_few_rows_do_not_tell_that_a_class_is_next_to_impossible():
    """Label noise is of any class: draws that all say 0 have an upper end of 2.3 / n / C."""
    given = np.tile([1 - 2e-9, 1e-9, 1e-9], (N_OBS, 1))
    sure, label_noise = around(posterior()).summary(rows(), 0.9, given), no_surprise(100)
    found = replace(around(posterior()), label_noise=lambda: label_noise).summary(
        rows(), 0.9, given
    )
    assert (sure.upper[:, 1] < 1e-6).all()
    least = strays_at(0.9, 100) / N_CLASSES
    np.testing.assert_allclose(found.upper[:, 1:], least, rtol=0.05)
    np.testing.assert_allclose(1 - found.lower[:, 0], 2 * least, rtol=0.05)
    assert ((found.lower <= given) & (given <= found.upper)).all()


def no_surprise(n: int) -> LabelNoise:
    """What n labels leave open that were all foreseen."""
    return fit_label_noise(np.ones(n), np.ones(n), N_CLASSES)


def strays_at(share: float, n: int) -> float:
    """Rate below which a share of its posterior lies, by quadrature."""
    rate = np.linspace(0, 1, 200_001)
    density = (1 - rate) ** 19 * (1 - rate * (1 - 1 / N_CLASSES)) ** n
    return float(np.interp(share, np.cumsum(density) / density.sum(), rate))


def test_an_end_that_nobody_may_dispute_is_0_or_1():
    """Of draws that know of label_noise; others keep what they say."""
    given = np.tile([1 - 2e-9, 1e-9, 1e-9], (N_OBS, 1))
    found = replace(around(posterior()), label_noise=lambda: no_surprise(100)).summary(
        rows(), 0.9, given
    )
    np.testing.assert_array_equal(found.lower[:, 1:], 0)
    np.testing.assert_array_equal(found.upper[:, 0], 1)
    assert ((found.upper > 0) & (found.lower < 1)).all()
    assert (around(posterior()).summary(rows(), 0.9, given).lower > 0).all()


@pytest.mark.parametrize(
    ("p", "weights", "n_classes", "law"),
    [
        (np.ones(80), np.ones(80), 10**7, beta(1, 100)),
        (np.ones(1), np.full(1, 80.0), 10**7, beta(1, 100)),
        (np.full(80, 1e-12), np.ones(80), 2, None),
        (np.full(60, 0.25), np.ones(60), 4, beta(1, 20)),
        (np.zeros(0), np.zeros(0), 2, beta(1, 20)),
    ],
    ids=["foreseen", "a weight is that many rows", "all stray", "tossed", "no row"],
)
def test_rates_of_strays_fill_their_distribution_in_any_number(p, weights, n_classes, law):
    """Half of them are none, the others what labels held out leave open."""
    label_noise = fit_label_noise(p, weights, n_classes)
    for number in (50, 200, 1000):
        rates = label_noise.rates(number)
        some = rates[rates > 0]
        assert abs(some.size - number / 2) <= 2
        if law is None:  # 80 surprises against 19 labels of the prior
            assert abs(np.median(some) - 80 / 99) < 0.02
        else:
            assert kstest(some, law.cdf).statistic < 6 / number


def test_a_label_that_surprises_raises_the_rate():
    p = np.full(100, 0.97)
    rates = [
        fit_label_noise(np.append(p, last), np.ones(101), 3).rates(200) for last in (0.97, 1e-3)
    ]
    some = rates[0] > 0
    assert (rates[1][some] > rates[0][some]).all()


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_another_prevalence_is_bayes_rule_on_the_mean(temperature):
    plain, p = (
        posterior(temperature=temperature),
        posterior(temperature=temperature, log_ratio=MOVED),
    )
    expected = mean(plain, rows()) * np.exp(MOVED)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean(p, rows()), expected, rtol=1e-12)
    summary = p.summary(rows())
    np.testing.assert_allclose(summary.mean, expected, rtol=1e-12)
    np.testing.assert_allclose(summary.total, entropy(expected), rtol=1e-12)
    assert (summary.epistemic > 0).all()
    assert ((summary.lower < expected) & (expected < summary.upper)).all()


def test_draws_are_weighed_by_how_probable_they_make_a_row():
    """Draws are weighed by the probability that they give to a row at the prevalences of use."""
    log_ratio, said = np.log([1.0, 1000.0]), np.log([[0.999999, 1e-6], [0.5, 0.5]])

    def prepared(observations):
        return OneByOne(lambda theta: ClassPrediction(said[[int(theta[0])]], np.zeros(1)))

    theta = (np.arange(100) >= 98).astype(float).reshape(1, 100, 1)
    summary = chain_of(source(theta, prepared), log_ratio).summary(rows(1))
    np.testing.assert_allclose(summary.mean[0, 1], 10.001 / (0.989999 + 10.001), rtol=1e-3)
    assert summary.lower[0, 1] < 0.01 < 0.99 < summary.upper[0, 1]
    copies = chain_of(source(np.tile(theta, (3, 1, 1)), prepared), log_ratio).summary(rows(1))
    np.testing.assert_allclose(copies.mean, summary.mean, rtol=1e-12)
    np.testing.assert_allclose(copies.sd, summary.sd, rtol=0.01)


def test_a_density_far_from_all_rows_leaves_the_classes_as_they_are():
    def far(observations):
        near = predictor(observations)
        nowhere = np.full(observations.n_obs, -1e60)
        return OneByOne(lambda theta: replace(near(theta), log_density=nowhere))

    p = posterior()
    beyond = replace(p, source=replace(p.source, predictor=far))
    np.testing.assert_array_equal(mean(beyond, rows()), mean(p, rows()))
    np.testing.assert_array_equal(beyond.summary(rows()).mean, p.summary(rows()).mean)
    np.testing.assert_array_equal(beyond.draws(rows())[0], p.draws(rows())[0])
    np.testing.assert_array_equal(beyond.summary(rows()).log_density, -1e60)


def test_blocks_of_rows_fit_into_the_memory():
    largest = 0

    def watching(observations):
        nonlocal largest
        largest = max(largest, observations.n_obs)
        return predictor(observations)

    theta = posterior().source.theta()
    p = replace(chain_of(source(theta, watching)), memory=8 * 80 * 3 * 5 * 4)
    p.summary(rows())
    assert largest == 4


def test_entropies_split_and_are_not_negative():
    summary = posterior().summary(rows())
    assert np.all(summary.epistemic >= 0)
    assert np.all(summary.aleatoric >= 0)
    assert np.all(summary.total <= np.log(N_CLASSES) + 1e-12)
    np.testing.assert_allclose(summary.total, summary.aleatoric + summary.epistemic)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("way", ["averaged", "point", "centred", "corrected, with label_noise"])
@pytest.mark.parametrize("log_ratio", [AS_TRAINED, MOVED], ids=["as trained", "moved"])
def test_both_kinds_of_uncertainty_are_there_wherever_draws_are_not_certain(way, spread, log_ratio):
    """However far draws lie apart, and whatever is given out: the overlap of a row is not lost."""
    p = posterior(log_ratio=log_ratio, spread=spread)
    given = np.random.default_rng(3).dirichlet(np.full(N_CLASSES, 0.3), size=N_OBS)
    if way == "corrected, with label_noise":
        p = replace(p, stages=(*p.stages, Stretched()), label_noise=lambda: no_surprise(99))
    averaged, centred = way == "averaged", way not in ("averaged", "point")
    found = replace(p, is_centred=centred).summary(rows(), 0.9, None if averaged else given)
    expected = entropy(mean(p, rows()) if averaged else given)
    np.testing.assert_allclose(found.total, expected, rtol=1e-12)
    np.testing.assert_allclose(found.aleatoric + found.epistemic, found.total, rtol=1e-12)
    assert (found.aleatoric > 0.01 * found.total).all()
    assert (found.epistemic > 0).all()


def test_draws_that_say_the_same_for_sure_say_nothing_of_the_kinds_of_uncertainty():
    given = np.full((N_OBS, N_CLASSES), 1 / N_CLASSES)
    sure = posterior(spread=0.0, log_ratio=np.array([0.0, -800.0, -800.0]))
    found = sure.summary(rows(), 0.9, given)
    np.testing.assert_array_equal(found.epistemic, 0)
    np.testing.assert_allclose(found.total, np.log(N_CLASSES))


def test_equal_draws_leave_nothing_epistemic():
    p = posterior()
    same = np.broadcast_to(p.source.theta()[:1, :1], p.source.theta().shape)
    summary = chain_of(source(same)).summary(rows())
    np.testing.assert_allclose(summary.epistemic, 0, atol=1e-12)
    np.testing.assert_allclose(summary.sd, 0, atol=1e-12)


def test_shift_moves_the_odds_after_the_temperature():
    shift = np.log([2.0, 1.0, 1.0])
    plain, _ = posterior(temperature=0.3).draws(rows())
    moved, _ = posterior(temperature=0.3, log_ratio=shift).draws(rows())
    np.testing.assert_allclose(moved[..., 0] / moved[..., 1], 2 * plain[..., 0] / plain[..., 1])


def test_too_many_draws_are_thinned_and_said_so():
    p = posterior(n_draws=40, memory=8 * 2 * N_OBS * N_CLASSES * 15)
    with pytest.warns(UserWarning, match="one draw in 3 is kept"):
        found, thinning = p.draws(rows())
    assert thinning == 3
    assert found.nbytes <= p.memory
    np.testing.assert_allclose(found, brute(p, rows())[:, ::3], rtol=1e-12)


def test_no_draw_fits_is_an_error():
    with pytest.raises(ValueError, match="ask for fewer rows"):
        posterior(memory=100).draws(rows())


@pytest.mark.parametrize("n", [0, 1])
def test_no_row_and_one_row(n):
    summary = posterior().summary(rows(n))
    assert summary.mean.shape == (n, N_CLASSES)
    assert summary.log_density.shape == (n,)
    assert posterior().draws(rows(n))[0].shape == (2, 40, n, N_CLASSES)


@pytest.mark.parametrize("prob", [0.0, 1.0, 90.0])
def test_interval_of_an_impossible_probability_is_an_error(prob):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        posterior().summary(rows(), prob=prob)


NOVELTY = np.linspace(0.0, 1.0, N_OBS)
OF_ROWS = {"novelty": NOVELTY, "familiarity": NOVELTY}


def test_dataset_names_rows_and_labels():
    summary = posterior().summary(rows())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = to_dataset(
            summary, list("abc"), np.arange(N_OBS), OF_ROWS, False, assumes_model=False
        )
    assert dataset["probability"].dims == ("obs", "label")
    assert dataset["epistemic_entropy"].dims == ("obs",)
    np.testing.assert_array_equal(dataset["novelty"], NOVELTY)
    np.testing.assert_array_equal(dataset["sd"].sel(label="b"), summary.sd[:, 1])
    np.testing.assert_array_equal(dataset["log_density"], summary.log_density)
    assert dataset.attrs == {"prob": 0.9, "point_estimate": 0, "assumes_model": 0}


def test_a_point_estimate_claims_no_certainty():
    p = chain_of(source(posterior().source.theta()[:1, :1]))
    summary = p.summary(rows())
    with pytest.warns(UserWarning, match=r"refine\(\)"):
        dataset = to_dataset(
            summary, list("abc"), np.arange(N_OBS), OF_ROWS, True, assumes_model=True
        )
    for name in ("sd", "lower", "upper", "aleatoric_entropy", "epistemic_entropy"):
        assert np.isnan(dataset[name]).all()
    for name in ("probability", "total_entropy", "novelty"):
        assert np.isfinite(dataset[name]).all()


def test_entropy_of_certainty_and_of_ignorance():
    np.testing.assert_array_equal(entropy(np.eye(3)), 0)
    np.testing.assert_allclose(entropy(np.full((2, 4), 0.25)), np.log(4))
