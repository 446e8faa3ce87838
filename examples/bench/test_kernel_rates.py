"""What learned rates and a short scale are worth to a kernel network by itself.

Tables and splits are those of the stack's benchmark, and so are the environment variables that
choose among them. Every network is calibrated.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from bayesrbf import KernelNetworkClassifier
from bench.figures import show
from bench.test_stack import SETS, Contestant, contest, counts, of


def network(kernel: str, **settings: Any) -> Contestant:
    """A calibrated kernel network."""
    return lambda X, y, seed: of(
        KernelNetworkClassifier(kernel, random_state=seed, **settings), X, y
    )


NETWORKS: dict[str, Contestant] = {
    f"{kernel}, {label}": network(kernel, **settings)
    for kernel in ("laplace", "gaussian")
    for label, settings in {
        "fixed": {},
        "short scale": {"scale": 1 / 3},
        "evidence": {"rates": "evidence"},
        "leave-one-out": {"rates": "leave-one-out"},
    }.items()
}


def beside_fixed(results: pd.DataFrame) -> pd.DataFrame:
    """Mean log loss over tables, seeds first, and the difference to fixed rates."""
    by_table = results.groupby(["table", "model"], sort=False)
    losses = by_table["log loss"].mean().unstack(sort=False)
    told = pd.DataFrame({"log loss": losses.mean()})
    for model in losses:
        fixed = f"{model.split(',')[0]}, fixed"
        if fixed in losses:
            more = losses[model] - losses[fixed]
            told.loc[model, ["more than fixed", "its error"]] = more.mean(), more.sem()
            told.loc[model, "tables better"] = (more < 0).sum()
    return told


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("names", SETS)
def test_kernel_rates(names: str, holes: bool, data_folder: object) -> None:
    results = pd.DataFrame(contest(SETS[names], holes, NETWORKS, "kernel_rates"))
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this set")
    kind = f"{names}_{'with_holes' if holes else 'complete'}"
    told, run = beside_fixed(results), counts(results, len(SETS[names]), NETWORKS)
    losses = results.pivot_table(index="table", columns="model", values="log loss", sort=False)
    show(f"kernel_rates/{kind}", told, counts=run)
    show(f"kernel_rates/{kind}_by_table", losses, counts=run)
    learned = told[told.index.str.contains("evidence|leave-one-out")]
    assert (learned["more than fixed"] > -3 * learned["its error"]).all()
