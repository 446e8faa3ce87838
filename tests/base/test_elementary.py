"""Exponential and logarithm of the kernels, and how kernels are compiled."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module, reload
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from bayesrbf.base import compiled as compilation
from bayesrbf.base.compiled import NEGLIGIBLE, entry_point, exponential, logarithm


def test_kernels_compile_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(function: object) -> None:
        raise RuntimeError(f"cannot cache {function}")

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", no_room)
    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(cache=True)(twice)
    assert entry_point(twice)(2.0) == 4.0


def test_machine_code_of_other_sources_is_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index on disk names types by their module, which a new version may have renamed."""
    (tmp_path / "halves.py").write_text("def half(x):\n    return x / 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert entry_point(import_module("halves").half)(3.0) == 1.5
    (index,) = (tmp_path / "__pycache__").glob("*.nbi")
    version = pickle.loads(index.read_bytes())
    index.write_bytes(pickle.dumps(version) + b"cmodule_that_is_gone\nType\n.")
    monkeypatch.setattr(compilation, "SOURCES", "of another version")
    assert entry_point(reload(sys.modules["halves"]).half)(3.0) == 1.5


def twice(x: float) -> float:
    return 2 * x


def units_off(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest error in units in the last place."""
    return float((np.abs(actual - expected) / np.spacing(np.abs(expected))).max())


def test_exponential_is_good_to_two_units() -> None:
    rng = np.random.default_rng(4)
    lowest = 0.999 * NEGLIGIBLE
    x = np.concatenate(
        [-np.logspace(-17, np.log10(-lowest), 2_000), rng.uniform(lowest, 0, 20_000)]
    )
    assert units_off(np.array([exponential(v) for v in x]), np.exp(x)) <= 2
    assert exponential(0.0) == 1.0
    for nothing in (NEGLIGIBLE, -1e4, -1e300, -np.inf):
        assert exponential(nothing) == 0.0


def test_logarithm_is_good_to_four_units() -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(0.5, 2, 10_000), np.exp(rng.uniform(-700, 700, 10_000))])
    assert units_off(np.array([logarithm(v) for v in x]), np.log(x)) <= 4
    assert logarithm(1.0) == 0.0
