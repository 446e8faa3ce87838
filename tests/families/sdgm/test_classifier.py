"""SDGMClassifier: what a person relies on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from bayesrbf import GammaPrecisions, SDGMClassifier, load
from bayesrbf.datasets import load_table
from bayesrbf.families.sdgm import evidence as ard_fit
from bayesrbf.families.sdgm import evidence as mode_search
from bayesrbf.families.sdgm.fitted import DRAWS, REPLICATES
from bayesrbf.families.sdgm.records import SDGMModes
from bayesrbf.fit.asking import new_rows

HIDDEN = "ignore:.*rows without a label:UserWarning"


def ring(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 10.0] + [0.0, 50.0]
    radius = ((X - [0, 50]) ** 2 / [1, 100]).sum(axis=1)
    return X, np.where(radius + 0.3 * rng.normal(size=n) < 1.4, "in", "out")


def small(**arguments: object) -> SDGMClassifier:
    settings = {"n_components": 1, "n_init": 1, "calibrate": False, "random_state": 0}
    return SDGMClassifier(**settings | arguments)


def _dot(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left @ right.T


def log_loss(model: SDGMClassifier, X: object, y: np.ndarray) -> float:
    p = model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return float(-np.log(p).mean())


@pytest.mark.slow
def test_a_kernel_of_the_users_own_meets_the_columns_where_they_are() -> None:
    def of_the_first(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (left[:, :1] - right[:, 0]) ** 2)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = X[:, 0] > 0
    expected = small(form="kernel", kernel=of_the_first).fit(X, y).predict_proba(X)
    for _ in range(3):
        other = np.column_stack([X[:, 0], rng.normal(size=(40, 3))])
        found = small(form="kernel", kernel=of_the_first).fit(other, y).predict_proba(other)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def numerical_error(model: SDGMClassifier, X: object) -> np.ndarray:
    """Standard errors of probabilities by their quasi-random integration."""
    rows = new_rows(model.fitted_, X).cells
    return model.model_.predict(rows, model.temperature_)[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_ripley_is_learned_with_seven_weights_at_most(data_folder: Path, seed: int) -> None:
    train = pd.read_csv(data_folder / "ripley_synth_train.csv")
    test = pd.read_csv(data_folder / "ripley_synth_test.csv")
    model = SDGMClassifier(random_state=seed).fit(train[["xs", "ys"]], train["target"])
    errors = int((model.predict(test[["xs", "ys"]]) != test["target"]).sum())
    assert errors <= 91
    assert model.n_weights_ <= 7
    assert model.n_components_ <= 4  # of six; with three or four the evidence is the same
    assert log_loss(model, test[["xs", "ys"]], test["target"].to_numpy()) < 0.2195
    assert numerical_error(model, test[["xs", "ys"]]).max() < 2e-3


def test_the_state_is_sparse_and_the_gradient_vanishes() -> None:
    X, y = ring()
    for form, size in (("primal", 6), ("kernel", 121)):
        model = small(form=form).fit(X, y)
        parameters, basis = model.model_.parameters, model.model_.basis
        assert 0 < parameters.n_weights == model.n_weights_ <= 6
        assert basis.n_features <= parameters.n_weights + 1 <= size
        log_posterior = model.model_.log_posterior(model.rows_)
        theta = model.model_.point(log_posterior)
        _, gradient = log_posterior.value_and_gradient(theta)
        np.testing.assert_allclose(gradient, 0, atol=1e-6)
        steps = 1e-5 * np.eye(theta.size)
        above, below = (
            np.array([log_posterior.value_and_gradient(theta + sign * step)[1] for step in steps])
            for sign in (1, -1)
        )
        curvature = (below - above) / 2e-5
        np.testing.assert_allclose(parameters.covariance @ curvature, np.eye(theta.size), atol=1e-6)
        assert model.score(*ring(seed=1)) > 0.8


def test_the_path_tells_evidence_weights_and_components() -> None:
    model = small(n_components=2).fit(*ring())
    path = model.path_
    assert path.evidence.size == model.n_iter_
    assert path.n_weights[0] == 18
    assert path.n_weights[-1] == model.n_weights_
    assert path.n_components[-1] == model.n_components_
    assert (np.diff(path.n_weights) <= 0).all()
    assert path.evidence[-1] == model.objective_


# ---- labels


@pytest.mark.slow
def test_sets_of_one_class_are_labels_and_full_sets_are_hidden() -> None:
    X, y = load_iris(return_X_y=True)
    sets = np.eye(3, dtype=bool)[y]
    plain, by_sets = small().fit(X, y), small().fit(X, sets)
    np.testing.assert_array_equal(plain.predict_proba(X), by_sets.predict_proba(X))
    frame = pd.DataFrame(sets, columns=["s", "v", "w"])
    assert small().fit(X, frame).predict(X[:1]).tolist() == ["s"]
    sets[::3] = True
    hidden = np.where(np.arange(len(y)) % 3 == 0, None, y)
    with pytest.warns(UserWarning, match="50 rows without a label"):
        told = small().fit(X, hidden)
    with pytest.warns(UserWarning, match="50 rows without a label"):
        full = small().fit(X, sets)
    np.testing.assert_array_equal(told.predict_proba(X), full.predict_proba(X))


def test_half_known_labels_teach() -> None:
    """Two of three classes named for most rows, the third ruled out: better than few labels."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    known = rng.random(150) < 0.1
    sets = np.eye(3, dtype=bool)[y]
    sets[np.arange(150), (y + 1 + rng.integers(2, size=150)) % 3] = True
    sets[known] = np.eye(3, dtype=bool)[y[known]]
    assert log_loss(small().fit(X, sets), X, y) < log_loss(small().fit(X[known], y[known]), X, y)


