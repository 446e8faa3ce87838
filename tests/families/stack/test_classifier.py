"""StackedClassifier: its parts put together by hand, what must not change it, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import bayesrbf
from bayesrbf import MixturePrior, StackedClassifier
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.fitted import StackSettings
from bayesrbf.families.stack.fitting import gain_of_unlabelled
from bayesrbf.families.stack.matrix_scaling import fit_matrix_scaling
from bayesrbf.families.stack.members import DEFAULT, MEMBERS, TREES, SharedTraining, fit_members
from bayesrbf.families.stack.posterior import Pool, fit_pools
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.held_out import FOLDS, NumberedFold, split_rows, stratified_folds
from bayesrbf.mixture.fitted import component_class
from tests.fit.class_tables import CLASSES, table

SMALL = ["laplace", "normal"]


@pytest.fixture(scope="module")
def fitted() -> StackedClassifier:
    """Two members on a table with holes, three folds."""
    model = StackedClassifier(SMALL, cv=3, missingness="ignorable", random_state=0)
    return model.fit(*table(60))


def test_out_of_fold_probabilities_are_those_of_the_pool_of_the_other_folds() -> None:
    X, y = table(60)
    X = X.fillna(X.median(numeric_only=True)).ffill().bfill()
    labels = y.copy()
    labels[:5] = None
    rng = np.random.default_rng(0)
    place = rng.permutation(len(X)) % 3
    known = np.arange(5, len(X))
    cv = [(np.flatnonzero(place != f), np.intersect1d(known, np.flatnonzero(place == f)))
          for f in range(3)]  # fmt: skip
    model = StackedClassifier(SMALL, cv=cv, random_state=0).fit(X, labels)
    found = model.out_of_fold_
    assert found.index.tolist() == known.tolist()
    assert found.columns.tolist() == model.classes_.tolist()
    held = model.model_.held
    places = dict(zip(*model.fitted_.table.copies, strict=True))
    for fold, (_, test) in enumerate(cv):
        others = held.take(held.folds != fold)
        pool, shares = fit_pools(others)[0], held.log_shares

        def pooled(
            values: np.ndarray, pool: Pool = pool, shares: np.ndarray = shares
        ) -> np.ndarray:
            own = softmax(pool.member_temperatures[:, None] * values, axis=2)
            linear = np.einsum("j,njc->nc", pool.weights, own)
            return log_softmax(
                pool.temperature * np.log(linear) + pool.prior_exponent * shares, axis=1
            )

        scaling = fit_matrix_scaling(pooled(others.values), others)
        for row in test:
            assert held.folds[places[row]] == fold
            assert model.classes_[held.labels[places[row]]] == labels[row]
            expected = pooled(held.values[places[row]][None])
            if scaling is not None:
                expected = scaling.scaled(expected, np.zeros(1))
            np.testing.assert_allclose(found.loc[row], np.exp(expected[0]), atol=1e-5)


def test_one_split_has_no_other_folds_and_equal_weights() -> None:
    X, y = table(40)
    cv = [(np.arange(25), np.arange(25, 40))]
    found = StackedClassifier(SMALL, cv=cv, random_state=0).fit(X, y).out_of_fold_
    assert found.index.isin(cv[0][1]).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_labels_that_nothing_tells_are_not_foretold_out_of_fold() -> None:
    """In its own rows a stack sees what is not there; out of fold it may not."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 4)), rng.integers(2, size=80)
    model = StackedClassifier(["laplace", "normal"], cv=5, random_state=0).fit(X, y)
    rows = np.arange(80)
    inside = -np.log(model.predict_proba(X)[rows, y]).mean()
    outside = -np.log(model.out_of_fold_.to_numpy()[rows, y]).mean()
    assert inside < np.log(2) - 0.02
    assert outside > np.log(2) - 0.02


