"""HybridMixtureClassifier against closed forms, and the invariances that a classifier has."""

from __future__ import annotations

from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MixtureDensity, MixturePrior
from bayesrbf.estimators.calibrating import stratified_folds
from bayesrbf.inference.diagnose import PosteriorWarning
from bayesrbf.posterior.temperature import fit_temperature

CLASSES = np.array(["calm", "gale", "storm"], dtype=object)


def table(n: int = 90, missing: float = 0.25, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Three classes over reals in different units and a string column, with holes."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    frame = pd.DataFrame(
        {
            "wind": rng.normal(codes * 2.0, 1.0),
            "pressure": 1e5 + 300 * rng.normal(-codes),
            "sky": np.where(rng.random(n) < 0.7, np.array(["a", "b", "c"])[codes], "b"),
        }
    )
    hidden = rng.random(frame.shape) < missing
    return frame.mask(hidden, None).astype({"wind": float, "pressure": float}), CLASSES[codes]


def iris(missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    return X, y


# ---- what it is


def test_one_tied_component_on_complete_rows_is_linear_discriminant_analysis() -> None:
    X, y = iris()
    model = HybridMixtureClassifier(tied=True, tol=1e-12).fit(X, y)
    n, d, c = len(X), X.shape[1], 3
    freedom, kappa, counts = 0.3 * d, 0.1, np.bincount(y)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    means = np.array([X[y == k].sum(axis=0) + kappa * centre for k in range(c)])
    means /= (counts + kappa)[:, None]
    scatter = sum((X[y == k] - means[k]).T @ (X[y == k] - means[k]) for k in range(c))
    scatter = scatter + kappa * (means - centre).T @ (means - centre)
    covariance = (scatter + (freedom + c) * np.diag(scale**2)) / (n + freedom + c)
    priors = (counts + 1) / (n + c)
    slopes = np.linalg.solve(covariance, means.T)
    scores = X @ slopes - 0.5 * np.sum(means.T * slopes, axis=0) + np.log(priors)
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), atol=1e-8)


def test_class_log_probabilities_are_those_of_one_density_a_class() -> None:
    X, y = iris()
    prior = MixturePrior(degrees_of_freedom=1e-8, mean_precision=1e-8)
    model = HybridMixtureClassifier(prior=prior, tol=1e-12).fit(X, y)
    densities = [MixtureDensity(prior=prior, tol=1e-12).fit(X[y == k]) for k in range(3)]
    # The prior's centre is the table's, so the two agree only as far as G = 1 row of it allows.
    joint = np.column_stack([d.score_samples(X) for d in densities])
    agree = model.predict(X) == joint.argmax(axis=1)
    assert agree.mean() > 0.97


def test_one_class_is_a_density() -> None:
    X, _ = iris(0.2)
    with_classes = HybridMixtureClassifier(2, random_state=0).fit(X, np.ones(len(X)))
    density = MixtureDensity(2, random_state=0).fit(X)
    np.testing.assert_array_equal(with_classes.score_samples(X), density.score_samples(X))
    np.testing.assert_array_equal(with_classes.predict_proba(X), np.ones((len(X), 1)))
    np.testing.assert_array_equal(with_classes.predict(X), np.ones(len(X)))


def test_quality_on_iris_with_holes() -> None:
    X, y = iris(0.3)
    fold = np.arange(len(y)) % 2 == 0
    model = HybridMixtureClassifier(tied=True).fit(X[fold], y[fold])
    assert model.score(X[~fold], y[~fold]) > 0.88


def test_different_numbers_of_components() -> None:
    X, y = table()
    model = HybridMixtureClassifier(
        {"calm": 2, "gale": 1, "storm": 1}, covariance_type="diag", random_state=0
    ).fit(X, y)
    posterior = model.posterior_["posterior"]
    assert posterior.sizes["component"] == 4
    assert posterior["component_class"].to_numpy().tolist() == ["calm", "calm", "gale", "storm"]
    assert model.transform(X).shape == (len(X), 4)
    np.testing.assert_allclose(posterior["weights"].to_numpy()[0, 0, 2:], 1)
    with pytest.raises(ValueError, match="'gale'"):
        HybridMixtureClassifier({"calm": 2, "storm": 1}).fit(X, y)