@pytest.mark.filterwarnings(HIDDEN)
def test_hidden_labels_change_nothing_where_no_cell_is_missing() -> None:
    X, y = ring()
    twice = np.concatenate([X, X])  # the same location, scale and companion
    labels = np.concatenate([y.astype(object), [None] * len(y)])
    model, semi = small().fit(X, y), small().fit(twice, labels)
    np.testing.assert_allclose(model.predict_proba(X), semi.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[True, False], [False, False], [False, True]], "row 1 has none"),
        ([[True, False], [True, True], [True, False]], "class .*1.* has none"),
    ],
)
def test_label_sets_that_make_no_sense_are_refused(labels: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small().fit(np.arange(6.0).reshape(3, 2), np.array(labels))


# ---- missing cells and categories


def test_holes_are_averaged_and_the_error_is_told() -> None:
    X, y = ring(200)
    train, test = slice(0, 120), slice(120, None)
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = small().fit(holes[train], y[train])
    whole = np.isfinite(holes[test]).all(axis=1)
    p, error = model.predict_proba(holes[test]), numerical_error(model, holes[test])
    assert error[~whole].max() < 0.02
    assert 0 < model.completion_error_ < 2
    assert small().fit(X[train], y[train]).completion_error_ == 0
    assert 2 * error[whole].mean() < error[~whole].mean()
    frequency = -np.mean(np.log((y[train] == "in").mean() * np.ones(80)))
    assert log_loss(model, holes[test], y[test]) < min(frequency, 0.62)
    alone = np.concatenate([model.predict_proba(row[None]) for row in holes[test][:6]])
    np.testing.assert_allclose(alone, p[:6], rtol=1e-9)
    empty = model.predict_proba([[np.nan, np.nan]])
    assert abs(empty[0, 0] - (y[train] == "in").mean()) < 0.1


def test_three_classes_with_an_empty_column() -> None:
    """All rows have holes, and the blind companion knows no third class."""
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X[:, 2:], np.full(len(X), np.nan)])
    model = SDGMClassifier(1, n_init=1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_categories_enter_as_indicators() -> None:
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 150)
    size = rng.normal(size=150)
    y = ((colour == "red") ^ (size > 0)).astype(int)  # an interaction of the two
    X = pd.DataFrame({"colour": pd.Categorical(colour), "size": size})
    model = small(n_components=2, n_init=2).fit(X, y)
    assert model.score(X, y) > 0.93
    X.loc[0, "colour"] = None
    p = model.predict_proba(X[:1])
    assert 0.02 < p[0, 0] < 0.98
    names = model.posterior_["posterior"]["coefficient"].to_numpy().tolist()
    assert any("size * colour=red" in name for name in names)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_levels_are_told() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{i}": pd.Categorical(rng.integers(20, size=60)) for i in range(4)})
    with pytest.warns(UserWarning, match="levels of the categorical columns"):
        small(max_iter=20).fit(X, rng.integers(2, size=60))


