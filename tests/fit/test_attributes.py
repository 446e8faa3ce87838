"""What a docstring lists under Attributes completes and can be read after a fit."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from numpydoc.docscrape import NumpyDocString
from sklearn.base import BaseEstimator

import bayesrbf
from bayesrbf import ConformalSets, HybridMixtureClassifier
from tests.cases import some_quick
from tests.house import estimators

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["age", "dose"])
Y = np.where(X["age"] > 0, 1, 0)
MADE = {
    **{name: kind(random_state=0) for name, kind in estimators().items()},
    "ConformalSets": ConformalSets(HybridMixtureClassifier(random_state=0), cv=2),
}


def documented(kind: type) -> set[str]:
    """Names in the section Attributes; some lines have several."""
    entries = NumpyDocString(inspect.getdoc(kind))["Attributes"]
    return {name for entry in entries for name in entry.name.split(", ")}


def test_no_estimator_is_missing() -> None:
    kinds = {name: getattr(bayesrbf, name) for name in bayesrbf.__all__}
    assert MADE.keys() == {name for name, kind in kinds.items() if hasattr(kind, "fit")}


@pytest.mark.parametrize(
    "name", some_quick(MADE, "HybridMixtureClassifier", "MixtureDensity", "StackedClassifier")
)
def test_what_the_docstring_lists_is_in_dir_after_a_fit(name: str) -> None:
    estimator: BaseEstimator = MADE[name]
    listed = documented(type(estimator))
    assert not listed & {*dir(estimator)}
    estimator.fit(X, Y)
    assert len(listed) > 1
    assert listed <= {*dir(estimator)}
    assert all(hasattr(estimator, one) for one in listed)
