"""What the README shows must run, and keep the promise that stands above it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

ROOT = Path(__file__).resolve().parent.parent


def test_the_lines_of_the_readme_give_probabilities_and_their_intervals() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    shown: dict[str, Any] = {"X": X, "y": y.astype(float).where(y.index % 5 != 0)}
    exec(compile(code, "README.md", "exec"), shown)
    interval = shown["interval"]
    np.testing.assert_allclose(shown["probability"].sum(axis=1), 1, atol=1e-12)
    assert bool((interval["lower"] <= interval["upper"]).all())
    assert float((interval["upper"] - interval["lower"]).max()) > 0.01
