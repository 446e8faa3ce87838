"""What is calibrated by simulation, to be run where no call is checked: ``python -m`` this.

Prints one line of JSON: what failed, by the name of the simulation. Each planted defect is
judged beside the unbroken code, on the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bayesrbf.numerics.coordinates import log_jacobian, to_unconstrained
from bayesrbf.numerics.gibbs.conjugate import assigned, posterior
from bayesrbf.numerics.gibbs.sweep import MixtureSweep
from bayesrbf.records.specification import MixtureSpecification
from tests.inference.sbc import (
    Replication,
    Sampler,
    Setting,
    calibrate,
    changed,
    failures,
    from_prior,
    reversible,
)

DRAWS, REPLICATIONS = 15, 200
SMALL = Setting(MixtureSpecification(2, (), (0, 0, 1)), n_obs=10)
LONE = Setting(MixtureSpecification(2, (3,), (0, 1)), n_obs=8, missing=0.0, hidden=0.0)
"""Complete rows, one component a class: the posterior is known."""
FEWEST = replace(LONE, n_obs=3)


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


def likelihood_dropped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    setting, target = replication.setting, replication.log_posterior()
    model = setting.specification, setting.hyperparameters
    return np.stack(
        [to_unconstrained(target.variables, from_prior(*model, rng)) for _ in range(DRAWS)]
    )


def a_row_dropped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    rows = replication.rows
    return exact(replace(replication, rows=rows.take(np.arange(1, rows.n_obs))), rng)


def missing_as_zero(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return gibbs(changed(replication, real=np.nan_to_num(replication.rows.real)), rng)


def hidden_labels_as_first_class(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return gibbs(changed(replication, labels=np.maximum(replication.rows.labels, 0)), rng)


def labels_swapped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return exact(changed(replication, labels=1 - replication.rows.labels), rng)


def jacobian_dropped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    """Draws of the density without the Jacobian: exact ones, weighed by one over it."""
    target = replication.log_posterior()
    many = conjugate(replication, 20 * DRAWS, rng)
    logs = [-log_jacobian(target.variables, target.constrained(theta))[0] for theta in many]
    share = np.exp(np.array(logs) - max(logs))
    return many[rng.choice(len(many), DRAWS, replace=False, p=share / share.sum())]


def correlation_dropped(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    return rng.permuted(exact(replication, rng), axis=0)


def prior_twice_as_wide(replication: Replication, rng: np.random.Generator) -> np.ndarray:
    sound = replication.setting.hyperparameters
    wide = replace(sound, scale=2 * sound.scale)
    rows = replace(replication.rows, real=replication.rows.real / 2)  # in its standard units
    return around(replication, MixtureSweep(rows, replication.setting.specification, wide), rng)


def wider(draws: np.ndarray) -> np.ndarray:
    """Standard deviations 1.2 times as large."""
    return draws.mean() + 1.2 * (draws - draws.mean())


@dataclass(frozen=True)
class Simulation:
    """Tables of a setting, a sampler, and what is done to its draws."""

    setting: Setting
    sampler: Sampler
    change: Callable[[np.ndarray], np.ndarray] = lambda draws: draws

    def ranks(self, replications: int, seed: int = 0) -> dict[str, np.ndarray]:
        return calibrate(self.setting, self.sampler, replications, seed, self.change)


TIED = MixtureSpecification(2, (), (0, 0, 1), "tied")
ONE = MixtureSpecification(2, (), (0, 0, 1), tied=True)
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


@dataclass(frozen=True)
class Planted:
    """Code with a defect beside the unbroken code, on the same tables."""

    setting: Setting
    sound: Sampler
    broken: Sampler
    change: Callable[[np.ndarray], np.ndarray] = lambda draws: draws  # Of the broken one's draws.
    tables: int = REPLICATIONS  # In which the defect is seen.

    def judged(self, seed: int) -> tuple[list[str], list[str]]:
        """What is not calibrated in the unbroken code, and in the broken, on one set of tables."""
        sound = calibrate(self.setting, self.sound, self.tables, seed)
        broken = calibrate(self.setting, self.broken, self.tables, seed, self.change)
        return failures(sound), failures(broken)


DEFECTS = {
    "likelihood dropped": Planted(LONE, exact, likelihood_dropped),
    "a row dropped": Planted(FEWEST, exact, a_row_dropped),
    "a missing cell read as 0": Planted(SMALL, gibbs, missing_as_zero, tables=300),
    "labels swapped": Planted(LONE, exact, labels_swapped),
    "Jacobian dropped": Planted(LONE, exact, jacobian_dropped, tables=500),
    "sd x 1.2": Planted(LONE, exact, exact, wider, 1000),
    "correlation dropped": Planted(LONE, exact, correlation_dropped, tables=600),
    "prior scale x 2": Planted(LONE, gibbs, prior_twice_as_wide),
    "hidden labels read": Planted(SMALL, gibbs, hidden_labels_as_first_class),
}
"""Those of the design, and one more."""


def main() -> None:
    sound = {name: failures(one.ranks(REPLICATIONS)) for name, one in SOUND.items()}
    print(json.dumps(sound | {name: one.judged(0) for name, one in DEFECTS.items()}))


if __name__ == "__main__":
    main()
