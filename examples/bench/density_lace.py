"""Lace, CrossCat in Rust, in the density's benchmark."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.density_exchange import SEED, Answer, Array, Task, holes

DRAWS = 50
STATES, STEPS = 16, 500
"""Markov chains, and steps of each."""


class Lace:
    """CrossCat on columns in units of their standard deviation."""

    def __init__(self, real: Array, codes: Array) -> None:
        import pandas as pd
        from lace import Engine

        self.mean = np.nanmean(real, axis=0) if real.size else np.zeros(real.shape[1])
        self.sd = np.nanstd(real, axis=0) if real.size else np.ones(real.shape[1])
        self.reals = [f"r{j}" for j in range(real.shape[1])]
        self.categories = [f"c{j}" for j in range(codes.shape[1])]
        self.levels = [np.unique(column[column >= 0]) for column in codes.T]
        frame = pd.DataFrame((real - self.mean) / self.sd, columns=self.reals)
        for name, column in zip(self.categories, codes.T, strict=True):
            frame[name] = [None if code < 0 else f"l{code:02d}" for code in column]
        frame.index = pd.Index([str(i) for i in range(len(frame))])
        begun = time.process_time()
        self.engine = Engine.from_df(frame, n_states=STATES, rng_seed=SEED)
        self.engine.update(STEPS, quiet=True)
        self.cpu = time.process_time() - begun

    def observed(self, real: Array, codes: Array) -> dict[str, Any]:
        """The observed cells of a row; of levels that it has never seen, it knows nothing."""
        standard = (real - self.mean) / self.sd
        cells: dict[str, Any] = {
            name: float(x) for name, x in zip(self.reals, standard, strict=True) if x == x
        }
        levels = zip(self.categories, codes, self.levels, strict=True)
        return cells | {name: f"l{code:02d}" for name, code, known in levels if code in known}

    def log_density(self, real: Array, codes: Array) -> Array:
        """Of the observed cells of every row, in the units of the table."""
        import polars as pl

        found = np.zeros(len(real))
        for i, row in enumerate(zip(real, codes, strict=True)):
            cells = self.observed(*row)
            if cells:
                value = self.engine.logp(pl.DataFrame({k: [v] for k, v in cells.items()}))
                found[i] = np.asarray(value).item()
        return found - np.where(np.isnan(real), 0.0, np.log(self.sd)).sum(axis=1)

    def surprise(self, real: Array, codes: Array) -> tuple[Array, Array]:
        """Surprisal of every training cell."""
        found = np.full(real.shape, np.nan), np.full(codes.shape, np.nan)
        for names, result in zip((self.reals, self.categories), found, strict=True):
            for j, name in enumerate(names):
                frame = self.engine.surprisal(name)
                result[frame["index"].to_numpy().astype(int), j] = frame["surprisal"].to_numpy()
        return found


def lace_hidden(task: Task) -> Answer:
    """Lace: densities, draws and level probabilities of new rows."""
    import polars as pl

    lace = Lace(task["train_real"] + task["train_jitter"], task["train_codes"])
    lace.engine.seed(SEED)
    jittered = task["test_real"] + task["test_jitter"]
    real, code = holes(task)
    draws = np.empty((DRAWS, len(real)))
    probabilities = np.zeros((len(code), int(task["levels"].max(initial=1))))
    for i in np.unique(np.concatenate([real[:, 0], code[:, 0]])):
        given = lace.observed(task["test_real"][i], task["test_codes"][i]) or None
        mine = np.flatnonzero(real[:, 0] == i)
        if mine.size:
            names = [lace.reals[j] for j in real[mine, 1]]
            drawn = lace.engine.simulate(names, given=given, n=DRAWS).select(names).to_numpy()
            draws[:, mine] = drawn * lace.sd[real[mine, 1]] + lace.mean[real[mine, 1]]
        for place in np.flatnonzero(code[:, 0] == i):
            j = code[place, 1]
            levels = lace.levels[j]
            named = pl.Series(lace.categories[j], [f"l{level:02d}" for level in levels])
            log_p = np.asarray(lace.engine.logp(named, given=given))
            probabilities[place, levels] = np.exp(log_p)
    return {
        "log_density": lace.log_density(jittered, task["test_codes"]),
        "draws": draws,
        "probabilities": probabilities,
        "cpu": lace.cpu,
    }


def lace_reals(task: Task) -> Answer:
    """Lace: densities of new rows without holes."""
    lace = Lace(task["train_real"] + task["train_jitter"], task["train_codes"])
    jittered = task["test_real"] + task["test_jitter"]
    return {"log_density": lace.log_density(jittered, task["test_codes"])}


def lace_errors(task: Task) -> Answer:
    """Lace: surprisal of the cells of its own table."""
    lace = Lace(task["test_real"], task["test_codes"])
    real, codes = lace.surprise(task["test_real"], task["test_codes"])
    return {"real": real, "codes": codes}


def lace_novelty(task: Task) -> Answer:
    """Lace: minus the log density of a row."""
    lace = Lace(task["train_real"], task["train_codes"])
    return {"score": -lace.log_density(task["test_real"], task["test_codes"])}
