"""scikit-learn's own checks: no expected failure, and no skip but array-API ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from bayesrbf import (
    Hinge,
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.public import ESTIMATORS
from tests.cases import generative

QUICK = [generative()]
# Each class once; other options have laws of their own in tests/families/.
OTHERS = [
    MixtureDensity(),
    StackedClassifier(
        ["laplace", "normal"], cv=2
    ),  # each further member costs a fit per fold and check
    RBFNetworkRegressor(2, n_init=1),
]
# What other checks ask of a classifier is of the base of all: checks of its arguments, rows and
# answers alone. So with options that change what a class takes or how it asks for rows.
# Two folds calibrate as five do.
OF_ONE_BASE = [
    KernelNetworkClassifier(),
    HybridMixtureClassifier(cv=2),
    # On one table of the checks, 20 rows in four classes, log precisions never rest to .001.
    SDGMClassifier(1, n_init=1, tol=0.05, cv=2),
    MedianLVQClassifier(n_init=1),
    RBFNetworkClassifier(n_init=1, cv=2),
]
OPTIONS = [
    HybridMixtureClassifier(objective=Hinge(max_iter=20), shared_covariance=True, n_init=1, cv=2),
    KernelNetworkClassifier("gaussian", rates="leave-one-out", missingness="informative"),
    MedianLVQClassifier(metric="precomputed", sigma=1.0),
    # scikit-learn compares decision_function and predict_proba on rows that are no square matrix:
    # whoever has both fails there under "precomputed", which tests/families/median_lvq/ tries.
    MedianLVQClassifier(1, objective="glvq", metric="precomputed", calibrate=False),
]
OF_ROWS = re.compile(
    "check_(classifiers_(train|one_label|classes)|fit_idempotent|fit2d|methods_|nonsquare|"
    "sample_weight_equivalence|estimators_(pickle|nan_inf|overwrite)|n_features_in|"
    "transformer_general|no_attributes_set_in_init|parameters_default|[gs]et_params|dict_unchanged)"
)


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


def with_checks(
    estimators: list[BaseEstimator], asked: re.Pattern[str] = re.compile("")
) -> pytest.MarkDecorator:
    """Run checks of scikit-learn; names of tests have the beginnings of its names."""
    every = parametrize_with_checks(estimators)
    names, cases = every.args
    chosen = [case for case in cases if asked.match(name_of(case[1]))]
    return pytest.mark.parametrize(names, chosen, ids=lambda one: every.kwargs["ids"](one)[:55])


@with_checks(QUICK)
@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
@pytest.mark.filterwarnings("ignore:.*tells every class from the others:UserWarning")
@pytest.mark.filterwarnings("ignore:.*one labelled row alone is of class:UserWarning")
def test_check(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


@pytest.mark.slow
@with_checks([*OF_ONE_BASE, *OPTIONS], OF_ROWS)
@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
@pytest.mark.filterwarnings("ignore:.*tells every class from the others:UserWarning")
@pytest.mark.filterwarnings("ignore:.*one labelled row alone is of class:UserWarning")
def test_check_of_options(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


@pytest.mark.slow
@with_checks(OTHERS)
@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
@pytest.mark.filterwarnings("ignore:.*tells every class from the others:UserWarning")
@pytest.mark.filterwarnings("ignore:.*one labelled row alone is of class:UserWarning")
@pytest.mark.filterwarnings("ignore:.*holds out no labelled row:UserWarning")
def test_check_of_others(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


def test_no_estimator_is_missing() -> None:
    assert {type(one).__name__ for one in (*QUICK, *OTHERS, *OF_ONE_BASE)} >= set(ESTIMATORS)


@pytest.mark.parametrize(
    ("estimator", "number"), [(MixtureDensity(), 53), (HybridMixtureClassifier(), 67)]
)
def test_no_check_is_missing(estimator: BaseEstimator, number: int) -> None:
    checks = list(estimator_checks_generator(estimator, mark=None))
    assert len(checks) >= number
    names = {name_of(check) for _, check in checks}
    assert names >= {
        "check_estimators_pickle",
        "check_fit2d_predict1d",
        "check_methods_sample_order_invariance",
        "check_sample_weight_equivalence_on_dense_data",
        "check_transformer_general",
    }
