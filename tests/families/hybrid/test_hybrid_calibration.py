"""The mixture classifier at another prevalence, and its temperature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold

from bayesrbf import HybridMixtureClassifier
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.fit.calibration import fit_temperature
from bayesrbf.fit.held_out import HeldOut, stratified_folds
from tests.cases import generative
from tests.fit.class_tables import CLASSES, iris, table


@pytest.mark.parametrize(
    "class_prior", [[0.5, 0.5], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0], {"calm": 1.0}, [0.5, 0.6, -0.1]]
)
def test_a_class_prior_that_is_none_is_refused(class_prior: object) -> None:
    X, y = table()
    with pytest.raises(ValueError, match=r"class_prior=\.\.\."):
        generative(class_prior=class_prior).fit(X, y)


def test_calibration_tempers_and_pulls_to_the_shares_and_changes_no_density() -> None:
    X, y = table()
    X.iloc[0] = np.nan
    plain = generative(random_state=0).fit(X, y)
    model = generative(random_state=0, calibrate=True).fit(X, y)
    assert plain.temperature_ == 1
    assert not plain.calibration_.by_missing_fraction
    assert model.temperature_ != 1
    powers = model.calibration_
    hidden = X.isna().mean(axis=1).to_numpy()
    temperature = np.exp(np.interp(hidden, POOL_PRIOR.knots, np.log(powers.temperatures)))
    prior_exponent = np.interp(hidden, POOL_PRIOR.knots, powers.prior_exponents)
    temperature[hidden == 1], prior_exponent[hidden == 1] = 0, 1
    logits = model.temperature_ * temperature[:, None] * plain.predict_log_proba(X)
    shares = np.log((y[:, None] == CLASSES).mean(axis=0))
    expected = softmax(logits + prior_exponent[:, None] * shares, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.score_samples(X), plain.score_samples(X))


def test_temperature_is_that_of_rows_the_folds_have_not_seen() -> None:
    X, y = table()
    splits = list(StratifiedKFold(4).split(X, y))
    model = generative(random_state=0, calibrate=True, cv=splits).fit(X, y)
    out = np.zeros((len(y), 3))
    for train, test in splits:
        fold = generative(random_state=0).fit(X.iloc[train], y[train])
        out[test] = fold.predict_log_proba(X.iloc[test])
    expected = fit_temperature(out, np.searchsorted(CLASSES, y), np.ones(len(y)))
    assert model.temperature_ == pytest.approx(expected, rel=1e-6)
    splitter = generative(random_state=0, calibrate=True, cv=StratifiedKFold(4))
    assert splitter.fit(X, y).temperature_ == model.temperature_


def test_temperature_cools_a_model_that_is_too_sure() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    signal = rng.normal(0.5 * y)
    X = signal[:, None] + 0.3 * rng.normal(size=(200, 8))  # read as independent: counted 8 times
    model = generative(covariance_type="diag", shared_covariance=True, calibrate=True)
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
    with pytest.warns(UserWarning, match="one labelled row alone is of class 'unique'"):
        model = generative(calibrate=True, random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["0", "1", "2", "unique"]
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert 0.05 < model.temperature_ < 20


def test_folds_that_cannot_calibrate_say_so() -> None:
    X, y = iris()
    few = [0, 50, 100]
    with pytest.warns(UserWarning, match=r"cv=5\) holds out no labelled row"):
        model = generative(calibrate=True).fit(X[few], y[few])
    assert model.temperature_ == 1
    with pytest.raises(ValueError, match="cv must be at least 2"):
        generative(calibrate=True, cv=1).fit(X, y)
    without = [(np.arange(100), np.arange(100, 150))]
    with pytest.raises(ValueError, match="no row of class 2"):
        generative(calibrate=True, cv=without).fit(X, y)


def test_a_later_setting_must_be_better_by_its_standard_errors() -> None:
    noise = np.random.default_rng(0).normal(size=400)
    scores = np.stack([np.full(400, -3.0), -2.9 + 0.5 * noise])  # of the true class, 0
    joints = np.stack([scores, np.log(-np.expm1(scores))], axis=-1).swapaxes(0, 1)
    held = HeldOut(joints, np.zeros(400, dtype=int), np.ones(400))
    gains = scores[1] - scores[0]
    errors = gains.mean() / (gains.std() / 400**0.5)
    assert errors > 0
    for margin, chosen in ((0.0, "later"), (0.9 * errors, "later"), (1.1 * errors, "first")):
        selection = held.selection(["first", "later"], calibrate=False, margin=margin)
        assert selection.chosen == chosen


def test_classes_share_their_covariance_unless_it_costs_them_something() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    same = rng.normal(size=(300, 2)) + y[:, None]
    apart = rng.normal(size=(300, 2)) * np.where(y, 4.0, 1.0)[:, None]
    assert HybridMixtureClassifier(random_state=0).fit(same, y).shared_covariance_
    assert not HybridMixtureClassifier(random_state=0).fit(apart, y).shared_covariance_
