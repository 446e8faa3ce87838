"""Four chains of 1,500 on iris and wine with holes: do they agree, and is Laplace near?"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from bayesrbf import HybridMixtureClassifier

TABLES = {"iris": load_iris, "wine": load_wine}
FIGURES = ["rhat_log_posterior", "rhat_class_probabilities", "rhat_parameters", "divergences"]


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize("name", TABLES)
def test_four_long_chains_agree(name: str, n_components: int, capsys: object) -> None:
    X, y = TABLES[name](return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.25] = np.nan
    model = HybridMixtureClassifier(n_components, random_state=0).fit(X, y)
    at_map = model.predict_proba(X)
    seconds, probabilities = {}, {}
    for method, options in {"laplace": {}, "nuts": {"draws": 1500, "tune": 1000}}.items():
        start = time.perf_counter()
        model.refine(method, chains=4, **options)
        seconds[method] = time.perf_counter() - start
        probabilities[method] = model.predict_proba(X)
    found = model.diagnose().set_index("row")["value"]
    summary = found[FIGURES].to_dict() | {
        "MAP to NUTS": np.abs(at_map - probabilities["nuts"]).max(),
        "Laplace to NUTS": np.abs(probabilities["laplace"] - probabilities["nuts"]).max(),
        "Laplace, s": seconds["laplace"],
        "NUTS, s": seconds["nuts"],
    }
    with capsys.disabled():
        print(f"\n{name}, K = {n_components}\n{pd.Series(summary).round(4).to_string()}")
    assert found["rhat_log_posterior"] < 1.01
    assert found["rhat_class_probabilities"] < 1.01
    assert found["rhat_parameters"] < 1.02
    assert found["divergences"] == 0
