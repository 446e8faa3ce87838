"""Exemplar classifiers: any dissimilarity, only what prediction needs, and how sure they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import numba
import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

from bayesrbf import MedianLVQClassifier, MedianLVQPrior, load
from bayesrbf.base.rows import Observations
from bayesrbf.families.median_lvq.dissimilarities import learn_gower
from bayesrbf.fit.asking import new_rows

CLASSES = np.array(["no", "so", "yes"], dtype=object)


def blobs(n_obs: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(n_obs) % 3
    centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    return centres[labels] + rng.normal(size=(n_obs, 2)), CLASSES[labels]


def matrix(X: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Squared distances, longer uphill: asymmetric and no metric."""
    others = X if others is None else others
    uphill = np.maximum(X[:, :1] - others[:, 0], 0)
    return cdist(X, others) ** 2 + uphill


def matrix_model(n_prototypes: Any = 2, **options: Any) -> MedianLVQClassifier:
    """What exemplars say by themselves, without a temperature."""
    options = {"sigma": 1.0, "calibrate": False, "random_state": 0, **options}
    return MedianLVQClassifier(n_prototypes, metric="precomputed", **options)


X, Y = blobs()
NEW, NEW_Y = blobs(21, seed=1)
D, TO_TRAIN = matrix(X), matrix(NEW, X)


def mixed(n_obs: int = 40) -> pd.DataFrame:
    """A real, a categorical and a useless column, with holes."""
    rng = np.random.default_rng(3)
    labels = np.arange(n_obs) % 2
    frame = pd.DataFrame(
        {
            "length": labels + 0.4 * rng.normal(size=n_obs),
            "colour": np.where(rng.random(n_obs) < 0.8, np.array(["red", "blue"])[labels], "grey"),
            "noise": rng.normal(size=n_obs),
        }
    )
    return frame.mask(rng.random(frame.shape) < 0.15)


# ---- where dissimilarities come from


def test_prediction_looks_at_the_columns_of_exemplars_only() -> None:
    model = matrix_model().fit(D, Y)
    assert set(model.exemplar_columns) == set(model.exemplars_)
    assert model.exemplar_classes_.tolist() == Y[model.exemplars_].tolist()
    full = model.predict_proba(TO_TRAIN)
    assert model.score(TO_TRAIN, NEW_Y) > 0.8
    few = TO_TRAIN[:, model.exemplar_columns]
    holed = model.from_exemplar_columns(few)
    assert np.isnan(holed).sum() == NEW.shape[0] * (X.shape[0] - model.exemplar_columns.size)
    np.testing.assert_array_equal(model.predict_proba(holed), full)


def test_probabilities_are_the_shares_of_the_kernels() -> None:
    model = matrix_model(sigma=0.8).fit(D, Y)
    kernel = np.exp(-TO_TRAIN[:, model.exemplars_] / 0.8**2)
    expected = np.stack([kernel[:, model.exemplar_classes_ == c].sum(1) for c in CLASSES], 1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(TO_TRAIN), expected, rtol=1e-10)
    assert model.sigma_ == 0.8


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint16])
def test_other_numbers_make_the_same_model(dtype: type) -> None:
    rounded = np.round(16 * D)
    models = [matrix_model(sigma=4.0).fit(rounded.astype(kind), Y) for kind in (float, dtype)]
    assert models[0].exemplars_.tolist() == models[1].exemplars_.tolist()
    new = np.round(16 * TO_TRAIN)
    np.testing.assert_array_equal(*[model.predict_proba(new.astype(dtype)) for model in models])


