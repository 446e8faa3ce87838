"""The wheel holds what the repository holds, and importing the package costs nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import bayesrbf

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tracked_files() -> set[str]:
    """Names that the package's files should have in a wheel; the link itself is no file of it."""
    listing = subprocess.run(
        ["git", "ls-files", "bayesrbf", "models"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    mapped = (f"bayesrbf/{name}" if name.startswith("models/") else name for name in listing)
    return {name for name in mapped if name != "bayesrbf/models"}


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in a wheel built from the tracked files alone, as a clean clone would build it."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    subprocess.run(["git", "checkout-index", "--all", f"--prefix={source}/"], cwd=ROOT, check=True)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(built)], cwd=source, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("*.whl")
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_holds_the_tracked_package_files_and_no_others(wheel_files: set[str]) -> None:
    shipped = {name for name in wheel_files if ".dist-info/" not in name}
    assert shipped == tracked_files()


def test_wheel_installs_one_import_package(wheel_files: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_files}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"bayesrbf"}


def test_wheel_declares_its_types_and_its_licence(wheel_files: set[str]) -> None:
    assert "bayesrbf/py.typed" in wheel_files
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in wheel_files)


def test_models_are_one_folder_under_two_roads() -> None:
    assert (ROOT / "bayesrbf" / "models").readlink() == Path("../models")


def loaded_after(program: str, *suspects: str) -> set[str]:
    """Which of the suspected libraries are in memory after a program in a fresh interpreter."""
    asked = f"import sys\n{program}\nprint('loaded', *({set(suspects)!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_the_package_imports_no_library() -> None:
    heavy = ("numpy", "scipy", "sklearn", "pymc", "numba", "pandas", "xarray", "matplotlib")
    assert loaded_after("import bayesrbf; dir(bayesrbf)", *heavy) == set()
    assert loaded_after("import bayesrbf.base.rows", *heavy) == {"numpy"}


FIT = """
import numpy as np
from bayesrbf import HybridMixtureClassifier
X = np.random.default_rng(0).normal(size=(60, 2))
y = (X[:, 0] > 0).astype(int)
X[::3, 1] = np.nan
model = HybridMixtureClassifier(calibrate=True, random_state=0).fit(X, y)
model.predict_proba(X)
"""


@pytest.mark.slow
def test_a_point_fit_pays_for_no_graph_and_no_picture() -> None:
    never = ("pymc", "pytensor", "matplotlib", "arviz", "nutpie")
    assert loaded_after(FIT, *never) == set()
    assert "pymc" in loaded_after(FIT + "model.declare()", *never)


@pytest.mark.slow
def test_loading_a_file_pays_for_no_labelled_array(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save = f"model.refine('laplace', draws=10); model.save({str(file)!r})"
    loaded_after(FIT + save)
    ask = f"import bayesrbf; bayesrbf.load({str(file)!r}).predict_proba([[0.0, 1.0]])"
    assert loaded_after(ask, "xarray", "dask", "pymc", "matplotlib") == set()


@pytest.mark.parametrize("name", bayesrbf.__all__)
def test_public_names_are_where_the_package_says(name: str) -> None:
    value = getattr(bayesrbf, name)
    assert value.__name__ == name
    assert getattr(importlib.import_module(value.__module__), name) is value


def test_public_names_are_listed() -> None:
    assert set(bayesrbf.__all__) <= set(dir(bayesrbf))


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'RBFNetwork'"):
        _ = bayesrbf.RBFNetwork  # type: ignore[attr-defined]


def test_wheel_version_is_the_packages(wheel_files: set[str]) -> None:
    assert f"bayesrbf-{bayesrbf.__version__}.dist-info/METADATA" in wheel_files


def test_command_line_is_installed_under_the_packages_name() -> None:
    assert PYPROJECT["project"]["scripts"] == {"bayesrbf": "bayesrbf.app.commands:main"}
