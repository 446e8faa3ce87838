"""Without PyTorch the package works, and bayesrbf.torch says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


HIDE = """
import sys
class Hidden:
    def find_spec(name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)
sys.meta_path.insert(0, Hidden)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    """Run in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)


def run_without_torch(program: str) -> subprocess.CompletedProcess[str]:
    """Run where PyTorch cannot be imported, installed or not."""
    return run(HIDE + program)


def test_package_needs_no_torch() -> None:
    program = "import bayesrbf; [getattr(bayesrbf, name) for name in bayesrbf.__all__]"
    done = run_without_torch(program)
    assert done.returncode == 0, done.stderr


def test_missing_torch_names_the_line_that_installs_it() -> None:
    for module in ("bayesrbf.torch", "bayesrbf.torch.sdgm_head"):
        done = run_without_torch(f"import {module}")
        last = done.stderr.splitlines()[-1]
        assert last.startswith("ModuleNotFoundError: bayesrbf.torch needs PyTorch"), done.stderr
        assert "pip install torch" in last


@pytest.mark.slow
def test_package_does_not_load_torch_by_itself() -> None:
    done = run("import sys; from bayesrbf import SDGMClassifier; assert 'torch' not in sys.modules")
    assert done.returncode == 0, done.stderr