@pytest.mark.parametrize(
    ("metric", "scipy_name"),
    [
        ("sqeuclidean", "sqeuclidean"),
        ("manhattan", "cityblock"),
        (lambda a, b: abs(a - b).max(), "chebyshev"),
    ],
    ids=["sqeuclidean", "manhattan", "callable"],
)
def test_a_metric_is_its_matrix(metric: Any, scipy_name: str) -> None:
    by_metric = MedianLVQClassifier(2, metric=metric, random_state=0).fit(X, Y)
    order = by_metric.row_indices_  # rows are sorted, so that copies can be merged
    by_matrix = matrix_model(sigma="cv", calibrate=True).fit(
        cdist(X[order], X[order], scipy_name), Y[order]
    )
    assert order[by_matrix.exemplars_].tolist() == by_metric.exemplars_.tolist()
    assert by_metric.sigma_ == pytest.approx(by_matrix.sigma_)
    np.testing.assert_allclose(
        by_metric.predict_proba(NEW),
        by_matrix.predict_proba(cdist(NEW, X[order], scipy_name)),
        rtol=1e-9,
    )


def test_a_compiled_function_is_the_same_function() -> None:
    def lopsided(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.abs(a - b).sum() + 2 * max(b[0] - a[0], 0.0))

    X, y = blobs(24)
    models = [
        MedianLVQClassifier(1, metric=metric, sigma=1.0, random_state=0).fit(X, y)
        for metric in (lopsided, numba.njit(lopsided))
    ]
    np.testing.assert_allclose(*[model.predict_proba(X + 0.1) for model in models], rtol=1e-12)
    values = [model.model_.table.values for model in models]
    np.testing.assert_allclose(*values, rtol=1e-14)
    assert not np.allclose(values[0], values[0].T)


def test_a_callable_may_compare_anything() -> None:
    words = np.array([["cat"], ["cart"], ["car"], ["dog"], ["doge"], ["dot"]], dtype=object)
    y = ["c", "c", "c", "d", "d", "d"]

    def different(a: np.ndarray, b: np.ndarray) -> float:
        return float(sum(x != y for x, y in zip(a[0].ljust(5), b[0].ljust(5), strict=True)))

    model = MedianLVQClassifier(1, metric=different, sigma=1.0).fit(words, y)
    assert model.predict(np.array([["cab"], ["do"]], dtype=object)).tolist() == ["c", "d"]
    with pytest.raises(ValueError, match=r"arguments.metric is a function"):
        model.save("never.safetensors")


def test_gower_is_the_mean_over_columns_and_a_hole_is_an_average_difference() -> None:
    frame, y = mixed(), np.arange(40) % 2
    model = MedianLVQClassifier(2, random_state=0, sigma=0.4).fit(frame, y)
    rows = new_rows(model.fitted_, frame.iloc[:5]).cells
    found = model.model_.compared(rows, np.arange(model.row_indices_.size))
    lengths, colours = frame["length"].to_numpy(), frame["colour"].to_numpy()
    noise = frame["noise"].to_numpy()

    def part(column: np.ndarray) -> np.ndarray:
        seen = column[~np.isnan(column)]
        differences = np.abs(column[:, None] - column) / np.ptp(seen)
        mean = (np.abs(seen[:, None] - seen) / np.ptp(seen)).mean()
        return np.where(np.isnan(differences), mean, differences)

    known = np.array([isinstance(colour, str) for colour in colours])
    unlike = (colours[:, None] != colours).astype(float)
    share = unlike[np.ix_(known, known)].mean()
    by_colour = np.where(known[:, None] & known, unlike, share)
    expected = (part(lengths) + part(noise) + by_colour) / 3
    np.testing.assert_allclose(found, expected[:5, model.row_indices_], rtol=1e-12)
    assert model.score(frame, y) > 0.8
    assert np.isfinite(
        model.predict_proba(pd.DataFrame({"length": [np.nan], "colour": [None], "noise": [np.nan]}))
    ).all()


def test_gower_stands_extremes_and_columns_without_cells() -> None:
    real = np.array([[1e308, np.nan], [-1e308, np.nan], [0.0, np.nan]])
    rows = Observations(real, np.empty((3, 0), int), np.zeros(3, int), np.ones(3))
    values = learn_gower(rows).between(rows, rows)
    assert np.all((values >= 0) & (values <= 1))
    assert values[0, 1] > values[0, 2] > 0


# ---- scikit-learn


