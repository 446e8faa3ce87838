"""Row weights of any size teach what they are relative to each other; an interrupt stays one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bayesrbf
from bayesrbf.mixture import fitted as fitted_mixture
from tests.cases import first_quick
from tests.mutations import table

MODELS = {
    "mixture": lambda: bayesrbf.HybridMixtureClassifier(1, calibrate=False, random_state=0),
    "kernel network": lambda: bayesrbf.KernelNetworkClassifier(calibrate=False, random_state=0),
    "exemplars": lambda: bayesrbf.MedianLVQClassifier(metric="gower", random_state=0),
    "sdgm": lambda: bayesrbf.SDGMClassifier(n_init=1, calibrate=False, random_state=0),
}


@pytest.mark.parametrize("size", [1e160, 1e-200, 1e300])
@pytest.mark.parametrize("name", first_quick(MODELS, 3))
def test_equal_weights_of_any_size_are_weights_of_one(name: str, size: float) -> None:
    X, y = table("mixed")
    plain = MODELS[name]().fit(X, y)
    weighed = MODELS[name]().fit(X, y, sample_weight=np.full(len(y), size))
    np.testing.assert_array_equal(weighed.predict_proba(X), plain.predict_proba(X))


def test_weights_within_bounds_stay_as_they_are() -> None:
    X, y = table("mixed")
    weights = np.random.default_rng(0).uniform(0.1, 1000, len(y))
    model = bayesrbf.MixtureDensity(1, random_state=0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.rows_.weights, weights)


def test_an_interrupt_that_comes_as_another_error_is_an_interrupt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compilers of kernels wrap whatever ends them."""
    X, y = table("mixed")
    model = bayesrbf.HybridMixtureClassifier(1, calibrate=False, random_state=0).fit(X, y)
    model.fitted_ = replace(model.fitted_)  # a log posterior that is not prepared yet
    before, said = dict(vars(model)), model.predict_proba(X)

    def interrupted(*_: Any, **__: Any) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("compiling failed") from error

    with monkeypatch.context() as patch:
        patch.setattr(fitted_mixture, "MixtureLogPosterior", interrupted)
        patch.setattr(fitted_mixture, "HybridLogPosterior", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.refine("laplace", draws=4)
    assert {name: id(value) for name, value in vars(model).items()} == {
        name: id(value) for name, value in before.items()
    }
    np.testing.assert_array_equal(model.predict_proba(X), said)
