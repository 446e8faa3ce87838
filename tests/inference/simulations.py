"""What is calibrated by simulation, to be run where no call is checked: ``python -m`` this.

Prints one line of JSON: what failed, by the name of the simulation.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np

from bayesrbf.numerics.gibbs.conjugate import assigned, posterior
from bayesrbf.numerics.gibbs.sweep import MixtureSweep
from bayesrbf.records.specification import MixtureSpecification
from tests.inference.sbc import Replication, Setting, calibrate, changed, failures, reversible

DRAWS, REPLICATIONS = 15, 200
SMALL = Setting(MixtureSpecification(2, (), (0, 0, 1)), n_obs=10)
FEW = replace(SMALL, n_obs=5, missing=0.1, hidden=0.1)
LONE = Setting(MixtureSpecification(2, (3,), (0, 1)), n_obs=8, missing=0.0, hidden=0.0)
SOUND = {
    "full": SMALL,
    "tied": Setting(MixtureSpecification(2, (), (0, 0, 1), "tied"), n_obs=10),
    "tied across classes": Setting(MixtureSpecification(2, (), (0, 0, 1), tied=True), n_obs=10),
    "diagonal with categories": Setting(MixtureSpecification(2, (3,), (0, 0, 1), "diag"), 10),
    "spherical density": Setting(MixtureSpecification(2, (2,), (0, 0), "spherical"), n_obs=8),
}


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
    setting, rows = replication.setting, replication.rows
    statistics = assigned(rows.real, rows.codes, rows.labels, setting.specification)
    hyper, log_posterior = setting.hyperparameters, replication.log_posterior()
    density = posterior(statistics, hyper.standardised(), setting.specification)
    points = [density.draw(rng).in_units(hyper.units) for _ in range(DRAWS)]
    return np.stack([log_posterior.pack(point) for point in points])


def a_row_dropped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    rows = replication.rows
    return gibbs(replace(replication, rows=rows.take(np.arange(1, rows.n_obs))), rng)


def missing_as_zero(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return gibbs(changed(replication, real=np.nan_to_num(replication.rows.real)), rng)


def hidden_labels_as_first_class(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return gibbs(changed(replication, labels=np.maximum(replication.rows.labels, 0)), rng)


def prior_twice_as_wide(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    sound = replication.setting.hyperparameters
    wide = replace(sound, scale=2 * sound.scale)
    rows = replace(replication.rows, real=replication.rows.real / 2)  # in its standard units
    return around(replication, MixtureSweep(rows, replication.setting.specification, wide), rng)


def wider(draws: np.ndarray) -> np.ndarray:
    """Standard deviations 1.2 times as large."""
    return draws.mean() + 1.2 * (draws - draws.mean())


DEFECTS = {
    "a row dropped": partial(calibrate, FEW, a_row_dropped, REPLICATIONS),
    "a missing cell read as 0": partial(calibrate, SMALL, missing_as_zero, REPLICATIONS),
    "hidden labels read": partial(calibrate, SMALL, hidden_labels_as_first_class, REPLICATIONS),
    "prior scale x 2": partial(calibrate, SMALL, prior_twice_as_wide, REPLICATIONS),
    "sd x 1.2": partial(calibrate, LONE, exact, 3 * REPLICATIONS, change=wider),
}


def main() -> None:
    sound = {
        name: partial(calibrate, setting, gibbs, REPLICATIONS) for name, setting in SOUND.items()
    }
    sound["exact"] = partial(calibrate, LONE, exact, 3 * REPLICATIONS)
    print(json.dumps({name: failures(run(seed=0)) for name, run in (sound | DEFECTS).items()}))


if __name__ == "__main__":
    main()
