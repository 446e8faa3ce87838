"""What the README shows must run, and keep the promise that stands above it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from bayesrbf.app.commands import app
from tests.app.report.tables import mixed_table

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
INDEX = (ROOT / "docs" / "index.md").read_text("utf-8")

# What a block of Python may stand on: X and y, in an environment with the package and no clone.
BEFORE = """
import bayesrbf
import pandas as pd

assert "site-packages" in bayesrbf.__file__
X = pd.read_csv("TABLE.csv")
y = X.pop("COLUMN")
"""


def texts(*patterns: str) -> dict[str, str]:
    """What tracked files hold."""
    words = ["git", "ls-files", "--", *patterns]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name: (ROOT / name).read_text("utf-8") for name in listed.splitlines()}


def shell_lines(*pages: str) -> list[str]:
    """Blocks of pages that install and use the package, each as lines of bash, and each once.

    Those of Python run without the folder of the clone. An environment is made anew. Blocks of
    other targets of make are left out.
    """
    blocks = [block for page in pages for block in re.findall(r"```(\w+)\n(.*?)```", page, re.S)]
    lines = []
    for language, text in dict.fromkeys(blocks):
        if language == "python":
            lines.append(f"python -P - <<'END'\n{BEFORE}{text}END")
        elif language == "console" and re.search(r"pip install|\$ bayesrbf", text):
            shown = re.findall(r"^\$ (.*)", text, re.M)
            lines.append("\n".join(shown).replace("-m venv", "-m venv --clear"))
    return lines


@pytest.mark.slow
def test_the_blocks_that_install_and_use_the_package_run(tmp_path: Path) -> None:
    """In a clean clone, in empty environments, on a small table."""
    subprocess.run(
        ["git", "checkout-index", "--all", f"--prefix={tmp_path}/"], cwd=ROOT, check=True
    )
    table = mixed_table(60).rename(columns={"outcome": "COLUMN"})
    table.to_csv(tmp_path / "TABLE.csv", index=False)
    table.drop(columns="COLUMN").to_csv(tmp_path / "NEW.csv", index=False)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    outside["PATH"] = f"{sys.base_prefix}/bin:{outside['PATH']}"
    lines = shell_lines(README, INDEX)
    assert len(lines) == 6
    done = subprocess.run(
        ["bash", "-euxo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=outside,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def test_every_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)", makefile, re.M)
    pages = "\n".join(texts("*.md", "Makefile").values())
    named = set(re.findall(r"(?:\$ |`|echo \")make ([a-z][a-z-]*)", pages))
    assert named <= set(phony.split())
    assert set(phony.split()) - named <= {"help", "clean"}
    for target in phony.split():
        assert re.search(rf"^[a-z -]*\b{target}\b[a-z -]*:", makefile, re.M), target


def test_pip_is_sent_to_no_index_for_the_package() -> None:
    """It is on none: another's package may come by its name one day."""
    told = texts("*.md", "*.py", "*.html", "*.js", "*.yml", "Makefile", ".ci")
    for name, text in told.items():
        assert not re.search("pip install (?!--no-index).*bayes[r]bf", text), name


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