def test_cross_validation_slices_rows_and_columns() -> None:
    model, splitter = matrix_model(), StratifiedKFold(3)
    scores = cross_validate(model, D, Y, cv=splitter, scoring="neg_log_loss")["test_score"]
    for (train, test), score in zip(splitter.split(D, Y), scores, strict=True):
        fitted = clone(model).fit(D[np.ix_(train, train)], Y[train])
        p = fitted.predict_proba(D[np.ix_(test, train)])
        own = p[np.arange(test.size), np.searchsorted(CLASSES, Y[test])]
        assert score == pytest.approx(np.log(own).mean())
    search = GridSearchCV(model, {"n_prototypes": [1, 2], "sigma": [0.5, 1.0]}, cv=2).fit(D, Y)
    assert search.best_estimator_.n_features_in_ == X.shape[0]


def without(change: Callable[[np.ndarray], None]) -> np.ndarray:
    copy = D.copy()
    change(copy)
    return copy


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (D[:, :-1], r"square matrix .* received shape \(60, 59\)"),
        (without(lambda d: d.__setitem__((3, 4), np.nan)), "Input X contains NaN"),
        (without(lambda d: d.__setitem__((3, 4), np.inf)), "Input X contains infinity"),
        (without(lambda d: d.__setitem__((3, 4), -1)), r"Negative values .* row 3, column 4"),
    ],
    ids=["shape", "missing", "infinite", "negative"],
)
def test_bad_matrices_are_told(bad: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        matrix_model().fit(bad, Y)


def test_bad_new_rows_are_told() -> None:
    model = matrix_model().fit(D, Y)
    with pytest.raises(ValueError, match="X has 59 features, but MedianLVQClassifier is expecting"):
        model.predict(TO_TRAIN[:, 1:])
    bad = TO_TRAIN.copy()
    bad[2, model.exemplars_[0]] = np.nan
    with pytest.raises(ValueError, match=r"Missing values in data .* row 2"):
        model.predict(bad)
    with pytest.raises(ValueError, match=r"one column for each of the \d rows .* \(21, 1\)"):
        model.from_exemplar_columns(TO_TRAIN[:, :1])
    with pytest.raises(ValueError, match="compares rows to the exemplars itself"):
        MedianLVQClassifier(sigma=1.0).fit(X, Y).from_exemplar_columns(TO_TRAIN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "lvq"}, r"objective=...\) must be 'rslvq' or 'glvq'"),
        ({"inference": "nuts"}, "must be 'map' or 'gibbs'"),
        ({"sigma": 0}, "must be 'cv', 'sample' or a number from 1e-100"),
        ({"sigma": True}, "must be 'cv', 'sample' or a number"),
        ({"metric": "mahalanobis"}, "metric=...\\) must be 'gower', 'precomputed', a callable or"),
        ({"objective": "glvq", "sigma": 1.0}, "has no likelihood and so no sigma; leave it at"),
        ({"objective": "glvq", "inference": "gibbs"}, "has no likelihood and so no inference"),
        (
            {"objective": "glvq", "calibrate": False, "class_prior": [0.2, 0.3, 0.5]},
            "needs calibrate=True",
        ),
        ({"n_prototypes": 0}, r"n_prototypes=...\) must be an integer of at least 1"),
        ({"n_prototypes": {"no": 1}}, r"n_prototypes=...\) must give a number for every class"),
        ({"n_init": 0}, "n_init=...\\) must be an integer of at least 1"),
        ({"cv": 1}, "cv must be at least 2 folds"),
    ],
)
def test_bad_arguments_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MedianLVQClassifier(**options).fit(X, Y)


def test_a_prior_of_another_family_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a MedianLVQPrior or None"):
        MedianLVQClassifier(prior=1.0).fit(X, Y)


# ---- labels and weights


def test_a_row_without_a_label_tells_nothing() -> None:
    hidden = Y.copy()
    hidden[::4] = None
    known = np.array([label is not None for label in hidden])
    model = matrix_model().fit(D, hidden)
    alone = matrix_model().fit(D[np.ix_(known, known)], hidden[known])
    assert model.exemplars_.tolist() == np.flatnonzero(known)[alone.exemplars_].tolist()
    marked = np.where(known, Y, "?")
    again = matrix_model(unlabelled="?").fit(D, marked)
    assert again.exemplars_.tolist() == model.exemplars_.tolist()


