"""Names of earlier versions raise an error that says the new one."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MedianLVQClassifier, MixtureDensity
from bayesrbf.estimators.moved import ARGUMENTS, NAMES
from tests.house import estimators

MOVED = [(kind, name) for kind, names in ARGUMENTS.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), MOVED)
def test_a_moved_argument_names_the_new_spelling(kind: str, name: str) -> None:
    estimator = getattr(bayesrbf, kind)
    assert name not in inspect.signature(estimator).parameters
    said = re.escape(f"{kind} has no argument {name!r}: use {ARGUMENTS[kind][name]}.")
    with pytest.raises(TypeError, match=said):
        estimator(**{name: 1})
    with pytest.raises(TypeError, match=said):
        estimator().set_params(**{name: 1})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", estimators().values(), ids=list(estimators()))
def test_a_moved_method_names_the_new_one(kind: type, name: str) -> None:
    assert not hasattr(kind(), name)
    with pytest.raises(AttributeError, match=re.escape(f"use {NAMES[name]}.")):
        getattr(kind(), name)


def test_what_is_named_in_their_place_exists() -> None:
    texts = [text for names in (*ARGUMENTS.values(), NAMES) for text in names.values()]
    named = {word for text in texts for word in re.findall(r"\b[A-Z][a-z]\w+(?=\()", text)}
    assert named == {"Blend", "Hinge", "Margin"}
    named |= {word for text in texts for word in re.findall(r"\bbayesrbf\.(\w+)\(", text)}
    assert named <= set(bayesrbf.__all__)
    for text in texts:
        for call, field in re.findall(r"\b([A-Z]\w+)\([^=()]*?(\w+)=", text):
            assert field in inspect.signature(getattr(bayesrbf, call)).parameters


def test_a_class_of_a_user_refuses_them_too() -> None:
    class Own(HybridMixtureClassifier):
        pass

    with pytest.raises(TypeError, match=r"use objective=Blend\(kappa\)"):
        Own(kappa=0.5)
    assert "kappa" not in Own().get_params()


def test_other_names_fail_as_they_always_did() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'capa'"):
        HybridMixtureClassifier(capa=0.3)
    with pytest.raises(ValueError, match="Invalid parameter 'capa'"):
        HybridMixtureClassifier().set_params(capa=0.3)
    with pytest.raises(NotFittedError):
        _ = HybridMixtureClassifier().classes_
    with pytest.raises(AttributeError, match="'MixtureDensity' object has no attribute 'nothing'"):
        _ = MixtureDensity().nothing
    with pytest.raises(AttributeError, match="had no names of columns"):
        _ = MixtureDensity().fit(np.eye(3)).feature_names_in_
    with pytest.raises(AttributeError, match="MedianLVQClassifier"):
        MedianLVQClassifier().novelty([[0.0]])


def test_copies_are_made_as_of_any_estimator() -> None:
    model = MixtureDensity(random_state=0).fit(np.random.default_rng(0).normal(size=(9, 2)))
    for made in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made.lower_bound_ == model.lower_bound_
    assert "fitted_" not in vars(clone(model))
