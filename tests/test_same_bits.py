"""The same seed gives the same bits on any number of threads and processes, in the first, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.same_bits import KERNELS, QUICK, THREADS, furthest, under


@pytest.mark.slow
def test_threads_processes_and_hash_seeds_change_no_bit(tmp_path: Path) -> None:
    one, *others = (
        under(environment, tmp_path / f"{i}.npz", QUICK)
        for i, environment in enumerate(THREADS.values())
    )
    assert len(one) >= len(QUICK)
    for other in others:
        assert {name: d for name, d in furthest(one, other).items() if d} == {}


@pytest.mark.slow
def test_kernels_that_are_compiled_and_that_are_loaded_give_the_same_bits(tmp_path: Path) -> None:
    environment = THREADS["1 thread"] | {KERNELS: str(tmp_path / "kernels")}
    chosen = (*QUICK, "mixture, laplace", "full mixture, nuts")
    compiled = under(environment, tmp_path / "compiled.npz", chosen)
    assert {"mixture, laplace: intervals", "full mixture, nuts: draws"} < set(compiled)
    for order in (chosen, chosen[::-1]):  # nor does it matter which are loaded first
        loaded = under(environment, tmp_path / "loaded.npz", order)
        assert {name: d for name, d in furthest(compiled, loaded).items() if d} == {}


def test_a_last_bit_is_seen() -> None:
    x = np.array([1.0, 2.0])
    assert furthest({"x": x}, {"x": x.copy()}) == {"x": 0.0}
    assert furthest({"x": x}, {"x": np.nextafter(x, 3)})["x"] > 0
