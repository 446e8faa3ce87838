"""Simulation-based calibration of exact methods, and of the test itself by planted defects."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from bayesrbf.base.log_posterior import to_unconstrained
from bayesrbf.base.rows import Observations
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.inference.class_calibration import BOUND, outcomes, reliability
from tests.inference.defects import DEFECTS
from tests.inference.drawing_graphs import SIMULATORS
from tests.inference.drawn_tables import EXACT, SAMPLERS, calibrate
from tests.inference.sbc import failures, from_prior
from tests.inference.simulations import SMALL, SOUND
from tests.programs import program

pytestmark = pytest.mark.slow


@cache
def outcome(module: str) -> dict[str, list[Any]]:
    """What a module prints in a process where no record checks its shapes."""
    found: dict[str, list[Any]] = program(f"tests.inference.{module}")
    return found


@pytest.mark.parametrize("name", SOUND)
def test_gibbs_is_calibrated(name):
    assert not outcome("simulations")[name]


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_caught_where_the_unbroken_code_passes(name):
    sound, broken = outcome("defects")[name]
    assert not sound
    assert broken


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("family", "method"), EXACT)
def test_exact_methods_of_other_families_are_calibrated(family, method):
    """On tables that the declared graph draws."""
    assert not failures(calibrate(SIMULATORS[family](), SAMPLERS[method], 50, 0))


@pytest.mark.usefixtures("unchecked")
def test_classes_occur_as_often_as_is_said():
    said, happened = map(np.array, zip(*outcomes(1500, 0), strict=True))
    assert reliability(said, happened).worst < BOUND < reliability(said**1.4, happened).worst


def test_draws_of_the_prior_have_its_density():
    """The mean gradient of a log density over its own draws is zero (with Jacobian)."""
    specification, hyper = SMALL.specification, SMALL.hyperparameters
    nothing = Observations(np.zeros((0, 2)), np.zeros((0, 0), int), np.zeros(0, int), np.zeros(0))
    prior = MixtureLogPosterior(nothing, specification, hyper)
    rng = np.random.default_rng(0)
    draws = [from_prior(specification, hyper, rng) for _ in range(500)]
    thetas = [to_unconstrained(prior.variables, values) for values in draws]
    scores = np.array([prior.value_and_gradient(theta)[1] for theta in thetas])
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
