"""Interrupt every family's fit and refine at 60 points each; a program, see test_in_one_step.

It runs in a process of its own, where nothing checks the shapes of every call: four times as quick.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

import bayesrbf

POINTS = 60
PACKAGE = str(Path(bayesrbf.__file__).parent)

QUICK: dict[str, Any] = {"n_init": 1, "random_state": 0}
JOINT: dict[str, Any] = {**QUICK, "max_iter": 2}
FAMILIES: dict[str, Any] = {
    "mixture": bayesrbf.HybridMixtureClassifier(**QUICK, calibrate=True, cv=2),
    "blend": bayesrbf.HybridMixtureClassifier(
        **QUICK, objective=bayesrbf.Blend(max_iter=2), shared_covariance=True, cv=2
    ),
    "density": bayesrbf.MixtureDensity(2, **QUICK),
    "rbf": bayesrbf.RBFNetworkClassifier(1, **JOINT, cv=2),
    "regressor": bayesrbf.RBFNetworkRegressor(1, **JOINT, calibrate=False),
    "kernel": bayesrbf.KernelNetworkClassifier(random_state=0, n_basis=4),
    "sdgm": bayesrbf.SDGMClassifier(**JOINT, companion_components=1, cv=2),
    "median_lvq": bayesrbf.MedianLVQClassifier(**JOINT, sigma=1.0),
    "stack": bayesrbf.StackedClassifier(("normal",), cv=2, random_state=0),
}


def earlier(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A column with a name, of classes a and b."""
    X = np.random.default_rng(0).normal(size=(12, 1))
    X[6:] += 2
    return pd.DataFrame(X, columns=["p"]), labels(name, "a", "b")


def later(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A table without names, with another column and of classes b and z."""
    X = np.random.default_rng(1).normal(size=(12, 2))
    X[6:] -= 2
    X[0, 0] = np.nan
    return X, labels(name, "b", "z")


def labels(name: str, first: str, second: str) -> np.ndarray:
    """Two classes in turn; numbers for a regressor."""
    return np.arange(12.0) if name == "regressor" else np.repeat([first, second], 6)


def answers(model: Any, X: Any) -> np.ndarray:
    """What a fitted estimator says about rows."""
    methods = ("predict_proba", "score_samples", "predict")
    return np.asarray(next(getattr(model, one) for one in methods if hasattr(model, one))(X))


def refine(name: str, model: Any) -> None:
    """A few draws; of exemplars by Gibbs, which an interrupt ends early."""
    gibbs = name == "median_lvq"
    method, options = ("gibbs", {"tune": 4}) if gibbs else ("laplace", {})
    model.refine(method, draws=4, chains=1, **options)


def held(model: Any) -> dict[str, int]:
    """The very objects that an estimator holds."""
    return {name: id(value) for name, value in vars(model).items()}


def assert_whole(model: Any) -> None:
    """Hold that an estimator has all that a fit leaves, and nothing else."""
    assert set(vars(model)) == {*model.get_params(deep=False), "fitted_"}
    with TemporaryDirectory() as folder:
        model.save(path := Path(folder) / "whole.safetensors")
        bayesrbf.load(path)


class Interrupter:
    """Raises KeyboardInterrupt at a call of a function of the package."""

    TOOL, EVENT = 4, sys.monitoring.events.PY_START

    def __init__(self) -> None:
        self.made, self.at = 0, 0

    def __enter__(self) -> Self:
        sys.monitoring.use_tool_id(self.TOOL, "interrupter")
        sys.monitoring.register_callback(self.TOOL, self.EVENT, self._begins)
        sys.monitoring.set_events(self.TOOL, self.EVENT)
        sys.monitoring.restart_events()
        return self

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(self.TOOL, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.register_callback(self.TOOL, self.EVENT, None)
        sys.monitoring.free_tool_id(self.TOOL)

    def calls(self, work: Callable[[], object], at: int = 0) -> int:
        """Calls that the work makes, up to the one where it is interrupted."""
        self.made, self.at = 0, at
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            self.at = 0
        return self.made

    def _begins(self, code: CodeType, _: int) -> object:
        if not code.co_filename.startswith(PACKAGE):
            return sys.monitoring.DISABLE
        self.made += 1
        if self.made == self.at:
            raise KeyboardInterrupt
        return None


def interruptions(old: Any, work: Callable[[Any], object], points: int = POINTS) -> Iterator[Any]:
    """Copies of an estimator, each interrupted at another point of the work on it.

    Half of the points are the last calls, one by one: there a fit becomes that of the estimator.
    """
    work(copy(old))  # imports what it needs
    with Interrupter() as interrupter:
        last = interrupter.calls(lambda: work(copy(old)))
        anywhere, end = np.linspace(1, last, points - points // 2), last - np.arange(points // 2)
        for call in np.unique(np.append(anywhere, np.maximum(end, 1)).astype(int)):
            model = copy(old)
            interrupter.calls(partial(work, model), int(call))
            yield model


def interrupt(old: Any, X: Any, work: Callable[[Any], object], check: Callable[[Any], None]) -> int:
    """Interrupt the work on a fitted estimator; how often it was left as it was.

    Where it was not, it must be whole, and ``check`` must hold.
    """
    state, said, kept = held(old), answers(old, X), 0
    for model in interruptions(old, work):
        if held(model) == state:
            kept += 1
        else:
            assert_whole(model)
            check(model)
    np.testing.assert_array_equal(answers(old, X), said)  # nor was anything changed in place
    return kept


def interrupted_refits(name: str) -> int:
    """From classes a and b to b and z."""
    (A, a), (B, b) = earlier(name), later(name)
    new = clone(FAMILIES[name]).fit(B, b)
    said = answers(new, B)

    def check(model: Any) -> None:
        assert set(vars(model)) == set(vars(new))
        np.testing.assert_array_equal(answers(model, B), said)

    return interrupt(clone(new).fit(A, a), A, lambda model: model.fit(B, b), check)


def interrupted_refinements(name: str) -> int:
    """From draws to draws; an interrupt keeps what was drawn, as a whole new state."""
    A, a = earlier(name)
    old = clone(FAMILIES[name]).fit(A, a)
    refine(name, old)

    def check(model: Any) -> None:
        tree = model.posterior_["posterior"]
        assert (tree.sizes["chain"], tree.sizes["draw"]) == model.draws_.theta.shape[:2]
        assert np.isfinite(answers(model, A)).all()

    return interrupt(old, A, lambda model: refine(name, model), check)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    counts = {"fit": {name: interrupted_refits(name) for name in FAMILIES}}
    counts["refine"] = {name: interrupted_refinements(name) for name in FAMILIES}
    print(json.dumps(counts))
