"""What a posterior may load: never a graph compiler, and plots only where nutpie brings them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys, warnings
import numpy as np
from bayesrbf import HybridMixtureClassifier

rng = np.random.default_rng(0)
y = np.arange(30) % 2
X = rng.normal(size=(30, 2)) + 2 * y[:, None]
X[::4, 1] = np.nan
options = {{"nuts": {{"tune": 20}}, "gibbs": {{"tune": 8}}}}.get("{method}", {{}})
model = HybridMixtureClassifier(objective="likelihood", random_state=0).fit(X, y)
model.refine("{method}", draws=20, chains=2, **options)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # so few draws are bad, as diagnose says
    model.diagnose()
model.predict_posterior(X), model.uncertainty(X), model.posterior_
print(*sorted({{name.split(".")[0] for name in sys.modules}}))
"""


FORBIDDEN = {
    "laplace": {"pymc", "pytensor", "arviz", "matplotlib", "nutpie"},
    "advi": {"pymc", "pytensor", "arviz", "matplotlib", "nutpie"},
    "gibbs": {"pymc", "pytensor", "arviz", "matplotlib", "nutpie"},
    "nuts": {"pymc", "pytensor"},
}


@pytest.mark.slow
@pytest.mark.parametrize("method", FORBIDDEN)
def test_no_compiler_is_loaded(method):
    """From the fit to the diagnosis, as a user walks it."""
    if method == "nuts":
        pytest.importorskip("nutpie", reason="nutpie is an extra")
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(method=method)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(run.stdout.split())
    assert "numpy" in loaded
    assert not loaded & FORBIDDEN[method]
