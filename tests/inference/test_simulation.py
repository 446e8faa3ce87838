"""Simulation-based calibration of Gibbs sampling, and of the test itself by planted defects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.mixture_prior import log_prior
from bayesrbf.numerics.mixture_structure import free_variables
from bayesrbf.numerics.mixture_variables import parameters_of
from tests.inference.sbc import failures, from_prior
from tests.inference.simulations import DEFECTS, SMALL, SOUND

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """Outcome of all simulations, in a process where no record checks its shapes."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.inference.simulations"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", [*SOUND, "exact"])
def test_gibbs_is_calibrated(found, name):
    assert not found[name]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_caught(found, name):
    assert found[name]


def test_draws_of_the_prior_have_its_density():
    """The mean gradient of a log density over its own draws is zero (with Jacobian)."""
    specification, hyper = SMALL.specification, SMALL.hyperparameters
    variables = free_variables(specification)
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(300):
        theta = coordinates.to_unconstrained(variables, from_prior(specification, hyper, rng))

        def density(point: np.ndarray) -> float:
            values = coordinates.to_constrained(variables, point)
            parameters = parameters_of(values, hyper, specification)
            jacobian = coordinates.log_jacobian(variables, values)[0]
            return log_prior(values, parameters, hyper, specification) + jacobian

        steps = 1e-5 * np.eye(theta.size)
        scores.append([(density(theta + s) - density(theta - s)) / 2e-5 for s in steps])
    scores = np.array(scores)
    errors = scores.mean(axis=0) / (scores.std(axis=0) / np.sqrt(len(scores)))
    assert np.abs(errors).max() < 4.9


@pytest.mark.parametrize("defect", ["shift", "spread", "half missing"])
def test_ranks_that_are_not_uniform_are_noticed(defect):
    uniform = (np.random.default_rng(0).permutation(200) + 0.5) / 200
    assert not failures({"v": uniform})
    changed = {
        "shift": uniform**1.6,
        "spread": 0.5 + 0.7 * (uniform - 0.5),
        "half missing": 0.5 * uniform,
    }[defect]
    assert failures({"v": changed})