def test_probabilities_are_the_tempered_pool_of_tempered_members(fitted) -> None:
    """Row by row: weights and temperatures lie on the lines between the knots."""
    X, _ = table(20, seed=1)
    X.iloc[0] = np.nan
    rows = new_rows(fitted.fitted_, X).cells
    model = fitted.model_
    own = [one.model.class_log_joint(one.columns.applied(rows)) for one in model.members.fitted]
    said = np.stack(own, axis=1)
    pools, shares = (model.pool, *model.knot_pools), np.log(fitted.fitted_.class_shares)
    found = fitted.predict_proba(X)
    for row, hidden in enumerate(X.isna().mean(axis=1)):
        at = [np.interp(hidden, POOL_PRIOR.knots, one) for one in np.eye(len(POOL_PRIOR.knots))]
        weights = np.einsum("k,kj->j", at, [pool.weights for pool in pools])
        inner = np.exp(np.einsum("k,kj->j", at, [np.log(p.member_temperatures) for p in pools]))
        outer = np.exp(at @ np.log([pool.temperature for pool in pools]))
        prior_exponent = at @ np.array([pool.prior_exponent for pool in pools])
        own = softmax(inner[:, None] * log_softmax(said[row], axis=1), axis=1)
        expected = softmax(outer * np.log(weights @ own) + prior_exponent * shares)
        if hidden == 1:
            expected = np.exp(shares)
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_held_out_rows_were_not_fitted_to() -> None:
    """A label that is changed changes no prediction of its own row's fold."""
    X, y = table(60)
    model = StackedClassifier(SMALL, cv=[(np.arange(20, 60), np.arange(20))], random_state=0)
    other = y.copy()
    other[3] = CLASSES[(list(CLASSES).index(y[3]) + 1) % 3]
    one, two = clone(model).fit(X, y).model_.held, clone(model).fit(X, other).model_.held
    assert one.values.shape == (20, 2, 3)
    rows = [np.sort(held.values.reshape(20, -1), axis=0) for held in (one, two)]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-10)
    assert not np.array_equal(np.sort(one.labels), np.sort(two.labels))


def test_every_default_member_deals_with_holes_categories_and_hidden_labels() -> None:
    X, y = table(60)
    y[::5] = None
    model = StackedClassifier(cv=2, random_state=0).fit(X, y)
    assert model.members_ == DEFAULT
    assert model.weights_.sum() == pytest.approx(1.0)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    known = np.array([label is not None for label in y])
    assert (model.predict(X)[known] == y[known]).mean() > 0.8


def test_members_with_learned_rates_are_named() -> None:
    X, y = table(60)
    names = ("laplace_short", "laplace_evidence", "gaussian_loo", "normal")
    model = StackedClassifier(names, cv=2, random_state=0).fit(X, y)
    assert model.members_ == names
    alone = StackedClassifier(["gaussian_loo", "normal"], cv=2, random_state=0).fit(X, y)
    rates = model.model_.members.fitted[2].model.rates
    np.testing.assert_array_equal(alone.model_.members.fitted[0].model.rates, rates)


def test_neither_units_nor_order_matter(fitted) -> None:
    X, y = table(60)
    expected = fitted.predict_proba(X)
    other = X.assign(pressure=X["pressure"] / 1e3 - 7)
    found = clone(fitted).fit(other, y).predict_proba(other)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = clone(fitted).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(shuffled.predict_proba(X), expected, atol=1e-10)


@pytest.mark.slow
def test_processes_change_nothing(fitted) -> None:
    X, y = table(60)
    parallel = clone(fitted).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(parallel.predict_proba(X), fitted.predict_proba(X))


def test_the_table_of_members_has_their_weights_and_how_far_they_are_known(fitted) -> None:
    found = fitted.member_table()
    assert list(found.index) == [*SMALL, "stack"]
    np.testing.assert_allclose(found["weight"][:-1], fitted.weights_)
    assert (found["sd"][:-1] > 0).all()
    assert (found["lower"] <= found["upper"])[:-1].all()
    assert found["mean"][:-1].sum() == pytest.approx(1)  # of the same draws as the interval
    rows = np.arange(fitted.model_.held.labels.size)
    log_posterior = fitted.model_.log_posterior(fitted.rows_)
    log_q = log_posterior.pointwise(fitted.model_.point(log_posterior))
    assert log_q.shape == rows.shape
    mean = -np.average(log_q, weights=fitted.model_.held.weights)
    assert found.loc["stack", "log_loss"] == pytest.approx(mean, rel=1e-6)


def test_draws_leave_the_answer_and_have_intervals(fitted) -> None:
    X, _ = table(20, seed=1)
    model = clone(fitted).fit(*table(60))
    point = model.predict_proba(X)
    with pytest.warns(UserWarning, match="fitted to a point"):
        novelty = model.uncertainty(X)["log_density"].to_numpy()
    np.testing.assert_allclose(novelty, model.score_samples(X), rtol=1e-9)
    model.refine("laplace", draws=60, chains=2)
    unsure = model.uncertainty(X)
    assert (unsure["sd"] > 0).all()
    np.testing.assert_allclose(model.predict_proba(X), unsure["probability"], atol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X), point)
    posterior = model.posterior_["posterior"]
    assert posterior["weights"].dims == ("chain", "draw", "missing_fraction", "member")
    np.testing.assert_allclose(posterior["weights"].sum("member"), 1.0)
    walk = model.fitted_.chain.on(new_rows(model.fitted_, X).cells)
    assert np.abs(walk.at(np.array([0])).log_p - walk.reported).max() > 1e-3


