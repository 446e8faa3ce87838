"""KernelNetworkClassifier: what it equals, what must not change it, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression

from bayesrbf import KernelNetworkClassifier
from bayesrbf.fit.asking import new_rows
from tests.fit.class_tables import iris, table


def test_on_complete_rows_it_is_logistic_regression_on_the_kernel() -> None:
    X, y = iris()
    X, y = X[50:], y[50:]  # two classes: one row of weights, as in scikit-learn
    model = KernelNetworkClassifier("gaussian", relevance=0.0, calibrate=False, tol=1e-8).fit(X, y)
    z = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -4, 4)
    gram = np.exp(-cdist(z, z, "sqeuclidean") / (2 * z.var(axis=0).sum()))
    embedding = model.transform(X)
    np.testing.assert_allclose(embedding @ embedding.T, gram, atol=2e-3)
    oracle = LogisticRegression(C=10.0, tol=1e-10, max_iter=5000).fit(embedding, y)
    np.testing.assert_allclose(model.predict_proba(X), oracle.predict_proba(embedding), atol=2e-3)


def test_a_hole_is_an_average_over_what_it_may_hold() -> None:
    """Features of a row with a hole are the mean of those of its completions."""
    X, y = iris()
    model = KernelNetworkClassifier(random_state=0).fit(X, y)
    row = X[[80]].copy()
    row[0, 2] = np.nan
    density, moments = model.model_.density, new_rows(model.fitted_, row).cells
    from bayesrbf.mixture.missing import conditional_draws

    rng = np.random.default_rng(0)
    many = moments.take(np.zeros(4000, dtype=int))
    [whole] = conditional_draws(
        density.standardise(many), density.parameters, density.specification, rng
    )
    completed = model.transform(density.units.backward(whole.real))
    found, spread = model.transform(row)[0], completed.std(axis=0) / np.sqrt(4000)
    # The hole is integrated out under one normal with the mixture's mean and variance.
    np.testing.assert_allclose(found, completed.mean(axis=0), atol=0.02 + 5 * spread.max())


def test_unlabelled_rows_teach_the_hidden_layer_only() -> None:
    X, y = table(60)
    hidden = y.copy()
    hidden[30:] = None
    with_them = KernelNetworkClassifier(random_state=0).fit(X, hidden)
    without = KernelNetworkClassifier(random_state=0, unlabelled_weight=0).fit(X, hidden)
    dropped = KernelNetworkClassifier(random_state=0).fit(X.iloc[:30], y[:30])
    np.testing.assert_allclose(without.predict_proba(X), dropped.predict_proba(X), atol=1e-10)
    assert with_them.transform(X).shape[1] > without.transform(X).shape[1]
    assert np.abs(with_them.predict_proba(X) - without.predict_proba(X)).max() > 1e-3


def test_fewer_exemplars_than_rows_still_carry_a_kernel() -> None:
    X, y = table(90)
    model = KernelNetworkClassifier(n_exemplars=40, n_basis=20, random_state=0).fit(X, y)
    assert model.transform(X).shape == (90, 20)
    full = KernelNetworkClassifier(random_state=0).fit(X, y)
    agree = model.predict(X) == full.predict(X)
    assert agree.mean() > 0.9


def test_relevance_names_the_columns_that_tell() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = np.column_stack([rng.normal(size=120), rng.normal(2.0 * y)])
    strong = KernelNetworkClassifier(relevance=0.8).fit(X, y).relevance_
    assert strong[1] == 1
    assert strong[0] == pytest.approx(0.2, abs=0.1)
    np.testing.assert_array_equal(KernelNetworkClassifier(relevance=0.0).fit(X, y).relevance_, 1)


def test_draws_spread_around_the_fit_and_novelty_is_the_density() -> None:
    X, y = table(40)
    model = KernelNetworkClassifier(n_basis=6, random_state=0).fit(X, y)
    point = model.predict_proba(X)
    with pytest.warns(UserWarning, match="fitted to a point"):
        novelty = model.uncertainty(X)["log_density"].to_numpy()
    np.testing.assert_allclose(novelty, model.score_samples(X), rtol=1e-9)
    model.refine("laplace", draws=100, chains=2)
    assert model.posterior_["posterior"]["coefficients"].dims == (
        "chain",
        "draw",
        "output",
        "basis",
    )
    unsure = model.uncertainty(X)
    assert (unsure["sd"] > 0).all()
    assert (
        (unsure["lower"] <= unsure["probability"]) & (unsure["probability"] <= unsure["upper"])
    ).all()
    assert np.abs(model.predict_proba(X) - point).max() < 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "box"}, "must be 'laplace' or 'gaussian'"),
        ({"relevance": 1.5}, r"must be a number in \[0, 1\]"),
        ({"l2": 0.0}, "must be a finite positive number"),
        ({"n_basis": 0}, "integer of at least 1"),
        ({"n_exemplars": 2.5}, "integer of at least 1"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    X, y = iris()
    with pytest.raises(ValueError, match=message):
        KernelNetworkClassifier(**arguments).fit(X, y)
