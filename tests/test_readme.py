"""What the README shows must run, and keep the promise that stands above it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bayesrbf.cli import app

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.slow
def test_the_lines_of_the_readme_give_probabilities_and_their_intervals() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X[50::5].reset_index(drop=True), y[50::5].reset_index(drop=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    shown: dict[str, Any] = {"X": X, "y": y.astype(float).where(y.index % 5 != 0)}
    exec(compile(code, "README.md", "exec"), shown)
    interval = shown["interval"]
    np.testing.assert_allclose(shown["probability"].sum(axis=1), 1, atol=1e-12)
    assert bool((interval["lower"] <= interval["upper"]).all())
    assert float((interval["upper"] - interval["lower"]).max()) > 0.01


@pytest.mark.parametrize("name", sorted(set(re.findall(r"[`(](docs/\w+\.\w+)[`)]", README))))
def test_what_the_readme_points_to_is_there(name: str) -> None:
    assert (ROOT / name).is_file()


def test_the_pictures_are_small() -> None:
    pictures = re.findall(r"\((docs/\S+\.png)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size <= 150_000


def test_every_command_of_the_readme_exists_and_every_command_is_named() -> None:
    shown = set(re.findall(r"(?:\$ |`)bayesrbf (\w+)", README))
    commands = {name for name in app if not name.startswith("-")}
    assert shown <= commands
    assert {name for name in commands if f"`{name}`" not in README} <= shown


def test_badges_claim_nothing() -> None:
    """None is shown before there is a service behind it that says the truth."""
    assert "shields.io" not in README
    assert "badge" not in README
