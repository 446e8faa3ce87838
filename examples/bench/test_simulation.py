"""Simulation-based calibration of NUTS, and how far the approximations are from calibrated.

Some minutes on one core. ``BAYESRBF_REPLICATIONS`` sets the number of tables (400).
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.laplace import laplace
from bayesrbf.inference.nuts import nuts
from bayesrbf.inference.variational import advi
from bayesrbf.mixture.em import fit_mixture
from bench.figures import show
from tests.inference.sbc import Replication, Setting, calibrate, failures

REPLICATIONS = int(os.environ.get("BAYESRBF_REPLICATIONS", "400"))
SEED, DRAWS = 0, 15
MIXED = Setting(MixtureSpecification(2, (3,), (0, 1)), n_obs=12)
"""Cells and labels are hidden, and no component has a twin to change names with."""

Method = Callable[..., Draws]


def sampled(method: Method, **options: object) -> Callable[..., np.ndarray]:
    """Draws of a method from the MAP on, so far apart that they tell of each other little."""

    def sampler(replication: Replication, rng: np.random.Generator) -> np.ndarray:
        target, setting = replication.log_posterior(), replication.setting
        model = (setting.specification, setting.hyperparameters.standardised())
        fit = fit_mixture(replication.rows, *model, rng=rng, n_init=1)
        start = target.pack(fit.parameters.in_units(setting.hyperparameters.units))
        thetas = method(target, start, chains=1, random_state=rng, **options).theta[0]
        return thetas[np.linspace(0, len(thetas) - 1, DRAWS).astype(int)]

    return sampler


SOUND = {"nuts": sampled(nuts, draws=150, tune=150)}
APPROXIMATE = {
    "laplace": sampled(laplace, draws=DRAWS),
    "laplace, resampled": sampled(laplace, draws=40 * DRAWS, resample=True),
    "advi": sampled(advi, draws=DRAWS),
    "advi, mean field": sampled(advi, draws=DRAWS, covariance="mean_field"),
}


@pytest.fixture(scope="module")
def ranks() -> dict[str, dict[str, np.ndarray]]:
    methods = SOUND | APPROXIMATE
    return {name: calibrate(MIXED, methods[name], REPLICATIONS, SEED) for name in methods}


def test_nuts_is_calibrated(ranks: dict[str, dict[str, np.ndarray]]) -> None:
    assert not failures(ranks["nuts"])


def test_how_far_approximations_are(ranks: dict[str, dict[str, np.ndarray]]) -> None:
    """What a calibrated method has: mean 0 and standard deviation 1, and no failure."""
    rows = {}
    for name, found in ranks.items():
        z = ndtri(found["log odds at x"])
        rows[name] = {
            "quantities": len(found),
            "not calibrated": len({line.split(":")[0] for line in failures(found)}),
            "log odds, mean of z": z.mean(),
            "log odds, sd of z": z.std(),
            "largest mean of z": max(abs(ndtri(pit).mean()) for pit in found.values()),
            "largest sd of z": max(ndtri(pit).std() for pit in found.values()),
        }
    table = pd.DataFrame(rows).T
    counts = table.columns[:2]
    show(
        "simulation",
        table.astype(dict.fromkeys(counts, int)),
        digits=2,
        counts={"tables": (REPLICATIONS, 400)},
    )
    spread = {name: table.loc[name, "largest sd of z"] for name in table.index}
    assert spread["advi, mean field"] > spread["nuts"], "independent coordinates are too narrow"
