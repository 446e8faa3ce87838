"""Defects planted in an exact method, each judged beside the unbroken code on the same tables.

``python -m`` this, where no call is checked, prints one line of JSON: what failed in the unbroken
code and in the broken, by the name of the defect.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from bayesrbf.base.log_posterior import log_jacobian, to_unconstrained
from bayesrbf.mixture.gibbs import MixtureSweep
from tests.inference.sbc import (
    Replication,
    Sampler,
    Setting,
    calibrate,
    changed,
    failures,
    from_prior,
)
from tests.inference.simulations import (
    DRAWS,
    LONE,
    REPLICATIONS,
    SMALL,
    around,
    conjugate,
    exact,
    gibbs,
)

FEW_ROWS = replace(LONE, n_obs=3)
MANY_HOLES = replace(SMALL, missing=0.6)


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
class Planted:
    """Code with a defect beside the unbroken code, on the same tables."""

    setting: Setting
    sound: Sampler
    broken: Sampler
    change: Callable[[np.ndarray], np.ndarray] = lambda draws: draws  # Of the broken one's draws.
    tables: int = REPLICATIONS  # In which the defect is seen.

    def judged(self, seed: int) -> tuple[list[str], list[str]]:
        """Quantities that are not calibrated under the unbroken code and under the broken one."""
        sound = {
            name: ranks[: self.tables]
            for name, ranks in sound_ranks(self.setting, self.sound, seed).items()
        }
        broken = calibrate(self.setting, self.broken, self.tables, seed, self.change)
        return failures(sound), failures(broken)


@cache
def sound_ranks(setting: Setting, sampler: Sampler, seed: int) -> dict[str, np.ndarray]:
    """Of the unbroken code on as many tables of a setting as any defect takes."""
    tables = [
        each.tables for each in DEFECTS.values() if (each.setting, each.sound) == (setting, sampler)
    ]
    return calibrate(setting, sampler, max(tables), seed)


DEFECTS = {
    "likelihood dropped": Planted(LONE, exact, likelihood_dropped),
    "a row dropped": Planted(FEW_ROWS, exact, a_row_dropped),
    "a missing cell read as 0": Planted(MANY_HOLES, gibbs, missing_as_zero, tables=100),
    "labels swapped": Planted(LONE, exact, labels_swapped),
    "Jacobian dropped": Planted(LONE, exact, jacobian_dropped, tables=300),
    "sd x 1.2": Planted(LONE, exact, exact, wider, 1000),
    "correlation dropped": Planted(LONE, exact, correlation_dropped, tables=300),
    "prior scale x 2": Planted(LONE, gibbs, prior_twice_as_wide),
    "hidden labels read": Planted(SMALL, gibbs, hidden_labels_as_first_class),
}
"""Those of the design, and one more."""


def main() -> None:
    print(json.dumps({name: planted.judged(0) for name, planted in DEFECTS.items()}))


if __name__ == "__main__":
    main()
