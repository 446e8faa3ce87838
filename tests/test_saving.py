"""A fitted estimator comes back from its file, and nothing else does."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris

from bayesrbf import (
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
    load,
)
from bayesrbf.base.artefact import ArtefactError, save_state
from bayesrbf.families.estimator import save
from tests.cases import generative
from tests.forgeries import Forgery, forge, put


def test_an_unknown_estimator_is_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_state(path, "Thing", {})
    with pytest.raises(ArtefactError, match="unknown estimator 'Thing'"):
        load(path)

    fitted = MixtureDensity(random_state=0).fit(holes()).fitted_
    impostor = type("MixtureDensity", (MixtureDensity,), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match="received a MixtureDensity"):
        save(impostor(), fitted, path)


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.safetensors")


def test_what_scikit_learn_was_told_is_no_hindrance(tmp_path: Path) -> None:
    X = holes()[["a", "b"]]
    with config_context(enable_metadata_routing=True):
        model = MixtureDensity(random_state=0).set_fit_request(sample_weight=True).fit(X)
    model.set_output(transform="pandas").save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    pd.testing.assert_frame_equal(again.transform(X), model.transform(X))


def holes() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    X.loc[::7, "a"] = np.nan
    return X.assign(colour=rng.choice(["red", "green"], 40), flag=rng.random(40) < 0.5)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda X: pl.DataFrame(X.to_dict("list"))])
def test_a_classifier_comes_back_from_its_file(tmp_path: Path, make: Callable[..., Any]) -> None:
    X = make(holes())
    y = np.array(["no", "yes", None, "yes"] * 10, dtype=object)
    fitted = generative(n_components={"no": 1, "yes": 2}, random_state=0).fit(X, y)
    digest = fitted.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors", digest)
    assert again.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.classes_, fitted.classes_, strict=True)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))
    assert again.posterior_.identical(fitted.posterior_)
    assert type(again.sample(2)[0]) is type(X)
    assert again.save(tmp_path / "again.safetensors") == digest


def test_draws_come_back(tmp_path: Path) -> None:
    X = holes()[["a", "b"]]
    fitted = MixtureDensity(random_state=0).fit(X).refine("laplace", draws=20, chains=2)
    fitted.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.posterior_.identical(fitted.posterior_)
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))


MODELS: Final[dict[str, Any]] = {
    "mixture": generative(1, random_state=0),
    "density": MixtureDensity(1, random_state=0),
    "RBF network": RBFNetworkClassifier(1, calibrate=False, n_init=1, random_state=0),
    "kernel network": KernelNetworkClassifier(calibrate=False, random_state=0),
    "SDGM": SDGMClassifier(1, calibrate=False, n_init=1, random_state=0),
    "median LVQ": MedianLVQClassifier(calibrate=False, random_state=0),
    "stack": StackedClassifier(["normal"], cv=2, random_state=0),
}


@cache
def on_iris(name: str) -> Any:
    X, y = load_iris(return_X_y=True)
    rows = slice(None, None, 3)
    return clone(MODELS[name]).fit(X[rows, :2], None if name == "density" else y[rows])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["laplace", "advi", "gibbs", "nuts", "bootstrap"])
@pytest.mark.parametrize("name", MODELS)
def test_draws_of_every_method_come_back(tmp_path: Path, name: str, method: str) -> None:
    """Whatever the statistics of a method are: counts of nutpie have no sign."""
    X = load_iris(return_X_y=True)[0][:, :2]
    model = deepcopy(on_iris(name))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few draws
            model.refine(method, draws=20, **({"tune": 20} if method == "nuts" else {}))
    except (ValueError, TypeError):
        pytest.skip("the family has no such draws")
    path = tmp_path / "model.brbf"
    model.save(path)
    back = load(path)
    np.testing.assert_array_equal(back.fitted_.draws.theta, model.fitted_.draws.theta)
    assert set(back.fitted_.draws.stats) == set(model.fitted_.draws.stats)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def entries(manifest: dict[str, Any]) -> dict[str, Any]:
    """Arguments, fit and container in a manifest."""
    found: dict[str, Any] = manifest["state"]["dict"]
    return found


def fields(manifest: dict[str, Any]) -> dict[str, Any]:
    """Fields of the fit in a manifest."""
    found: dict[str, Any] = entries(manifest)["fitted"]["record"][1]
    return found


def table(manifest: dict[str, Any]) -> dict[str, Any]:
    """Fields of what was read of the training table, in a manifest."""
    found: dict[str, Any] = fields(manifest)["table"]["record"][1]
    return found


WHOLE: Final = {"record": ["WholeRows", {"metric": "euclidean"}]}
"""How rows are read that a density cannot read."""


@pytest.mark.parametrize(
    "change",
    [
        put(kind="HybridMixtureClassifier"),
        put(state={"dict": {}}),
        put(state=[]),
        lambda header, manifest: entries(manifest).pop("container"),
        lambda header, manifest: entries(manifest).update(fit=1),
        lambda header, manifest: entries(manifest).update(fitted="x"),
        lambda header, manifest: entries(manifest).update(fitted=fields(manifest)["model"]),
        lambda header, manifest: entries(manifest).update(container=1),
        lambda header, manifest: entries(manifest)["arguments"]["dict"].update(also=1),
        lambda header, manifest: fields(manifest).update(details=None),
        lambda header, manifest: table(manifest).update(columns=None, template=None, whole=WHOLE),
        lambda header, manifest: table(manifest).update(owner="HybridMixtureClassifier"),
    ],
)
def test_a_state_of_something_else_is_refused(tmp_path: Path, change: Forgery) -> None:
    path = tmp_path / "m.safetensors"
    MixtureDensity(random_state=0).fit(holes()).save(path)
    forge(path, lambda header, manifest: None)
    load(path)
    forge(path, change)
    with pytest.raises(ArtefactError, match=r"no state of a|has unknown arguments: "):
        load(path)


def test_a_pickle_leaves_the_prepared_log_posterior_behind() -> None:
    model = MixtureDensity(random_state=0).fit(holes())
    model.diagnose()
    copied = pickle.loads(pickle.dumps(model))
    assert set(vars(model.fitted_)) - set(vars(copied.fitted_)) == {"log_posterior"}
    np.testing.assert_array_equal(copied.score_samples(holes()), model.score_samples(holes()))


def test_a_model_of_categorical_columns_alone_comes_back(tmp_path: Path) -> None:
    """The prior of covariances that are of no column has no strength."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(["a", "b", "c"], size=(60, 3)), columns=["one", "two", "three"])
    model = generative(random_state=0).fit(X, rng.integers(0, 2, 60))
    model.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("answer", "values", "message"),
    [
        ("score_samples", [np.nan], "score_samples of a stored row gives nan"),
        ("predict_proba", [[0.5, 0.6]], "of a stored row sum to 1.1"),
    ],
)
def test_what_predicts_no_probability_of_a_stored_row_is_refused(
    answer: str, values: list[Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = generative(random_state=0).fit(holes()[["a", "b"]], np.repeat([0, 1], 20))
    model.save(tmp_path / "model.safetensors")
    monkeypatch.setattr(type(model), answer, lambda *_: np.array(values))
    with pytest.raises(ArtefactError, match=message):
        load(tmp_path / "model.safetensors")