def test_weights_count_rows() -> None:
    weights = np.ones(60)
    weights[5:15] = 0
    weights[20:30] = 2
    repeated = np.repeat(np.arange(60), weights.astype(int))
    for options in ({}, {"objective": "glvq"}, {"sigma": "sample"}):
        models = [
            MedianLVQClassifier(random_state=0, **options).fit(X, Y, weights),
            MedianLVQClassifier(random_state=0, **options).fit(X[repeated], Y[repeated]),
        ]
        exemplars = [X[models[0].exemplars_], X[repeated][models[1].exemplars_]]
        np.testing.assert_array_equal(*exemplars)
        assert models[0].sigma_ == pytest.approx(models[1].sigma_)


def test_sigma_by_cross_validation_is_told_where_it_cannot_be() -> None:
    few = np.array([0, 1, 2])
    with pytest.warns(UserWarning, match=r"cv=5\) holds out no labelled row.*so sigma is the mid"):
        matrix_model(1, sigma="cv").fit(D[np.ix_(few, few)], Y[few])
    with pytest.warns(UserWarning, match=r"holds out no labelled row.*so the temperature is 1"):
        matrix_model(1, sigma="sample", calibrate=True).fit(D[np.ix_(few, few)], Y[few])


# ---- GLVQ


def test_margins_are_no_probabilities_before_they_are_calibrated() -> None:
    model = matrix_model(objective="glvq", sigma="cv").fit(D, Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "explain")
    assert not hasattr(model, "responsible_exemplars")
    assert model.sigma_ is None
    margins = model.decision_function(TO_TRAIN)
    assert np.all(np.abs(margins) <= 1)
    nearest = TO_TRAIN[:, model.exemplars_].argmin(axis=1)
    assert model.predict(TO_TRAIN).tolist() == model.exemplar_classes_[nearest].tolist()
    for answer in ("declare", "refine", "use_posterior", "uncertainty", "posterior_"):
        with pytest.raises(AttributeError) as refused:
            getattr(model, answer)
        why = str(refused.value.__cause__ or refused.value)
        assert re.search("likelihood.*use objective='rslvq'", why)
    calibrated = matrix_model(objective="glvq", sigma="cv", calibrate=True).fit(D, Y)
    np.testing.assert_array_equal(calibrated.decision_function(TO_TRAIN), margins)
    assert calibrated.predict(TO_TRAIN).tolist() == model.predict(TO_TRAIN).tolist()
    p = calibrated.predict_proba(TO_TRAIN)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    ratio = np.log(p[:, 0] / p[:, 1]) / (margins[:, 0] - margins[:, 1])
    np.testing.assert_allclose(ratio, calibrated.temperature_, rtol=1e-6)


def test_more_restarts_end_no_lower() -> None:
    one = matrix_model(3, n_init=1).fit(D, Y)
    more = matrix_model(3, n_init=6).fit(D, Y)
    assert more.objective_ >= one.objective_
    assert more.converged_


# ---- calibration


def test_what_is_compared_whole_has_a_temperature_alone() -> None:
    """So have margins: they are not calibrated, and the class of the nearest exemplar stays."""
    frame, y = mixed(), np.arange(40) % 2
    margins = MedianLVQClassifier(2, objective="glvq", random_state=0).fit(frame, y)
    whole = [
        matrix_model(calibrate=True).fit(D, Y),
        MedianLVQClassifier(2, metric="sqeuclidean", random_state=0).fit(X, Y),
        margins,
    ]
    for model in whole:
        assert not model.calibration_.by_missing_fraction
        assert model.temperature_ != 1
    nearest = (margins.decision_function(frame) > 0).astype(int)
    np.testing.assert_array_equal(margins.predict(frame), nearest)


def test_calibration_changes_neither_width_nor_exemplars() -> None:
    """Folds of table rows and of their positions are the same."""
    frame, y = mixed(), np.arange(40) % 2
    models = [
        MedianLVQClassifier(2, calibrate=calibrate, random_state=0).fit(frame, y)
        for calibrate in (False, True)
    ]
    assert models[0].sigma_ == models[1].sigma_
    np.testing.assert_array_equal(models[0].exemplars_, models[1].exemplars_)
    assert not models[0].calibration_.by_missing_fraction
    assert models[1].calibration_.by_missing_fraction