def test_probabilities_are_responsibilities_summed_over_a_class() -> None:
    X, y = table()
    model = HybridMixtureClassifier(2, covariance_type="diag", random_state=0).fit(X, y)
    by_class = model.transform(X).reshape(len(X), 3, 2).sum(axis=2)
    np.testing.assert_allclose(model.predict_proba(X), by_class, atol=1e-12)


# ---- invariances


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("n_components", [1, 2])
def test_rows_in_any_order_give_the_same_bits(calibrate: bool, n_components: int) -> None:
    X, y = table()
    order = np.random.default_rng(1).permutation(len(X))
    model = HybridMixtureClassifier(
        n_components, covariance_type="diag", calibrate=calibrate, n_init=2, random_state=0
    )
    one = clone(model).fit(X, y)
    other = clone(model).fit(X.iloc[order], y[order])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.temperature_ == other.temperature_
    np.testing.assert_allclose(one.predict_proba(X).sum(axis=1), 1, rtol=0, atol=1e-12)


def test_renaming_the_classes_permutes_the_probabilities() -> None:
    X, y = table()
    names = {"calm": 3, "gale": 1, "storm": 2}
    model = HybridMixtureClassifier(tol=1e-12)
    before = clone(model).fit(X, y).predict_proba(X)
    renamed = clone(model).fit(X, np.array([names[label] for label in y]))
    np.testing.assert_array_equal(renamed.classes_, [1, 2, 3])
    np.testing.assert_allclose(renamed.predict_proba(X)[:, [2, 0, 1]], before, atol=1e-9)


def test_columns_in_any_order_give_the_same_probabilities() -> None:
    X, y = table()
    model = HybridMixtureClassifier(tol=1e-12)
    turned = X[["sky", "pressure", "wind"]]
    np.testing.assert_allclose(
        clone(model).fit(turned, y).predict_proba(turned),
        clone(model).fit(X, y).predict_proba(X),
        atol=1e-8,
    )


@pytest.mark.parametrize("calibrate", [False, True])
def test_weight_two_is_the_row_twice_and_zero_is_none(calibrate: bool) -> None:
    X, y = table()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    twice = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), weights))
    model = HybridMixtureClassifier(calibrate=calibrate, tied=True, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X.iloc[twice], y[twice])
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert weighted.temperature_ == repeated.temperature_


def test_a_class_of_weight_zero_does_not_exist() -> None:
    X, y = table()
    model = HybridMixtureClassifier().fit(X, y, sample_weight=(y != "gale").astype(float))
    assert model.classes_.tolist() == ["calm", "storm"]
    other = HybridMixtureClassifier().fit(X[y != "gale"], y[y != "gale"])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))


def containers() -> list[tuple[Any, Any]]:
    X, y = table()
    plain = X.to_numpy(dtype=object)
    polars = pl.DataFrame({name: X[name].replace({np.nan: None}).tolist() for name in X})
    return [
        (plain, y.tolist()),
        (plain.tolist(), pd.Series(y, dtype="category")),
        (polars, pl.Series(y.tolist())),
    ]


@pytest.mark.parametrize("index", range(3))
def test_containers_give_the_same_bits(index: int) -> None:
    X, y = table()
    expected = HybridMixtureClassifier().fit(X, y).predict_proba(X)
    other_X, other_y = containers()[index]
    model = HybridMixtureClassifier().fit(other_X, other_y)
    np.testing.assert_array_equal(model.predict_proba(other_X), expected)
    assert model.predict(other_X).tolist() == CLASSES[expected.argmax(axis=1)].tolist()


# ---- labels


@pytest.mark.parametrize("hidden", [None, np.nan, "?"])
def test_whatever_hides_a_label_hides_it(hidden: object) -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.4
    expected = HybridMixtureClassifier().fit(X, np.where(some, None, y)).predict_proba(X)
    marked = y.copy()
    marked[some] = hidden
    unlabelled = hidden if isinstance(hidden, str) else None
    model = HybridMixtureClassifier(unlabelled=unlabelled).fit(X, marked)
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_minus_one_is_a_class_unless_it_is_said_to_hide() -> None:
    X, y = iris()
    y = np.where(y == 0, -1, y)
    assert HybridMixtureClassifier().fit(X, y).classes_.tolist() == [-1, 1, 2]
    assert HybridMixtureClassifier(unlabelled=-1).fit(X, y).classes_.tolist() == [1, 2]


