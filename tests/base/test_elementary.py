"""Exponential and logarithm of the kernels, and how kernels are compiled."""

from __future__ import annotations

import os
import pickle
import sys
from importlib import import_module, reload
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit
from numba.core import caching

from bayesrbf.base import compiled as compilation
from bayesrbf.base.compiled import NEGLIGIBLE, entry_point, exponential, logarithm


def test_kernels_compile_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(function: object) -> None:
        raise RuntimeError(f"cannot cache {function}")

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", no_room)
    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(cache=True)(twice)
    assert entry_point(twice)(2.0) == 4.0


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, where neither the package's folder nor the home is open."""
    kinds = caching.CompileResultCacheImpl._locator_classes
    only = [kind for kind in kinds if "UserProvided" in kind.__name__]
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", only)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_machine_code_is_kept_among_temporary_files_of_this_user_alone(temporary: Path) -> None:
    assert entry_point(twice)(2.0) == 4.0
    (folder,) = temporary.iterdir()
    assert list(folder.rglob("*.nbc"))
    assert folder.stat().st_mode & 0o077 == 0
    assert numba.config.CACHE_DIR == ""


@pytest.mark.parametrize("kind", ["of all", "a link", "a file"])
def test_no_machine_code_is_kept_where_others_could_write(temporary: Path, kind: str) -> None:
    folder, elsewhere = temporary / f"bayesrbf-{os.getuid()}", temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "of all":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a link":
        folder.symlink_to(elsewhere)
    else:
        folder.touch()
    assert entry_point(twice)(2.0) == 4.0
    assert not list(temporary.rglob("*.nb?"))


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
