"""What learned rates and a short scale are worth to a kernel network by itself.

Tables and splits are those of the stack's benchmark, and so are the environment variables that
choose among them. Every network is calibrated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import KernelNetworkClassifier
from tests.benchmarks.stack_tables import CHOSEN, FRESH
from tests.benchmarks.test_stack import SEEDS, Contestant, contest, of


def network(kernel: str, **settings: Any) -> Contestant:
    """A calibrated kernel network."""
    return lambda X, y, seed: of(
        KernelNetworkClassifier(kernel, calibrate=True, random_state=seed, **settings), X, y
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
    seconds = by_table["seconds"].mean().unstack(sort=False)
    return told.assign(seconds=seconds.median())


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.parametrize("names", [CHOSEN, FRESH], ids=["chosen", "fresh"])
def test_kernel_rates(
    names: tuple[str, ...], holes: bool, data_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    results = pd.DataFrame(list(contest(names, holes, NETWORKS)))
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this set")
    losses = results.groupby(["table", "model"], sort=False)["log loss"].mean().unstack(sort=False)
    with capsys.disabled():
        title = "30 % of cells hidden" if holes else "complete"
        print(f"\n\n## {results['table'].nunique()} tables, {title}, {SEEDS} seeds\n")
        print(beside_fixed(results).round(4).to_markdown())
        print(f"\n### log loss\n\n{losses.round(3).to_markdown()}\n")
    assert np.isfinite(results.drop(columns=["table", "model"]).to_numpy(dtype=float)).all()