def test_unlabelled_rows_at_weight_zero_are_not_there() -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.5
    semi = HybridMixtureClassifier(unlabelled_weight=0.0).fit(X, np.where(some, None, y))
    supervised = HybridMixtureClassifier().fit(X[~some], y[~some])
    np.testing.assert_array_equal(semi.predict_proba(X[~some]), supervised.predict_proba(X[~some]))


def test_unlabelled_weight_is_a_row_weight_of_the_unlabelled() -> None:
    X, y = table()
    some = np.random.default_rng(0).random(len(y)) < 0.5
    hidden = np.where(some, None, y)
    one = HybridMixtureClassifier(unlabelled_weight=0.25).fit(X, hidden)
    other = HybridMixtureClassifier().fit(X, hidden, sample_weight=np.where(some, 0.25, 1.0))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_unlabelled_rows_help_where_the_model_is_right() -> None:
    rng = np.random.default_rng(0)
    codes = np.arange(600) % 2
    X = rng.normal(size=(600, 5)) + 1.5 * codes[:, None]
    hidden = np.where(np.arange(600) < 12, codes, np.nan)
    alone = HybridMixtureClassifier(tied=True).fit(X[:12], codes[:12])
    helped = HybridMixtureClassifier(tied=True).fit(X, hidden)

    def loss(model: HybridMixtureClassifier) -> float:
        log_p = model.predict_log_proba(X[12:])
        return float(-log_p[np.arange(588), codes[12:]].mean())

    assert loss(helped) < 0.7 * loss(alone)


# ---- prevalence and temperature


@pytest.mark.parametrize("calibrate", [False, True])
def test_class_prior_is_bayes_rule(calibrate: bool) -> None:
    X, y = table()
    new = {"storm": 0.7, "calm": 0.1, "gale": 0.2}
    model = HybridMixtureClassifier(calibrate=calibrate, random_state=0)
    fitted = clone(model).fit(X, y)
    moved = clone(model).set_params(class_prior=new).fit(X, y)
    trained = fitted.posterior_["posterior"]["class_probabilities"].to_numpy()[0, 0]
    odds = fitted.predict_proba(X) * np.array([0.1, 0.2, 0.7]) / trained
    np.testing.assert_allclose(
        moved.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), atol=1e-12
    )
    as_array = clone(model).set_params(class_prior=[0.1, 0.2, 0.7]).fit(X, y)
    np.testing.assert_array_equal(as_array.predict_proba(X), moved.predict_proba(X))
    same = clone(model).set_params(class_prior=trained).fit(X, y)
    np.testing.assert_allclose(same.predict_proba(X), fitted.predict_proba(X), atol=1e-12)


def test_class_prior_moves_every_draw_by_bayes_rule() -> None:
    """Each draw has class probabilities of its own, and they are what is divided out."""
    X, y = table()
    new = np.array([0.1, 0.2, 0.7])
    draws = {"draws": 20, "chains": 2}
    model = HybridMixtureClassifier(tied=True, random_state=0)
    plain = clone(model).fit(X, y).refine("laplace", **draws)
    moved = clone(model).set_params(class_prior=new).fit(X, y).refine("laplace", **draws)
    drawn = plain.posterior_["posterior"]["class_probabilities"].to_numpy()[:, :, None, :]
    odds = plain.predict_posterior(X)["predictions"]["probability"].to_numpy() * new / drawn
    expected = odds / odds.sum(axis=-1, keepdims=True)
    found = moved.predict_posterior(X)["predictions"]["probability"].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(moved.predict_proba(X), expected.mean(axis=(0, 1)), atol=1e-10)


@pytest.mark.parametrize(
    "class_prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0], {"calm": 1.0}, [0.5, 0.6, -0.1]]
)
def test_a_class_prior_that_is_none_is_refused(class_prior: object) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=r"class_prior=\.\.\."):
        HybridMixtureClassifier(class_prior=class_prior).fit(X, y)


def test_temperature_only_rescales() -> None:
    X, y = table()
    plain = HybridMixtureClassifier(random_state=0).fit(X, y)
    calibrated = HybridMixtureClassifier(random_state=0, calibrate=True).fit(X, y)
    assert plain.temperature_ == 1
    assert calibrated.temperature_ != 1
    np.testing.assert_allclose(
        calibrated.predict_proba(X),
        softmax(calibrated.temperature_ * plain.predict_log_proba(X), axis=1),
        atol=1e-12,
    )
    np.testing.assert_array_equal(calibrated.score_samples(X), plain.score_samples(X))
    np.testing.assert_array_equal(calibrated.predict(X), plain.predict(X))


