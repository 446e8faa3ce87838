"""What a posterior may load: never a graph compiler, and plots only where nutpie brings them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

METHODS = {"variational": "advi"}

SCRIPT = """
import sys
import numpy as np
from bayesrbf.conversion import to_datatree
from bayesrbf.inference.diagnose import findings
from bayesrbf.inference.{module} import {method}
from bayesrbf.inference.relabel import relabel
from tests.inference.targets import Mixture

target = Mixture()
raw = {method}(target, target.start(), draws=20, chains=2, random_state=0)
draws = relabel(target, raw, target.start())
findings(draws, raw=raw)
to_datatree(target, draws)
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
"""


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("laplace", {"pymc", "pytensor", "arviz", "matplotlib", "nutpie"}),
        ("variational", {"pymc", "pytensor", "arviz", "matplotlib", "nutpie"}),
        ("nuts", {"pymc", "pytensor"}),
    ],
)
def test_no_compiler_is_loaded(module, forbidden):
    if module == "nuts":
        pytest.importorskip("nutpie", reason="nutpie is an extra")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(method=METHODS.get(module, module), module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split())
    assert "numpy" in loaded
    assert not loaded & forbidden
