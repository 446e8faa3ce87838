"""Exact methods calibrated by simulation, to be run where no call is checked: ``python -m`` this.

Prints one line of JSON: what failed, by the name of the simulation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.mixture.gibbs import MixtureSweep, assigned, posterior
from tests.inference.sbc import (
    Replication,
    Sampler,
    Setting,
    calibrate,
    failures,
    reversible,
)

DRAWS, REPLICATIONS = 15, 200
SMALL = Setting(MixtureSpecification(2, (), (0, 0, 1)), n_obs=10)
LONE = Setting(MixtureSpecification(2, (3,), (0, 1)), n_obs=8, missing=0.0, hidden=0.0)
"""Complete rows, one component a class: the posterior is known."""


def around(replication: Replication, kernel: MixtureSweep, rng: np.random.Generator) -> np.ndarray:
    """Sweeps on both sides of the truth, by a kernel that has learnt from four others."""
    theta, seen = np.zeros_like(replication.truth), []
    for _ in range(4):
        theta = kernel.sweep(theta, rng)
        seen.append(theta)
    learnt = kernel.adapted(np.array(seen))
    return reversible(learnt.sweep, replication.truth, DRAWS, rng)


def gibbs(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return around(replication, replication.log_posterior().markov_kernel(), rng)


def exact(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    """Independent draws of a posterior that is known: one component a class, nothing missing."""
    return conjugate(replication, DRAWS, rng)


def conjugate(replication: Replication, number: int, rng: np.random.Generator) -> np.ndarray:
    setting, rows = replication.setting, replication.rows
    statistics = assigned(rows.real, rows.codes, rows.labels, setting.specification)
    hyper, log_posterior = setting.hyperparameters, replication.log_posterior()
    density = posterior(statistics, hyper.standardised(), setting.specification)
    points = [density.draw(rng).in_units(hyper.units) for _ in range(number)]
    return np.stack([log_posterior.pack(point) for point in points])


@dataclass(frozen=True)
class Simulation:
    """Tables of a setting, a sampler, and what is done to its draws."""

    setting: Setting
    sampler: Sampler
    change: Callable[[np.ndarray], np.ndarray] = lambda draws: draws

    def ranks(self, replications: int, seed: int = 0) -> dict[str, np.ndarray]:
        return calibrate(self.setting, self.sampler, replications, seed, self.change)


TIED = MixtureSpecification(2, (), (0, 0, 1), "tied")
ONE = MixtureSpecification(2, (), (0, 0, 1), shared_covariance=True)
DIAGONAL = MixtureSpecification(2, (3,), (0, 0, 1), "diag")
SPHERICAL = MixtureSpecification(2, (2,), (0, 0), "spherical")
SOUND = {
    "full": Simulation(SMALL, gibbs),
    "tied": Simulation(replace(SMALL, specification=TIED), gibbs),
    "tied across classes": Simulation(replace(SMALL, specification=ONE), gibbs),
    "diagonal with categories": Simulation(replace(SMALL, specification=DIAGONAL), gibbs),
    "spherical density": Simulation(replace(SMALL, specification=SPHERICAL, n_obs=8), gibbs),
    "exact": Simulation(LONE, exact),
}


def main() -> None:
    print(json.dumps({name: failures(one.ranks(REPLICATIONS)) for name, one in SOUND.items()}))


if __name__ == "__main__":
    main()