def test_temperature_is_that_of_rows_the_folds_have_not_seen() -> None:
    X, y = table()
    splits = list(StratifiedKFold(4).split(X, y))
    model = HybridMixtureClassifier(random_state=0, calibrate=True, cv=splits).fit(X, y)
    out = np.zeros((len(y), 3))
    for train, test in splits:
        fold = HybridMixtureClassifier(random_state=0).fit(X.iloc[train], y[train])
        out[test] = fold.predict_log_proba(X.iloc[test])
    expected = fit_temperature(out, np.searchsorted(CLASSES, y), np.ones(len(y)))
    assert model.temperature_ == pytest.approx(expected, rel=1e-6)
    splitter = HybridMixtureClassifier(random_state=0, calibrate=True, cv=StratifiedKFold(4))
    assert splitter.fit(X, y).temperature_ == model.temperature_


def test_temperature_cools_a_model_that_is_too_sure() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    signal = rng.normal(0.5 * y)
    X = signal[:, None] + 0.3 * rng.normal(size=(200, 8))  # read as independent: counted 8 times
    model = HybridMixtureClassifier(covariance_type="diag", tied=True, calibrate=True)
    assert model.fit(X, y).temperature_ < 0.5


def test_hidden_labels_and_lone_rows_stay_in_every_training_fold() -> None:
    labels = np.r_[np.zeros(11, int), np.ones(7, int), 2, 2, 3, np.full(6, -1)]
    folds = stratified_folds(labels, 3, seed=0)
    assert (folds[labels == 3] == -1).all()
    assert len(set(folds[labels == 2])) == 2
    assert (folds[labels < 0] == -1).all()
    for label in (0, 1):
        counts = np.bincount(folds[labels == label], minlength=3)
        assert counts.max() - counts.min() <= 1
    total = np.bincount(folds[folds >= 0])
    assert total.max() - total.min() <= 1


