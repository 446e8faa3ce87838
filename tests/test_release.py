"""What is published: one version everywhere, archives that install, types that checkers see.

The archives are built from the tracked files, as a clean clone would build them, and installed
with all their requirements into an environment that has never seen this folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

import bayesrbf
from tests.app.report.tables import mixed_table

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""The variables of this process but those that would lead an interpreter to this folder."""

SCRIPT = """
import numpy as np
from numpy.typing import NDArray

import bayesrbf
from bayesrbf import MixtureDensity, StackedClassifier


def probabilities(X: NDArray[np.float64], y: NDArray[np.int_]) -> NDArray[np.float64]:
    model = StackedClassifier(random_state=0).fit(X, y)
    answer: NDArray[np.float64] = model.predict_proba(X)
    return answer


def filled(X: NDArray[np.float64]) -> object:
    return MixtureDensity(2).fit(X).impute(X)


version: str = bayesrbf.__version__
reveal_type(StackedClassifier().fit([[0.0]], [0]))
"""
WRONG = """
from bayesrbf import MixtureDensity, StackedClassifer

MixtureDensity(covariance_typo="full")
"""


def shell(*words: object, cwd: Path) -> str:
    """What a command prints, run outside this folder; its own words where it fails."""
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=OUTSIDE, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from what the sdist unpacks to."""
    folder = tmp_path_factory.mktemp("archives")
    source, built, unpacked = (folder / name for name in ("source", "built", "unpacked"))
    shell("git", "checkout-index", "--all", f"--prefix={source}/", cwd=ROOT)
    build = (
        "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
    )
    shell(sys.executable, "-c", build, "build_sdist", built, cwd=source)
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (inside,) = unpacked.iterdir()
    shell(sys.executable, "-c", build, "build_wheel", built, cwd=inside)
    (wheel,) = built.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module")
def fresh(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a new environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("fresh")
    shell(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    commands = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    wheel = f"bayesrbf[report] @ {archives[1].as_uri()}"
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    shell(commands / "python", *pip, wheel, cwd=folder)
    return commands


@pytest.mark.slow
def test_archives_hold_the_package_and_no_tests(archives: tuple[Path, Path]) -> None:
    sdist, wheel = archives
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"} <= names
    assert not any(name.startswith("tests") for name in names)
    with ZipFile(wheel) as packed:
        shipped = {name: packed.read(name) for name in packed.namelist()}
    modules = {name: text for name, text in shipped.items() if name.endswith(".py")}
    assert len(modules) > 150
    for name, text in modules.items():
        assert sha256(text).digest() == sha256((ROOT / name).read_bytes()).digest(), name


@pytest.mark.slow
def test_the_wheel_works_in_a_fresh_environment(fresh: Path, tmp_path: Path) -> None:
    where = shell(fresh / "python", "-c", "import bayesrbf; print(bayesrbf.__file__)", cwd=tmp_path)
    assert not Path(where.strip()).is_relative_to(ROOT)
    assert shell(fresh / "bayesrbf", "--version", cwd=tmp_path).strip() == bayesrbf.__version__
    mixed_table(40).to_csv(tmp_path / "t.csv", index=False)
    words = ("t.csv", "--target", "outcome", "--out", "model", "--model", "mixture")
    shell(fresh / "bayesrbf", "fit", *words, "--inference", "map", cwd=tmp_path)
    said = shell(fresh / "bayesrbf", "predict", "model", "t.csv", cwd=tmp_path)
    assert said.startswith("t.csv: 40 rows")


@pytest.mark.slow
def test_a_users_script_is_checked_against_the_installed_types(fresh: Path, tmp_path: Path) -> None:
    def checked(name: str, text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / name).write_text(text)
        words = [sys.executable, "-m", "mypy", "--strict", "--python-executable", fresh / "python"]
        return subprocess.run(
            [*map(str, words), name], cwd=tmp_path, env=OUTSIDE, capture_output=True, text=True
        )

    good = checked("good.py", SCRIPT)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "bayesrbf.families.stack.classifier.StackedClassifier" in good.stdout
    wrong = checked("wrong.py", WRONG)
    assert "StackedClassifer" in wrong.stdout
    assert "covariance_typo" in wrong.stdout


def test_one_version_stands_everywhere() -> None:
    version = bayesrbf.__version__
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    headings = re.findall(
        r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE
    )
    assert headings[0] == "Unreleased"
    named = re.fullmatch(r"(\S+) \((\d{4}-\d{2}-\d{2})\)", headings[1])
    assert named is not None
    assert named[1] == version == str(cited["version"])
    assert date.fromisoformat(named[2]) == cited["date-released"]
    assert cited["license"] == PYPROJECT["project"]["license"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_what_they_run_and_may_do_little(path: Path) -> None:
    text = path.read_text("utf-8")
    workflow: dict[str, Any] = yaml.safe_load(text)
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, version in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", version), version
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        rights = job["permissions"]
        written = {name for name, right in rights.items() if right == "write"}
        assert written <= {"id-token", "attestations"}
        assert "secrets." not in text


def test_only_jobs_that_sign_may_ask_for_a_token() -> None:
    workflows = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in WORKFLOWS}
    assert set(workflows) == {"ci", "publish"}
    jobs = workflows["publish"]["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert "id-token" not in jobs["build"]["permissions"]
    assert all("id-token" not in job["permissions"] for job in workflows["ci"]["jobs"].values())


def test_the_oldest_python_that_is_promised_is_tested() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    tested = matrix["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert PYPROJECT["project"]["requires-python"] == f">={tested[0]}"