# ---- the posterior


@pytest.mark.slow
def test_average_and_plug_in() -> None:
    X, y = ring(40)
    average, plug_in = small().fit(X, y), small(prediction="plug-in").fit(X, y)
    new, _ = ring(500, seed=3)
    assert np.abs(average.predict_proba(new) - plug_in.predict_proba(new)).max() > 0.01
    surest = [model.predict_proba(new).max(axis=1).mean() for model in (average, plug_in)]
    assert surest[0] < surest[1] - 0.01
    assert (numerical_error(plug_in, new) == 0).all()
    told = average.uncertainty(new)
    np.testing.assert_allclose(told["probability"], average.predict_proba(new), atol=1e-12)
    assert (told["upper"] > told["lower"]).all()  # the fit itself makes a posterior
    assert (told["epistemic_entropy"] > 0).all()
    with pytest.warns(UserWarning, match="fitted to a point"):
        at_point = plug_in.uncertainty(new)
    assert np.isnan(at_point["epistemic_entropy"]).all()
    check = average.predict_posterior(*ring(30, seed=4))
    assert check["posterior_predictive"]["y"].shape == (REPLICATES, DRAWS, 30)


def doubtful(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap: few rows have several explanations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0, "up", "down")


def several(**arguments: object) -> SDGMClassifier:
    """A fit of few rows whose restarts end in several modes."""
    settings = {"n_components": 3, "n_init": 4, "form": "kernel", "prediction": "average"}
    return small(**settings | arguments).fit(*doubtful(50, 0))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_average_has_every_mode_by_its_share() -> None:
    model, new = several(), doubtful(300, 3)[0]
    shares = model.mode_probabilities_
    assert shares.size > 1
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    assert model.mode_n_weights_[0] == model.n_weights_
    fitted, expected = model.model_, 0.0
    for share, mode in zip(shares, fitted.modes.parameters, strict=True):
        alone = replace(fitted, modes=SDGMModes((mode,), np.ones(1)))
        rows = new_rows(model.fitted_, new).cells
        expected = expected + share * alone.predict(rows)[0]
    p = model.predict_proba(new)
    assert (np.abs(p - expected) < 5 * numerical_error(model, new) + 2e-3).all()
    single = several(prediction="single-mode").predict_proba(new)
    assert np.abs(p - single).max() > 0.02
    plug_in = several(prediction="plug-in")
    assert (numerical_error(plug_in, new) == 0).all()
    with pytest.raises(ValueError, match="received 'avarage'"):
        plug_in.set_params(prediction="avarage").predict_proba(new)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_uncertainty_between_modes_is_epistemic() -> None:
    new = doubtful(60, 3)[0]
    new[::3, 0] = np.nan
    told = {}
    for prediction in ("average", "single-mode"):
        model = several(prediction=prediction)
        told[prediction] = model.uncertainty(new)
        mean = told[prediction]["probability"].to_numpy()
        whole = ~np.isnan(new).any(axis=1)
        np.testing.assert_allclose(mean[whole], model.predict_proba(new)[whole], atol=1e-12)
        # rows with holes have fewer draws of the weights for each of their completions
        assert np.abs(mean - model.predict_proba(new)).max() < 0.05
    more = told["average"]["epistemic_entropy"] - told["single-mode"]["epistemic_entropy"]
    assert float(more.mean()) > 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "arguments", [{"class_prior": [0.1, 0.9]}, {"precision_prior": GammaPrecisions()}]
)
def test_uncertainty_is_that_of_the_prediction(arguments: dict) -> None:
    model, new = several(**arguments), doubtful(100, 3)[0]
    told = model.uncertainty(new)
    np.testing.assert_allclose(told["probability"], model.predict_proba(new), atol=1e-10)
    assert (told["sd"] > 0).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_thinned_draws_have_the_same_mean() -> None:
    model, new = several(), doubtful(100, 3)[0]
    row_bytes = 8 * REPLICATES * 2 * len(new)
    with pytest.warns(UserWarning, match="one draw in 16 is kept"):
        few = model.predict_posterior(new, memory=row_bytes * DRAWS // 16)
    mean = few["predictions"]["probability"].mean(["chain", "draw"])
    np.testing.assert_allclose(mean, model.predict_proba(new), atol=0.06)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
def test_a_temperature_is_fitted_to_what_it_is_used_on() -> None:
    arguments = {"calibrate": True, "cv": 3, "n_init": 2}
    single = several(prediction="single-mode", **arguments).temperature_
    drawn = several(inference="laplace", **arguments)
    assert drawn.temperature_ == single
    assert several(**arguments).temperature_ != single


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_wide_fit_is_as_good_as_a_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = load_iris(return_X_y=True)
    settings = {"n_components": 2, "n_init": 2, "form": "kernel"}
    narrow = small(**settings).fit(X[::2], y[::2])
    monkeypatch.setattr(mode_search, "WIDE", 0.0)
    wide = small(**settings).fit(X[::2], y[::2])
    assert wide.path_.n_weights[0] == narrow.path_.n_weights[0] > 300
    assert wide.path_.evidence[0] != narrow.path_.evidence[0]
    assert wide.converged_
    assert abs(log_loss(wide, X[1::2], y[1::2]) - log_loss(narrow, X[1::2], y[1::2])) < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
def test_draws_are_of_the_most_probable_mode() -> None:
    model, new = several(), doubtful(100, 3)[0]
    single = several(prediction="single-mode").predict_proba(new)
    drawn = model.refine("laplace", draws=500)
    assert drawn.posterior_["posterior"]["coefficients"].shape[-1] == model.n_weights_
    mean = drawn.predict_posterior(new)["predictions"]["probability"].mean(("chain", "draw"))
    np.testing.assert_allclose(mean, single, atol=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
def test_laplace_and_nuts_run_without_anything_added() -> None:
    X, y = ring()
    model = small().fit(X, y)
    by_fit = model.predict_proba(X)
    for method, options, atol in (
        ("laplace", {"draws": 500}, 0.02),
        ("nuts", {"draws": 200, "chains": 2, "tune": 300}, 0.06),
    ):
        drawn = model.refine(method, **options).predict_posterior(X)["predictions"]["probability"]
        np.testing.assert_allclose(drawn.mean(("chain", "draw")), by_fit, atol=atol)
    tree = model.posterior_
    assert tree["posterior"]["coefficients"].shape == (2, 200, model.n_weights_)
    assert tree["log_likelihood"]["y"].shape == (2, 200, 120)
    assert tree["constant_data"]["allowed"].shape == (120, 2)


@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
def test_precisions_can_be_learned() -> None:
    X, y = ring(60)
    model = small(precision_prior=GammaPrecisions(1.0, 0.1)).fit(X, y)
    log_posterior = model.model_.log_posterior(model.rows_)
    theta = model.model_.point(log_posterior)
    plug_in = small(prediction="plug-in").fit(X, y)
    # all weights, and yet the same function
    points, starts = X, np.arange(len(X))
    said = log_posterior.predictor(points, starts, np.zeros(len(X)))(theta)
    np.testing.assert_allclose(np.exp(said.log_probabilities), plug_in.predict_proba(X), atol=1e-9)
    assert log_posterior.dimension == 2 * 2 * 6
    model.refine("laplace", draws=100)
    assert set(model.posterior_["posterior"]) == {"coefficient_precisions", "coefficients"}


@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayesrbf.inference.diagnose.PosteriorWarning")
@pytest.mark.parametrize("method", ["laplace", "advi", "nuts"])
@pytest.mark.parametrize("n_classes", [1, 2])
def test_where_no_weight_is_left_the_posterior_is_empty(method: str, n_classes: int) -> None:
    """One class, or a column that says nothing: probabilities are the frequencies."""
    X, y = np.zeros((40, 1)), np.arange(40) % n_classes
    model = small().fit(X, y)
    assert model.n_weights_ == 0
    assert model.posterior_["posterior"]["coefficients"].shape == (1, 1, 0)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, 1 / n_classes)
    model.refine(method, draws=50)
    assert model.posterior_["posterior"]["coefficients"].shape == (4, 50, 0)
    np.testing.assert_allclose(model.predict_proba(X), p)
    model.diagnose()


def test_the_declared_graph_has_the_names_of_the_tree() -> None:
    model = small().fit(*ring(40))
    declared = model.declare()
    assert [v.name for v in declared.free_RVs] == list(model.posterior_["posterior"])
    names = list(declared.coords["coefficient"])
    assert names == model.posterior_["posterior"]["coefficient"].to_numpy().tolist()


@pytest.mark.slow
def test_saved_and_read_back(tmp_path: Path) -> None:
    X, y = ring(60)
    X[::4, 1] = np.nan
    for arguments in (
        {},
        {"form": "kernel", "precision_prior": GammaPrecisions()},
        {"n_components": 3, "n_init": 4},
    ):
        model = small(**arguments).fit(X, y)
        model.save(tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert again.path_.n_weights.tolist() == model.path_.n_weights.tolist()
    with pytest.raises(ValueError, match="function"):
        small(form="kernel", kernel=_dot).fit(X, y).save(tmp_path / "none.safetensors")


# ---- faults and degenerate tables


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_would_fill_the_memory_is_refused_before_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = ring(60)
    size = (60 + 6) * 5 * 6  # points and rank by components and rank
    monkeypatch.setattr(ard_fit, "MAX_NUMBERS", size)
    small(n_components=3, max_iter=2).fit(X, y)
    monkeypatch.setattr(ard_fit, "MAX_NUMBERS", size - 1)
    with pytest.raises(ValueError, match=r"6 components with 6 independent features .* 60 points"):
        small(n_components=3).fit(X, y)
    X[0, 0] = np.nan  # completions are points, too
    monkeypatch.setattr(ard_fit, "MAX_NUMBERS", size + 5 * 6)
    with pytest.raises(ValueError, match="on 91 points"):
        small(n_components=3).fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"form": "dual"}, "form=...\\) must be 'primal' or 'kernel'; received 'dual'"),
        ({"kernel": "cubic"}, "kernel=...\\) must be one of"),
        ({"prediction": "mode"}, "prediction=...\\) must be 'average' or"),
        ({"alpha_init": -1.0}, "alpha_init=...\\) must be a finite positive number"),
        ({"companion_components": 0}, "companion_components=...\\) must be"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_arguments_are_checked(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**arguments).fit(*ring(20))


def test_a_prior_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="precision_prior"):
        small(precision_prior=2.0).fit(*ring(20))


def test_too_few_updates_are_told() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        small(max_iter=2).fit(*ring())


@pytest.mark.slow
def test_real_tables_with_holes_and_categories(data_folder: Path) -> None:
    hepatitis = load_table("hepatitis")
    X, y = hepatitis.X, np.asarray(hepatitis.y)
    train = np.arange(len(y)) % 2 == 0
    model = SDGMClassifier(1, n_init=2, random_state=0).fit(X[train], y[train])
    assert log_loss(model, X[~train], y[~train]) < 0.5
