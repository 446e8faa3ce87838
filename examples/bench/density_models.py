"""What our densities say of the tasks of the density's benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesrbf import MixtureDensity
from bayesrbf.mixture.missing import conditional_cells
from bayesrbf.table.encode import encode, find_point_masses
from bench.density_scores import at_resolution
from bench.density_tables import Cells, Task

Array = np.ndarray
Answer = dict[str, Any]

DRAWS = 50


def frame(cells: Cells) -> pd.DataFrame:
    """Cells as a user would bring them."""
    found = pd.DataFrame(cells.real).add_prefix("r")
    for j, column in enumerate(cells.codes.T):
        found[f"c{j}"] = pd.Series([None if c < 0 else f"l{c:02d}" for c in column], dtype=object)
    return found


def surprising_cells(density: MixtureDensity, cells: Cells) -> tuple[Array, Array]:
    """How wrong every cell looks: minus the log of its tail given the rest of its row.

    Cells are judged by a density that has seen them.
    """
    log_tail = density.surprise(frame(cells))["log_tail"].to_numpy()
    n_reals = cells.real.shape[1]
    return -log_tail[:, :n_reals], -log_tail[:, n_reals:]


def untypical_rows(density: MixtureDensity, cells: Cells) -> Array:
    """How novel every row looks: the share of the density's rows that are more typical."""
    return density.novelty(frame(cells))


def point_masses_of(density: MixtureDensity) -> list[Array]:
    """Point masses of every real column."""
    return [np.asarray(values) for values in density.columns_.point_masses]


@dataclass(frozen=True)
class Ours:
    """A density, and how it answers each question. What is better at one is exchanged here."""

    make: Callable[[], MixtureDensity]
    point_masses: Callable[[Any], Sequence[Array]] | None = None
    """Values of every real column that a fitted density takes for point masses.

    Cells there are given as they are, and jittered elsewhere."""
    suspicion: Callable[[Any, Cells], tuple[Array, Array]] = surprising_cells
    novelty: Callable[[Any, Cells], Array] = untypical_rows

    def answer(self, task: Task) -> Answer:
        """What is asked of one task."""
        return ANSWERS[task.kind](self, task)

    def learn(self, task: Task) -> Any:
        """The density that densities and imputations are asked of."""
        real, jitter = task.train.real, task.train_jitter
        if self.point_masses is not None:
            ones = np.ones(len(real))
            at_point_mass = [np.isin(column, find_point_masses(column, ones)) for column in real.T]
            jitter = np.where(np.column_stack(at_point_mass), 0.0, jitter)
        return self.make().fit(frame(Cells(real + jitter, task.train.codes)))

    def log_density(self, density: Any, task: Task) -> Array:
        """Of new rows: cells at a point mass are compared at the column's resolution."""
        real = task.test.real
        at_point_mass = np.zeros(real.shape, bool)
        if self.point_masses is not None:
            pairs = zip(real.T, self.point_masses(density), strict=True)
            at_point_mass = np.column_stack([np.isin(column, values) for column, values in pairs])
        cells = Cells(np.where(at_point_mass, real, real + task.test_jitter), task.test.codes)
        return at_resolution(density.score_samples(frame(cells)), at_point_mass, task.resolution)


def hidden(ours: Ours, task: Task) -> Answer:
    """Densities of rows with holes, draws and level probabilities of what is hidden."""
    begun = time.process_time()
    density = ours.learn(task)
    cpu = time.process_time() - begun
    real, code = task.holes
    columns = [f"r{j}" for j in range(task.test.real.shape[1])]
    tables = density.impute(frame(task.test), draws=DRAWS)
    draws = [table[columns].to_numpy()[real[:, 0], real[:, 1]] for table in tables]
    return {
        "log_density": ours.log_density(density, task),
        "draws": np.array(draws),
        "probabilities": level_probabilities(density, task, code),
        "cpu": cpu,
    }


def level_probabilities(density: Any, task: Task, code: Array) -> Array:
    """Of the hidden categories given the rest of their rows; 0 for levels never seen."""
    mixture = density.model_.density
    rows = mixture.standardise(encode(frame(task.test), density.columns_))
    found = conditional_cells(rows, mixture.parameters, mixture.specification).probabilities
    result = np.zeros((len(code), int(task.levels.max(initial=1))))
    columns = density.columns_
    names = [columns.names[position] for position in columns.code_of]
    cells = zip(names, columns.levels, found[: len(names)], strict=True)  # point masses come after
    for name, levels, probabilities in cells:
        mine = np.flatnonzero(code[:, 1] == int(name[1:]))
        places = [int(level[1:]) for level in levels]
        result[np.ix_(mine, places)] = probabilities[code[mine, 0]]
    return result


def reals(ours: Ours, task: Task) -> Answer:
    """Densities of new rows without holes."""
    return {"log_density": ours.log_density(ours.learn(task), task)}


def errors(ours: Ours, task: Task) -> Answer:
    """How wrong the cells of a table look."""
    real, codes = ours.suspicion(ours.make().fit(frame(task.test)), task.test)
    return {"real": real, "codes": codes}


def novelty(ours: Ours, task: Task) -> Answer:
    """How novel new rows look."""
    return {"score": ours.novelty(ours.make().fit(frame(task.train)), task.test)}


ANSWERS: dict[str, Callable[[Ours, Task], Answer]] = {
    "hidden": hidden,
    "reals": reals,
    "errors": errors,
    "novelty": novelty,
}

AUTO: dict[str, Any] = {
    "n_components": "cv",
    "covariance_type": "cv",
    "prior": "cv",
    "column_transforms": "power",
    "random_state": 0,
}

OURS: dict[str, Ours] = {
    "pool": Ours(lambda: MixtureDensity(**AUTO, point_masses="auto", pool=8), point_masses_of),
    "trimmed pool": Ours(
        lambda: MixtureDensity(**AUTO, point_masses="auto", trim=True, pool=8), point_masses_of
    ),
}
"""Columns of the table; the trimmed pool is the density of the report."""