def test_draws_of_another_sampler_are_taken(fitted) -> None:
    X, y = table(60)
    model = clone(fitted).fit(X, y)
    tree = clone(fitted).fit(X, y).refine("laplace", draws=7, chains=3).posterior_
    model.refine("laplace", draws=5, chains=2).use_posterior(tree)
    assert model.fitted_.chain.numbers.shape == (3, 7)


def test_no_order_changes_intervals(fitted) -> None:
    X, y = table(60)
    new = table(20, seed=1)[0]
    rows = np.random.default_rng(0).permutation(60)
    one = clone(fitted).fit(X, y).refine(draws=20).uncertainty(new)
    other = clone(fitted).fit(X.iloc[rows, ::-1], y[rows]).refine(draws=20)
    turned = other.uncertainty(new.iloc[:, ::-1])
    for name in ("lower", "upper", "epistemic_entropy"):
        np.testing.assert_allclose(turned[name], one[name], atol=1e-6)


def test_intervals_come_back_from_a_file(fitted, tmp_path: Path) -> None:
    X, y = table(60)
    model = clone(fitted).fit(X, y).refine(draws=6)
    model.save(tmp_path / "stack.safetensors")
    loaded = bayesrbf.load(tmp_path / "stack.safetensors")
    assert loaded.uncertainty(X).equals(model.uncertainty(X))


def test_a_method_that_a_stack_does_not_have_is_refused(fitted) -> None:
    with pytest.raises(ValueError, match="must be 'laplace' or 'advi' or 'nuts'; received 'boots"):
        clone(fitted).fit(*table(60)).refine("bootstrap")


def test_folds_are_five_and_hold_every_row_out_once() -> None:
    for n in (60, 300):
        labels = np.arange(n) % 2
        real = np.arange(n, dtype=float)[:, None]
        rows = Observations(real, np.zeros((n, 0), int), labels, np.ones(n))
        folds = list(split_rows(FOLDS, rows, np.arange(n), 0))
        assert len(folds) == 5
        tested = np.sort(np.concatenate([test.real[:, 0] for _, test in folds]))
        np.testing.assert_array_equal(tested, real[:, 0])
        for train, test in folds:
            assert not set(train.real[:, 0]) & set(test.real[:, 0])


def test_people_who_are_alike_are_dealt_to_several_folds() -> None:
    """Two patterns with both labels: held out together, each would be taken for its opposite."""
    X = np.repeat([[0.0], [0.0], [1.0], [1.0]], [30, 10, 10, 30], axis=0)
    y = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    model = StackedClassifier(SMALL, cv=10, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], [0.25, 0.75], atol=0.03)


def test_a_row_of_any_weight_is_held_out_as_a_whole() -> None:
    rng = np.random.default_rng(0)
    real, labels = rng.integers(0, 9, (80, 1)).astype(float), rng.integers(0, 2, 80)
    weights = rng.choice([1.0, 2.0, 1.6, 3.7], 80)
    rows = Observations(real, np.zeros((80, 0), int), labels, weights)
    order = rng.permutation(80)
    parts = [list(split_rows(4, one, np.arange(80), 0)) for one in (rows, rows.take(order))]
    for (train, test), (same_train, same_test) in zip(*parts, strict=True):
        np.testing.assert_allclose(test.weights, same_test.weights)
        np.testing.assert_allclose(train.weights, same_train.weights)
    total = sum(test.weights.sum() for _, test in parts[0])
    assert total == pytest.approx(weights.sum())
    alone = Observations(np.arange(80.0)[:, None], rows.codes, labels, weights)
    for train, test in split_rows(4, alone, np.arange(80), 0):
        assert not np.intersect1d(train.real, test.real).size


def test_no_fold_takes_the_last_row_of_a_class() -> None:
    labels = np.array([0] * 9 + [1] * 2 + [2, -1, -1])
    folds = stratified_folds(labels, 5, seed=1)
    assert (folds[labels == -1] == -1).all()
    assert folds[labels == 2] == -1
    assert len(set(folds[labels == 1])) == 2
    assert np.ptp(np.bincount(folds[folds >= 0])) <= 1


def test_members_share_what_they_can() -> None:
    X, y = table(60)
    model = StackedClassifier(SMALL, cv=2, random_state=0).fit(X, y)
    training = SharedTraining(model.rows_, model.columns_.n_levels, 3, MixturePrior(), 0)
    kernels = fit_members(training, ["laplace", "laplace_short"])
    assert kernels[0].columns is kernels[1].columns
    assert kernels[0].model.companions is kernels[1].model.companions


