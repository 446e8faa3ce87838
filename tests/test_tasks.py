"""Tasks that processes share: the answers of all, in order, with what was said on the way."""

from __future__ import annotations

import os
import signal
import time
import warnings
from typing import Any

import joblib
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import is_regressor

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.base.tasks import run_tasks, showing
from tests.cases import first_quick
from tests.degenerate import plain


def squared(number: int) -> tuple[int, int]:
    """The first task takes longest."""
    time.sleep(0.2 if number == 0 else 0.0)
    warnings.warn("odd" if number % 2 else "even", UserWarning, stacklevel=1)
    return number**2, os.getpid()


def hears_ctrl_c(_: int) -> bool:
    """Whether Ctrl-C reaches this process."""
    return signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_only_the_one_that_waits_hears_ctrl_c() -> None:
    """The others never did: what is ignored at their start stays so while they import."""
    get_reusable_executor().shutdown()  # those of other tests
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background: ignored
    try:
        assert not any(run_tasks(hears_ctrl_c, range(2), "Signals", n_jobs=2))
        assert hears_ctrl_c(0)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_answers_come_in_order_and_warnings_once(n_jobs: int) -> None:
    with pytest.warns(UserWarning, match=r"odd|even") as caught:
        answers = run_tasks(squared, range(6), "Squares", n_jobs)
    assert [number for number, _ in answers] == [0, 1, 4, 9, 16, 25]
    assert ({pid for _, pid in answers} == {os.getpid()}) == (n_jobs == 1)
    assert [str(warning.message) for warning in caught] == ["even", "odd"]


def test_who_shares_the_tasks_is_asked_of_joblib() -> None:
    with joblib.parallel_config("loky", n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, second = (run_tasks(squared, range(2), "Squares") for _ in range(2))
    assert os.getpid() not in {pid for _, pid in first + second}
    assert {pid for _, pid in second} <= {pid for _, pid in first} or len(dict(first)) == 2


def test_progress_is_that_of_answers() -> None:
    done: list[int] = []
    seen: list[tuple[str, int]] = []

    def track(sequence, description):
        for step in sequence:
            yield step
            seen.append((description, len(done)))

    with showing(track):
        run_tasks(done.append, [1, 2, 3], "Steps")
    assert seen == [("Steps", 1), ("Steps", 2), ("Steps", 3)]


def test_an_error_of_a_task_ends_all() -> None:
    def fail(number: int) -> None:
        raise ValueError(f"task {number}")

    with pytest.raises(ValueError, match=r"task [01]"):
        run_tasks(fail, [0, 1], "Failures", 2)


@pytest.mark.parametrize(
    "model",
    first_quick(
        [
            MixtureDensity("cv", random_state=0),
            StackedClassifier(["mixture", "forest"], random_state=0),
            HybridMixtureClassifier(random_state=0),
            SDGMClassifier(1, calibrate=True, n_init=1, random_state=0),
            KernelNetworkClassifier(random_state=0),
            MedianLVQClassifier(random_state=0),
            RBFNetworkClassifier(2, random_state=0),
            RBFNetworkRegressor(2, random_state=0),
        ]
    ),
    ids=lambda model: type(model).__name__,
)
def test_a_verbose_estimator_shows_how_far_it_is(
    model: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    X, y = plain(0)
    y = X[:, 0] if is_regressor(model) else y
    assert model.fit(X, y) is model
    assert not capsys.readouterr().out
    model.set_params(verbose=True).fit(X, y)
    assert "Holding rows out" in capsys.readouterr().out


def test_a_verbose_estimator_shows_its_chains(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    model = MixtureDensity(random_state=0).fit(*plain(0))
    model.refine("gibbs", chains=1, draws=4)
    assert not capsys.readouterr().out
    model.set_params(verbose=True).refine("gibbs", chains=1, draws=4)
    assert "gibbs" in capsys.readouterr().out