def test_draws_of_few_cells_lie_around_what_is_delivered(tmp_path: Path) -> None:
    frame, y = mixed(), (np.arange(40) % 4 == 1).astype(int)
    model = MedianLVQClassifier(1, inference="gibbs", random_state=0).fit(frame, y)
    few = frame.iloc[:6].copy()
    few.loc[few.index[:4], ["length", "noise"]] = np.nan
    few.iloc[0] = np.nan
    p, found = model.predict_proba(few), model.uncertainty(few)
    np.testing.assert_allclose(p[0], [0.75, 0.25])
    assert ((found["lower"] <= p) & (p <= found["upper"])).all()
    assert found["sd"].min() > 0
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict_proba(few), p)


# ---- the posterior


@pytest.fixture(scope="module")
def sampled() -> MedianLVQClassifier:
    model = matrix_model({"no": 1, "so": 2, "yes": 1}, sigma="sample")
    return model.fit(D, Y).refine(draws=60, tune=40, chains=2)


def test_the_tree_holds_draws_of_exemplars_and_sigma(sampled: MedianLVQClassifier) -> None:
    posterior = sampled.posterior_["posterior"].to_dataset()
    assert posterior["exemplars"].dims == ("chain", "draw", "prototype")
    assert posterior["exemplars"].dtype.kind == "i"
    classes = sampled.posterior_["constant_data"]["prototype_label"].to_numpy()
    assert classes.tolist() == ["no", "so", "so", "yes"]
    drawn = posterior["exemplars"].to_numpy()
    rows = sampled.posterior_["constant_data"]["obs"].to_numpy()
    assert np.all(Y[rows[drawn]] == classes)
    assert set(rows[drawn].ravel()) <= set(sampled.exemplar_columns)
    assert np.all(posterior["sigma"] > 0)
    likelihood = sampled.posterior_["log_likelihood"]["y"]
    assert likelihood.sizes["obs"] == 60
    assert posterior.attrs["inference"] == "gibbs"


def test_predictions_average_over_the_draws(sampled: MedianLVQClassifier) -> None:
    mean = sampled.predict_posterior(TO_TRAIN)["predictions"]["probability"].mean(["chain", "draw"])
    p = sampled.predict_proba(TO_TRAIN)
    np.testing.assert_allclose(p, mean, rtol=1e-10)
    uncertainty = sampled.uncertainty(TO_TRAIN)
    np.testing.assert_allclose(uncertainty["probability"], p, rtol=1e-10)
    assert np.isfinite(uncertainty.drop_vars(["novelty", "familiarity"]).to_array()).all()
    assert np.isnan(uncertainty["novelty"]).all()  # exemplars have no density of rows
    with pytest.warns(UserWarning, match="The posterior needs attention"):
        figures = sampled.diagnose()
    assert {"rhat_log_posterior", "draws"} <= set(figures["row"])
    few = sampled.from_exemplar_columns(TO_TRAIN[:, sampled.exemplar_columns])
    np.testing.assert_array_equal(sampled.predict_proba(few), p)


def test_reasons_add_up_to_the_probabilities(sampled: MedianLVQClassifier) -> None:
    for model in (sampled, matrix_model().fit(D, Y)):
        table = model.responsible_exemplars(TO_TRAIN, most=10_000)
        shares = table.pivot_table("responsibility", "row", "label", "sum")
        np.testing.assert_allclose(shares, model.predict_proba(TO_TRAIN), rtol=1e-9)
        assert set(table["exemplar"]) == set(model.exemplar_columns)
        np.testing.assert_array_equal(
            table["dissimilarity"], TO_TRAIN[table["row"], table["exemplar"]]
        )
        first = table.groupby("row").head(1)
        largest = table.groupby("row")["responsibility"].max()
        np.testing.assert_array_equal(first["responsibility"], largest)
        assert len(model.responsible_exemplars(TO_TRAIN, most=2)) == 2 * len(NEW)


