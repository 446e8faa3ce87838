"""A fitted model's log posterior is made once, and its rows are prepared once for each way."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bayesrbf import KernelNetworkClassifier, RBFNetworkClassifier
from bayesrbf.mixture import compiled_expectation
from bayesrbf.mixture import expectation as array_expectation
from tests.cases import generative

MODELS = {
    "mixture": lambda: generative(n_components=2, random_state=0),
    "conditional": lambda: generative(objective="conditional", random_state=0),
    "rbf": lambda: RBFNetworkClassifier(n_components=3, random_state=0),
    "kernel": lambda: KernelNetworkClassifier(random_state=0),
}


@pytest.fixture
def counted(monkeypatch):
    """How often the rows of all of the table are cut for NumPy and laid out for the kernels."""
    counts: Counter[str] = Counter()

    def counting(module, name):
        original = getattr(module, name)

        def counted_call(observations, *args, **kwargs):
            counts[name, observations.n_obs, kwargs.get("by_products", True)] += 1
            return original(observations, *args, **kwargs)

        monkeypatch.setattr(module, name, counted_call)

    counting(array_expectation, "cut")
    counting(compiled_expectation, "plan_tiles")
    return counts


def rows_and_labels(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # ten draws are not enough to be judged well
@pytest.mark.parametrize("family", MODELS)
def test_drawing_and_judging_share_one_log_posterior(family, monkeypatch):
    model = MODELS[family]().fit(*rows_and_labels())
    made = []
    original = type(model.model_).log_posterior

    def counting(self, rows):
        made.append(self)
        return original(self, rows)

    monkeypatch.setattr(type(model.model_), "log_posterior", counting)
    model.refine("laplace", draws=10)
    model.posterior_  # noqa: B018 - made when it is first asked for
    model.diagnose()
    model.refine("laplace", draws=10)
    model.predict_posterior(rows_and_labels()[0][:5])
    assert made == [model.model_]


def test_rows_are_laid_out_once_however_often_is_drawn(counted):
    model = MODELS["mixture"]().fit(*rows_and_labels())
    counted.clear()
    for _ in range(3):
        model.refine("laplace", draws=10)
    assert counted["plan_tiles", 60, True] == 1


def test_a_prediction_cuts_its_rows_once(counted):
    model = MODELS["mixture"]().fit(*rows_and_labels())
    counted.clear()
    model.predict_proba(rows_and_labels(17)[0])
    assert dict(counted) == {("cut", 17, True): 1}