def test_small_classes_have_fewer_components() -> None:
    labels = np.repeat([0, 1, 2], [24, 17, 3])
    rows = Observations(np.zeros((44, 1)), np.zeros((44, 0), int), labels, np.ones(44))
    assert component_class(rows, 3, 3) == (0, 0, 0, 1, 1, 2)


class Says(StackSettings):
    """Members that are right with unlabelled rows and even without them; counts its fits."""

    fits: ClassVar[list[int]] = []

    def hold_out(self, numbered: NumberedFold) -> tuple[np.ndarray, list[Observations]]:
        _, train, test = numbered
        self.fits.append(train.n_obs)
        right = 0.9 if (train.labels < 0).any() else 0.5
        p = np.where(np.arange(2) == test.labels[:, None], right, 1 - right)
        return np.log(p)[:, None], [test]


def test_what_unlabelled_rows_gained_is_told_at_a_fraction_of_the_fits() -> None:
    labels = np.concatenate([np.arange(60) % 2, np.full(140, -1)])
    rows = Observations(np.zeros((200, 1)), np.zeros((200, 0), int), labels, np.ones(200))
    dealt = stratified_folds(labels, 5, 0)
    folds = [(rows.take(dealt != k), rows.take(dealt == k)) for k in range(5)]
    says = Says((), (), (), 2, MixturePrior(), 0)
    numbered = [(number, *fold) for number, fold in enumerate(folds)]
    held = says.hold_out_folds(numbered, None)
    says.fits.clear()
    told = gain_of_unlabelled(says, numbered, held, None)
    gain = np.log(2)  # with them a pool of one member becomes as sure as it is right
    assert told.startswith("Rows without a label, counted as given, helped: +")
    assert 0.9 * gain < float(told.split("+")[1].split()[0]) <= gain
    assert says.fits == [48]
    bare = [(number, train.take(train.labels >= 0), test) for number, train, test in numbered]
    assert gain_of_unlabelled(says, bare, held, None) == ""


def test_the_status_of_a_fit_has_what_unlabelled_rows_did(fitted) -> None:
    X, y = table(60)
    hidden = np.where(np.arange(60) % 3 == 0, None, y)
    told = StackedClassifier(SMALL, cv=3, random_state=0).fit(X, hidden).status_
    assert "Rows without a label, counted as given," in told
    assert "Rows without a label" not in fitted.status_


def test_nothing_to_hold_out_is_told() -> None:
    X = [[0.0, 1.0], [3.0, 4.0], [0.1, np.nan], [np.nan, 4.2]]
    with pytest.warns(UserWarning, match="holds out no labelled row"):
        model = StackedClassifier(SMALL, random_state=0).fit(X, ["a", "b", None, None])
    np.testing.assert_array_equal(model.weights_, 0.5)
    assert model.predict([[0.0, 1.0]])[0] == "a"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"members": "best"}, "must be 'default', 'smooth' or different"),
        ({"members": ["laplace", "K9"]}, "must be 'default', 'smooth' or different"),
        (
            {"members": ["laplace", "laplace"]},
            "must be 'default', 'smooth' or different",
        ),
        ({"members": []}, "must be 'default', 'smooth' or different"),
        ({"extra": [3]}, "must hold classifiers with predict_proba"),
        ({"extra": [GaussianNB(), GaussianNB()]}, "two members 'GaussianNB'"),
        ({"cv": 1}, "at least 2 folds"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match=message):
        StackedClassifier(**{"members": SMALL, **arguments}).fit(X, y)


def test_the_table_of_recipes_in_the_documentation_is_complete() -> None:
    text = StackedClassifier.__doc__ or ""
    assert all(f"\n    {name} " in text for name in (*MEMBERS, *TREES))


def test_the_column_that_decides_counts_most_in_the_members_that_learn_rates() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["other", "deciding"])
    X["kind"] = rng.choice(["u", "v"], 120)
    y = np.abs(X["deciding"]) > 0.7  # no relevance by itself: the classes' means are the same
    stack = StackedClassifier(
        ["laplace", "laplace_evidence", "gaussian_loo", "normal"],
        random_state=0,
        categorical_features=["kind"],
    ).fit(X, y)
    assert stack.relevance_.columns.tolist() == ["laplace_evidence", "gaussian_loo"]
    assert stack.relevance_.index.tolist() == ["other", "deciding", "kind"]
    np.testing.assert_array_equal(stack.relevance_.loc["deciding"], 1.0)
    assert (stack.relevance_.loc["other"] < 0.5).all()
    assert StackedClassifier(["normal"], random_state=0).fit(X[["other"]], y).relevance_.size == 0