def test_a_class_with_one_row_does_not_stop_calibration() -> None:
    X, y = iris()
    y = y.astype(object)
    y[0] = "unique"
    y[1:] = [str(label) for label in y[1:]]
    y[60:80] = None
    model = HybridMixtureClassifier(calibrate=True, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["0", "1", "2", "unique"]
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert 0.05 < model.temperature_ < 20


def test_folds_that_cannot_calibrate_say_so() -> None:
    X, y = iris()
    few = [0, 50, 100]
    with pytest.warns(UserWarning, match="cv=5 holds out no labelled row"):
        model = HybridMixtureClassifier(calibrate=True).fit(X[few], y[few])
    assert model.temperature_ == 1
    with pytest.raises(ValueError, match="cv must be at least 2"):
        HybridMixtureClassifier(calibrate=True, cv=1).fit(X, y)
    without = [(np.arange(100), np.arange(100, 150))]
    with pytest.raises(ValueError, match="no row of class 2"):
        HybridMixtureClassifier(calibrate=True, cv=without).fit(X, y)


# ---- density, samples, cells


def test_samples_come_with_their_classes() -> None:
    X, y = table()
    model = HybridMixtureClassifier(tied=True, random_state=0).fit(X, y)
    drawn, labels = model.sample(4000)
    assert list(drawn) == list(X)
    shares = [(labels == label).mean() for label in CLASSES]
    expected = model.posterior_["posterior"]["class_probabilities"].to_numpy()[0, 0]
    np.testing.assert_allclose(shares, expected, atol=4.9 * 0.5 / np.sqrt(4000))
    assert model.score(drawn, labels) > 0.7
    _, storms = model.sample(5, label="storm")
    assert set(storms) == {"storm"}
    moved = HybridMixtureClassifier(class_prior=[0.98, 0.01, 0.01], random_state=0).fit(X, y)
    assert (moved.sample(500)[1] == "calm").mean() > 0.9
    with pytest.raises(ValueError, match="received 'tornado'"):
        model.sample(5, label="tornado")


def test_imputation_leaves_observed_cells_alone() -> None:
    X, y = table()
    filled = HybridMixtureClassifier(random_state=0).fit(X, y).impute(X)
    assert not filled.isna().any().any()
    for name in X:
        seen = X[name].notna()
        assert (filled[name][seen] == X[name][seen]).all()


# ---- posterior


def test_a_point_estimate_never_pretends_to_know_its_uncertainty() -> None:
    X, y = table()
    model = HybridMixtureClassifier().fit(X, y)
    with pytest.warns(UserWarning, match="refine"):
        found = model.uncertainty(X)
    assert np.isnan(found["sd"]).all()
    assert np.isnan(found["epistemic_entropy"]).all()
    np.testing.assert_allclose(found["mean"], model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(found["novelty"], model.score_samples(X), rtol=1e-9)
    assert model.posterior_.attrs["point_estimate"] == 1
    assert model.diagnose()["row"].tolist() == ["map_converged", "draws"]


@pytest.fixture(scope="module")
def refined() -> HybridMixtureClassifier:
    X, y = table()
    y[::4] = None
    model = HybridMixtureClassifier(
        tied=True, calibrate=True, class_prior=[0.2, 0.3, 0.5], random_state=0
    )
    return model.fit(X, y).refine("laplace", draws=40)


def test_predictions_are_means_over_the_draws(refined: HybridMixtureClassifier) -> None:
    X, _ = table(seed=5)
    tree = refined.predict_posterior(X)
    probability = tree["predictions"]["probability"]
    assert probability.dims == ("chain", "draw", "obs", "label")
    assert probability["label"].to_numpy().tolist() == CLASSES.tolist()
    mean = probability.mean(("chain", "draw"))
    np.testing.assert_allclose(refined.predict_proba(X), mean, atol=1e-12)
    np.testing.assert_allclose(np.exp(refined.predict_log_proba(X)), mean, atol=1e-12)
    found = refined.uncertainty(X, prob=0.5)
    np.testing.assert_allclose(found["mean"], mean, atol=1e-12)
    inside = (probability >= found["lower"]) & (probability <= found["upper"])
    assert 0.4 < inside.mean() < 0.6
    assert (found["total_entropy"] >= found["aleatoric_entropy"]).all()
    assert (found["epistemic_entropy"] > 0).any()


def test_draws_at_the_fit_predict_as_the_fit(refined: HybridMixtureClassifier) -> None:
    X, _ = table(seed=5)
    fitted = clone(refined)
    X_train, y_train = table()
    y_train[::4] = None
    fitted.fit(X_train, y_train)
    at_point = fitted.predict_posterior(X)["predictions"]["probability"].to_numpy()
    np.testing.assert_allclose(at_point[0, 0], fitted.predict_proba(X), atol=1e-10)
    difference = np.abs(refined.predict_proba(X) - fitted.predict_proba(X))
    assert 0 < difference.mean() < 0.03


def test_predictive_checks_have_labels_of_the_classes(refined: HybridMixtureClassifier) -> None:
    X, y = table(seed=5)
    y[:10] = None
    tree = refined.to_datatree(X, y)
    drawn, truth = tree["posterior_predictive"]["y"], tree["observed_data"]["y"]
    assert drawn.sizes["obs"] == truth.sizes["obs"] == len(y) - 10
    assert (CLASSES[truth.to_numpy()] == y[10:]).all()
    share = (drawn == 0).mean(("chain", "draw")).to_numpy()
    expected = refined.predict_proba(X)[10:, 0]
    assert np.abs(share - expected).max() < 4.9 * 0.5 / np.sqrt(160)
    with pytest.raises(ValueError, match="'tornado', which is no class"):
        refined.to_datatree(X[10:11], ["tornado"])


def test_probabilities_of_draws_go_to_a_file_or_are_thinned(
    refined: HybridMixtureClassifier, tmp_path: Path
) -> None:
    X, _ = table(seed=5)
    whole = refined.predict_posterior(X)["predictions"]["probability"]
    on_disk = refined.predict_posterior(X, memory=5_000, path=tmp_path / "p.npy")
    np.testing.assert_allclose(on_disk["predictions"]["probability"], whole, rtol=1e-12)
    assert isinstance(on_disk["predictions"]["probability"].to_numpy().base, np.memmap | mmap)
    affordable = whole.nbytes // 4
    with pytest.warns(UserWarning, match="one draw in 4 is kept"):
        thinned = refined.predict_posterior(X, memory=affordable)["predictions"]["probability"]
    np.testing.assert_allclose(thinned, whole[:, ::4], rtol=1e-12)
    np.testing.assert_allclose(
        refined.uncertainty(X, memory=5_000)["mean"], whole.mean(("chain", "draw")), rtol=1e-12
    )


def test_diagnosis_speaks_of_class_probabilities(refined: HybridMixtureClassifier) -> None:
    with pytest.warns(PosteriorWarning, match="ess_parameters.*ask for more draws"):
        found = refined.diagnose()
    rows = {"map_converged", "pareto_k", "rhat_class_probabilities", "map_difference", "elpd_loo"}
    assert rows <= set(found["row"])


def test_draws_of_another_sampler_are_taken_and_named_as_in_the_fit() -> None:
    X, y = table()
    model = HybridMixtureClassifier(2, covariance_type="diag", random_state=0).fit(X, y)
    model.refine("laplace", draws=20)
    expected, tree = model.predict_proba(X), model.posterior_
    swapped = tree["posterior"].to_dataset().copy(deep=True)
    order = [1, 0, 2, 3, 4, 5]
    for name in swapped.data_vars:
        if "component" in swapped[name].dims:
            swapped[name] = swapped[name].isel(component=order).variable
    swapped["weights_0"] = swapped["weights_0"].isel(component_0=[1, 0]).variable
    foreign = xr.DataTree.from_dict({"posterior": swapped})
    other = clone(model).fit(X, y).use_posterior(foreign)
    np.testing.assert_allclose(other.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_allclose(
        other.posterior_["posterior"]["means"], tree["posterior"]["means"], rtol=1e-9
    )
    np.testing.assert_allclose(
        other.posterior_["sample_stats"]["lp"], tree["sample_stats"]["lp"], rtol=1e-9
    )
    with pytest.raises(ValueError, match="needs draws of 'means'"):
        other.use_posterior(xr.DataTree.from_dict({"posterior": swapped.drop_vars("means")}))
    fewer = swapped.isel(feature=[0])
    with pytest.raises(ValueError, match=r"'means' of shape \(6, 2\).*received \(6, 1\)"):
        other.use_posterior(xr.DataTree.from_dict({"posterior": fewer}))


def test_the_declared_graph_has_the_variables_of_the_posterior() -> None:
    X, y = table()
    model = HybridMixtureClassifier(2, random_state=0, covariance_type="diag").fit(X, y)
    graph, posterior = model.declare(), model.posterior_["posterior"]
    for variable in graph.free_RVs:
        assert variable.name in posterior
        assert graph.named_vars_to_dims[variable.name] == posterior[variable.name].dims[2:]
    assert "z" in {v.name for v in model.declare(latent="explicit").free_RVs}


# ---- the artefact


def test_an_estimator_from_a_file_predicts_the_same_bits(
    refined: HybridMixtureClassifier, tmp_path: Path
) -> None:
    X, y = table(seed=5)
    digest = refined.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors", digest=digest)
    np.testing.assert_array_equal(loaded.predict_proba(X), refined.predict_proba(X))
    np.testing.assert_array_equal(loaded.score_samples(X), refined.score_samples(X))
    assert loaded.posterior_["posterior"].equals(refined.posterior_["posterior"])
    assert loaded.sample(3)[0].equals(refined.sample(3)[0])
    assert loaded.get_params()["class_prior"] == [0.2, 0.3, 0.5]
    pd.testing.assert_frame_equal(loaded.impute(X), refined.impute(X))
    fitted = HybridMixtureClassifier().fit(X, y)
    fitted.save(tmp_path / "point.safetensors")
    point = bayesrbf.load(tmp_path / "point.safetensors")
    np.testing.assert_array_equal(point.predict_proba(X), fitted.predict_proba(X))
    assert point.posterior_["posterior"].equals(fitted.posterior_["posterior"])


def test_a_record_with_odd_state_is_refused() -> None:
    X, y = table()
    model = HybridMixtureClassifier().fit(X, y)
    record = model._to_record()
    for name, value in [("predict", 1), ("temperature_", "hot"), ("_mixture", None)]:
        with pytest.raises((TypeError, ValueError), match=name):
            HybridMixtureClassifier._from_record(
                record | {"state": record["state"] | {name: value}}
            )
