"""An estimator is what it was, or new: whatever is interrupted or fails leaves nothing between."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from bayesrbf import check, recalibrate, validate
from bayesrbf.answers.probabilities import LabelShift
from bayesrbf.families.estimator import Estimator
from bayesrbf.inference import draws as inference_draws
from bayesrbf.public import ESTIMATORS
from tests.cases import generative, some_quick
from tests.fit.interrupting import (
    FAMILIES,
    answers,
    earlier,
    held,
    later,
    refine,
)

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:StackedClassifier. left"
)


def fail(*_: object, **__: object) -> Any:
    """Stand in for the last part of some work."""
    raise MemoryError("late")


@pytest.fixture(scope="module")
def interrupted() -> dict[str, dict[str, int]]:
    """How often an interrupt left each family as it was; the program fails at any other state."""
    words = [sys.executable, "-m", "tests.fit.interrupting"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_estimator_is_missing() -> None:
    assert {type(one).__name__ for one in FAMILIES.values()} >= set(ESTIMATORS)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_interrupted_refit_leaves_the_old_fit_or_the_new_one(
    interrupted: dict[str, dict[str, int]], name: str
) -> None:
    assert interrupted["fit"][name] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_interrupted_refinement_leaves_the_old_draws_or_new_ones(
    interrupted: dict[str, dict[str, int]], name: str
) -> None:
    assert interrupted["refine"][name] > 0


@pytest.mark.parametrize("name", some_quick(FAMILIES, "mixture", "kernel", "stack"))
def test_error_late_in_a_fit_or_a_refinement_leaves_the_old_fit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (A, a), (B, b) = earlier(name), later(name)
    model = clone(FAMILIES[name]).fit(A, a)
    before, said, arguments = held(model), answers(model, A), model.get_params()
    monkeypatch.setattr(Estimator, "_ended", fail)
    with pytest.raises(MemoryError, match="late"):
        model.fit(B, b)
    monkeypatch.setattr(inference_draws, "relabel", fail)
    tree = copy(model).posterior_
    for change in (lambda: refine(name, model), lambda: model.use_posterior(tree)):
        with pytest.raises(MemoryError, match="late"):
            change()
    assert held(model) == before
    assert model.get_params() == arguments
    np.testing.assert_array_equal(answers(model, A), said)


def test_methods_change_the_estimator_and_return_it_and_functions_leave_it() -> None:
    A, a = earlier("mixture")
    model = generative(random_state=0).fit(A, a)
    for change in (
        lambda: model.refine("laplace", draws=20),
        lambda: model.use_posterior(model.posterior_),
        lambda: model.adapt_prior(A),
        lambda: model.assume_missingness("ignorable"),
    ):
        before = held(model)
        assert change() is model
        assert held(model) != before
    before = held(model)
    new = recalibrate(model, A, a, "intercept")
    assert new is not model
    check(model, A)
    validate(model, A, a)
    model.estimate_prior(A)
    model.uncertainty(A)
    assert held(model) == before


def test_error_late_in_adapting_leaves_the_old_prevalence(monkeypatch: pytest.MonkeyPatch) -> None:
    A, a = earlier("mixture")
    model = generative().fit(A, a)
    before = held(model)
    monkeypatch.setattr(LabelShift, "to_dataset", fail)
    with pytest.raises(MemoryError, match="late"):
        model.adapt_prior(A)
    assert held(model) == before


@pytest.mark.parametrize("name", some_quick(FAMILIES, "mixture", "kernel", "stack"))
def test_refit_sees_and_leaves_nothing_of_an_earlier_fit(name: str) -> None:
    """With names of columns, draws and a tree before, and none of them after."""
    (A, a), (B, b) = earlier(name), later(name)
    model = clone(FAMILIES[name]).fit(A, a)
    _ = model.posterior_
    model.fitted_ = object()
    assert model.fit(B, b) is model
    fresh = clone(FAMILIES[name]).fit(B, b)
    assert set(vars(model)) == set(vars(fresh))
    np.testing.assert_array_equal(answers(model, B), answers(fresh, B))


def test_refit_keeps_what_is_not_of_a_fit() -> None:
    A, a = earlier("mixture")
    with config_context(enable_metadata_routing=True):
        model = generative().set_fit_request(sample_weight=True)
    model.set_output(transform="pandas").note = "mine"
    B, b = later("mixture")
    model.fit(A, a).fit(B, b)
    assert model.note == "mine"
    assert model.get_metadata_routing().fit.requests == {"sample_weight": True, "groups": None}
    assert list(model.transform(B)) == ["hybridmixtureclassifier0", "hybridmixtureclassifier1"]


@pytest.mark.slow
def test_warnings_name_the_line_that_called() -> None:
    """In a process of its own: here, every call passes through code that checks shapes."""
    code = """
import warnings
from bayesrbf import *
from tests.cases import generative
X, y = [[0.0], [1.0], [2.0], [4.0]], ["a", "a", "b", "b"]
models = [generative(n_components=2, max_iter=1, n_init=1, tol=0.0, random_state=0),
          KernelNetworkClassifier(max_iter=1, tol=1e-300), generative(calibrate=True)]
for model in models:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X[1:3] if model.calibrate else X, y[1:3] if model.calibrate else y)
    assert caught and all(one.filename == "<string>" for one in caught), caught
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
