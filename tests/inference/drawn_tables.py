"""Tables drawn from the declared graphs: simulation-based calibration of every family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pymc as pm

from bayesrbf.base.log_posterior import LogPosterior, to_unconstrained
from bayesrbf.inference.nuts import nuts
from tests.inference.drawing_graphs import Drawn, Simulator
from tests.inference.sbc import place

DRAWS, THIN, TUNE = 15, 4, 50


@dataclass(frozen=True)
class Table:
    """One drawn table: the truth in coordinates, and its posterior."""

    truth: np.ndarray
    start: np.ndarray  # The truth of another table.
    target: LogPosterior
    held: LogPosterior

    def quantities(self, thetas: np.ndarray) -> dict[str, np.ndarray]:
        """What is ranked: parameters, a product, and what the rows make of them."""
        found = {
            "log likelihood": np.array([self.target.pointwise(t).sum() for t in thetas]),
            "held-out row": np.array([self.held.pointwise(t)[0] for t in thetas]),
        }
        for name, value in self.target.constrained(thetas).items():
            flat = value.reshape(len(thetas), -1)
            found[f"first of {name}"], found[f"last of {name}"] = flat[:, 0], flat[:, -1]
        found["product"] = thetas[:, 0] * thetas[:, -1]
        return found


def tables(simulator: Simulator, number: int, seed: int) -> Iterator[Table]:
    """Usable tables that the graph draws."""
    drawn = list(islice(filter(simulator.usable, draws_of(simulator, number, seed)), number + 1))
    targets = [simulator.target(one) for one in drawn]
    truths = [to_unconstrained(t.variables, d) for t, d in zip(targets, drawn, strict=True)]
    for i in range(number):
        yield Table(truths[i], truths[i + 1], targets[i], simulator.held(drawn[i]))


def draws_of(simulator: Simulator, number: int, seed: int) -> Iterator[Drawn]:
    """Draws of a graph without end, so many by one compiled function."""
    model, rng = simulator.model(), np.random.default_rng(seed)
    nodes = [*model.free_RVs, *model.observed_RVs]
    while True:
        values = pm.draw(nodes, draws=number + 1, random_seed=rng)
        for i in range(number + 1):
            yield {node.name: value[i] for node, value in zip(nodes, values, strict=True)}


Sampler = Callable[[Table, np.random.Generator], np.ndarray]


def by_nuts(table: Table, rng: np.random.Generator) -> np.ndarray:
    """Draws apart of a chain that starts elsewhere: made round, a posterior is tuned to at once."""
    length = DRAWS * THIN
    made = nuts(table.target, table.start, draws=length, tune=TUNE, chains=1, random_state=rng)
    return made.theta[0][THIN - 1 :: THIN]


def by_gibbs(table: Table, rng: np.random.Generator) -> np.ndarray:
    """Draws far apart of sweeps that start elsewhere."""
    kernel = table.target.markov_kernel().adapted(table.start[None])
    theta, kept = table.start, []
    for sweep in range(THIN * (DRAWS + 5)):
        theta = kernel.sweep(theta, rng)
        if sweep >= 5 * THIN and sweep % THIN == 0:
            kept.append(theta)
    return np.array(kept)


SAMPLERS: dict[str, Sampler] = {"NUTS": by_nuts, "Gibbs": by_gibbs}
EXACT: tuple[tuple[str, str], ...] = (
    ("exemplars", "Gibbs"),
    ("stack", "NUTS"),
    ("kernel network", "NUTS"),
)
"""Families and their exact methods; Gibbs sampling of mixtures has tables of its own."""


def exchanged(target: LogPosterior, thetas: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every draw with the components of a class in random order, which is equally probable."""
    classes, result = target.component_class, []
    for theta in thetas:
        order = np.arange(classes.size)
        for label in np.unique(classes):
            own = np.flatnonzero(classes == label)
            order[own] = rng.permutation(own)
        result.append(target.permute(theta, order) if target.exchangeable else theta)
    return np.array(result)


def calibrate(
    simulator: Simulator, sampler: Sampler, number: int, seed: int
) -> dict[str, np.ndarray]:
    """PIT of every quantity in every table."""
    ranks: dict[str, list[float]] = {}
    rngs = np.random.default_rng(seed).spawn(number)
    for table, rng in zip(tables(simulator, number, seed), rngs, strict=True):
        draws = exchanged(table.target, sampler(table, rng), rng)
        thetas = np.vstack([table.truth, draws])
        for name, values in table.quantities(thetas).items():
            ranks.setdefault(name, []).append(place(values[0], values[1:], rng))
    return {name: np.array(values) for name, values in ranks.items()}
