"""What a member for columns of few values is worth, on those of the 29 tables that have such.

Members are fitted once a split: the ten and gaussian_loo_levels. Kept are the log loss of the ten,
and what gaussian_loo_levels changes of it and of that of *lite*.

``BAYESRBF_TABLES`` chooses, ``BAYESRBF_SEEDS`` sets the number of splits (3). Results are kept as
they come.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pandas as pd
import pytest

from bayesrbf import StackedClassifier
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack.members import DEFAULT, LITE, OF_FEW_VALUES
from bayesrbf.table.encode import few_values
from bench.figures import show
from bench.pools import Pools
from bench.stack_tables import CHOSEN, FRESH, Split, split
from bench.test_stack import chosen
from tests.measured import part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))


def has_few_values(data: Split) -> bool:
    """Whether a stack gives a table's training rows the member."""
    real = data.X.select_dtypes("number").to_numpy(dtype=float)
    none = np.zeros((real.shape[0], 0), int)
    return bool(few_values(Observations(real, none, data.y, np.ones(data.y.size))).features)


def differences(data: Split, seed: int) -> dict[str, object]:
    """Log losses with and without the member."""
    more = OF_FEW_VALUES * has_few_values(data)
    model = StackedClassifier([*DEFAULT, *more], random_state=seed)
    pools = Pools(model.fit(data.X, data.y), data)
    ten, lite = pools.loss(DEFAULT), pools.loss(LITE)
    return {
        "ten": ten,
        "more with gaussian_loo_levels": pools.loss([*DEFAULT, *more]) - ten,
        "lite, more with gaussian_loo_levels": pools.loss([*LITE, *more]) - lite,
    }


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_few_values(holes: bool, data_folder: object) -> None:
    rows = []
    asked = [
        name
        for name in (*FRESH, *CHOSEN)
        if any(has_few_values(split(name, seed, holes)) for seed in range(SEEDS))
    ]
    for name in chosen(asked, "BAYESRBF_TABLES"):
        for seed in range(SEEDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key = {"table": name, "holes": holes, "seed": seed}
                make = lambda: differences(split(name, seed, holes), seed)  # noqa: B023, E731
                rows.append(part("few_values", key, make))
    if not rows:
        pytest.skip("BAYESRBF_TABLES names no table with a column of few values")
    means = pd.DataFrame(rows).drop(columns=["holes", "seed", "commit"])
    means = means.groupby("table", sort=False).mean()
    kind, counts = ("with_holes" if holes else "complete"), {
        "tables": (len(means), len(asked)), "splits": (SEEDS, 3)
    }  # fmt: skip
    show(f"few_values/{kind}", means, 4, counts)
    show(
        f"few_values/{kind}_means",
        pd.DataFrame({"mean": means.mean(), "se": means.sem()}).drop(index="ten"),
        4,
        counts,
    )
    assert means["more with gaussian_loo_levels"].max() < 0.01