def test_draws_of_the_graph_come_back(sampled: MedianLVQClassifier) -> None:
    other = matrix_model({"no": 1, "so": 2, "yes": 1}, sigma="sample").fit(D, Y)
    other.use_posterior(sampled.posterior_)
    np.testing.assert_allclose(
        other.predict_proba(TO_TRAIN), sampled.predict_proba(TO_TRAIN), rtol=1e-9
    )
    with pytest.raises(ValueError, match="must be 'gibbs' for MedianLVQClassifier"):
        other.refine("laplace")


def test_the_declared_graph_has_the_density_of_the_fit(sampled: MedianLVQClassifier) -> None:
    model = sampled.declare()
    log_posterior = sampled.model_.log_posterior(sampled.rows_)
    theta = sampled.model_.point(log_posterior)
    point = {"exemplars": theta[:-1].astype(int), "sigma_log__": theta[-1]}
    found = model.compile_logp(mode="FAST_COMPILE")(point)
    assert float(found) == pytest.approx(log_posterior.value_and_gradient(theta)[0], rel=1e-10)


def test_a_fixed_sigma_leaves_the_exemplars_to_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    # Shape checks take longer than a sweep; other tests run with them.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    model = matrix_model(1, inference="gibbs").fit(D[:12, :12], Y[:12])
    assert set(model.posterior_["posterior"].data_vars) == {"exemplars"}
    assert model.posterior_["posterior"].sizes == {"chain": 4, "draw": 500, "prototype": 3}


def test_draws_compare_a_row_once_to_each_exemplar() -> None:
    pairs: list[int] = []

    def squared(a: np.ndarray, b: np.ndarray) -> float:
        pairs.append(1)
        return float(((a - b) ** 2).sum())

    for metric in (squared, "sqeuclidean"):
        model = MedianLVQClassifier(1, metric=metric, sigma=1.0, random_state=0).fit(X[:12], Y[:12])
        fit = model.refine(draws=5, tune=4, chains=1).fitted_
        predictor = fit.model.predictor(fit.log_posterior, new_rows(fit, NEW).cells)
        thetas = fit.draws.theta[0]
        pairs.clear()
        said = [predictor.at_all(thetas).log_probabilities for _ in range(2)]
        np.testing.assert_array_equal(*said)
        n_pairs = len(NEW) * np.unique(thetas).size
        assert len(pairs) == (n_pairs if metric is squared else 0)


def test_a_point_estimate_knows_no_uncertainty() -> None:
    model = matrix_model(sigma="sample", prior=MedianLVQPrior(0.2)).fit(D, Y)
    with pytest.warns(UserWarning, match="fitted to a point"):
        assert np.isnan(model.uncertainty(TO_TRAIN)["sd"]).all()
    tree = model.posterior_
    assert tree["posterior"].attrs["point_estimate"] == 1
    assert float(tree["posterior"]["sigma"].squeeze()) == pytest.approx(model.sigma_)


# ---- the artefact


@pytest.mark.parametrize("metric", ["precomputed", "gower", "sqeuclidean"])
def test_a_file_restores_the_model(tmp_path: Path, metric: str) -> None:
    given, new = (D, TO_TRAIN) if metric == "precomputed" else (X, NEW)
    model = MedianLVQClassifier(2, metric=metric, sigma="sample", random_state=0).fit(given, Y)
    model.refine(draws=5, tune=4, chains=2)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.exemplars_, model.exemplars_)
    again.refine(draws=5, tune=4, chains=2)
    np.testing.assert_array_equal(again.draws_.theta, model.draws_.theta)


def test_rows_that_are_compared_by_a_matrix_have_no_columns() -> None:
    distances = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    model = MedianLVQClassifier(1, metric="precomputed", sigma=1.0, random_state=0)
    model.fit(distances, [0, 0, 0, 1, 1, 1])
    assert not hasattr(model, "columns_")
    with pytest.raises(AttributeError, match="MedianLVQClassifier compares rows and knows no"):
        model.columns_.table()
