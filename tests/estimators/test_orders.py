"""Order of rows, columns and labels: none changes what any classifier finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from tests.estimators.class_tables import table

Frame = tuple[pd.DataFrame, np.ndarray]

TURNED = np.array(["late", "early", "noon"], dtype=object)
"""Names that sort differently."""


def holes(n: int = 90) -> Frame:
    """Ninety rows of three classes over seven columns, with holes and unlabelled rows."""
    X, y = table(n)
    rng = np.random.default_rng(2)
    shape = X.mask(rng.random(X.shape) < 0.1)
    more = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    more["mood"] = rng.choice(["good", "bad"], n)
    more = more.mask(rng.random(more.shape) < 0.2, None)
    more[["a", "b", "c"]] = more[["a", "b", "c"]].astype(float)
    return pd.concat([X.where(X.notna(), shape), more], axis=1), y


def turned(X: pd.DataFrame, y: np.ndarray, seed: int) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """The same table in another order, under other labels; and the way back of predictions."""
    rng = np.random.default_rng(seed)
    columns, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    names = dict(zip(np.unique(y), TURNED, strict=True))
    back = np.searchsorted(np.sort(TURNED), TURNED)
    new = np.array([names[label] for label in y], dtype=object)
    return X.iloc[rows, columns], new[rows], (columns, back)


CLASSIFIERS = {
    **{
        f"{shape}{' tied' if tied else ''}": HybridMixtureClassifier(
            3, covariance_type=shape, tied=tied, n_init=2
        )
        for shape in ("full", "tied", "diag", "spherical")
        for tied in (False, True)
    },
    "calibrated": HybridMixtureClassifier(2, calibrate=True, cv=3, n_init=2),
    "blend": HybridMixtureClassifier(2, objective="blend", kappa="cv", cv=3, n_init=1),
    "conditional": HybridMixtureClassifier(2, objective="conditional", early_stopping=True),
    "margin": HybridMixtureClassifier(2, objective="margin", batch_size=20, objective_iter=10),
    "hinge": HybridMixtureClassifier(2, objective="hinge", covariance_type="diag"),
    "rbf": RBFNetworkClassifier(n_components=4, n_init=2, calibrate=True, cv=3),
    "rbf log density": RBFNetworkClassifier(n_components=3, features="log_density"),
    "caetano": RBFNetworkClassifier(n_components=4, scheme="caetano", max_iter=30),
    "em_lr": RBFNetworkClassifier(n_components=4, scheme="em_lr_link_k", max_iter=10),
    "apart": RBFNetworkClassifier(n_components=2, scheme="em_lr", shared=False, max_iter=20),
    "kernel": KernelNetworkClassifier(calibrate=True, cv=3),
    "kernel few": RBFNetworkClassifier(features="kernel", n_components=20),
    "sdgm": SDGMClassifier(n_components=2, n_init=2, max_iter=30),
    "sdgm kernel": SDGMClassifier(n_components=1, form="kernel", max_iter=30, calibrate=True, cv=2),
    "lvq": MedianLVQClassifier(2, metric="gower", calibrate=True),
    "lvq gem": MedianLVQClassifier(2, metric="gower", optimizer="gem", sigma="sample"),
    "stack": StackedClassifier(members="lite", cv=3),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_order_and_names_change_no_probability(name: str) -> None:
    model = clone(CLASSIFIERS[name]).set_params(random_state=0)
    X, y = holes()
    expected = clone(model).fit(X, y).predict_proba(X)
    for seed in (0, 1):
        other_X, other_y, (columns, back) = turned(X, y, seed)
        other = clone(model).fit(other_X, other_y)
        found = other.predict_proba(X.iloc[:, columns])[:, back]
        print("DIFF", name, np.abs(found - expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
