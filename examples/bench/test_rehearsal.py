"""How often the intervals of the report's models hold the truth in rehearsals on real tables.

Each family is fitted and drawn as ``bayesrbf report`` does it; labels are drawn once from each
teacher. ``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas).
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np
import pandas as pd

from bayesrbf.app.report.families import FAMILIES, draw_posterior
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.sections import rehearse
from bench.figures import show
from bench.stack_tables import load
from bench.test_stack import chosen
from tests.measured import part

TABLES = ("heart_statlog", "hepatitis", "pima_uci_missing")
ROWS = 150


def job_of(name: str, family: str) -> Job:
    """A report's job on some rows of a table."""
    data = load(name)
    rows = np.random.default_rng(0).permutation(len(data.y))[:ROWS]
    X = data.X.iloc[rows].reset_index(drop=True)
    y = pd.Series(np.asarray(data.y, dtype=object)[rows]).astype(str).astype(object)
    kinds = {
        column: "real" if pd.api.types.is_numeric_dtype(X[column]) else "categorical"
        for column in X
    }
    return Job(name, "label", X, y, kinds, "auto", 0, family=family)  # type: ignore[arg-type]


def rehearsed(name: str, family: str) -> dict[str, object]:
    """Coverage, width and costs of one family on one table."""
    job = job_of(name, family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        drawn = draw_posterior(job, FAMILIES[family].procedure(job)(job.X, job.y).model)
        fitted = time.perf_counter()
        found = rehearse(job, drawn, n_repeats=1)
    held = found["overall_coverage"]
    return {
        "method": found.attrs["method"],
        **{f"{level:.0%}": float(held.sel(level=level)) for level in (0.5, 0.8, 0.9)},
        "width": float(found["overall_width"].sel(level=0.9)),
        "fit and draws (s)": fitted - start,
        "rehearsal (s)": time.perf_counter() - fitted,
    }


def test_rehearsal(data_folder: object) -> None:
    results = pd.DataFrame(
        part("rehearsal", {"family": family, "table": name}, partial(rehearsed, name, family))
        for name in chosen(TABLES, "BAYESRBF_TABLES")
        for family in chosen(FAMILIES, "BAYESRBF_METHODS")
    )
    figures = ["50%", "80%", "90%", "width"]
    means = results.groupby(["family", "method"], sort=False)[figures].mean()
    means.insert(0, "tables", results.groupby(["family", "method"], sort=False).size())
    counts = {
        "tables": (results["table"].nunique(), len(TABLES)),
        "families": (results["family"].nunique(), len(FAMILIES)),
    }
    show("rehearsal", means, 2, counts)
    if "stack" in means.index:
        assert means.xs("stack")["90%"].min() > 0.85
