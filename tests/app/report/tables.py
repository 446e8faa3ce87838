"""Small tables for reports."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed_table(n: int = 70, seed: int = 0, hidden: float = 0.2) -> pd.DataFrame:
    """Two real columns, one categorical, two classes; holes and hidden labels; one slip."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    size = 1.5 * labels + rng.normal(0, 0.6, n)
    weight = 2 * size + rng.normal(0, 0.3, n)
    colour = np.where(rng.random(n) < 0.25 + 0.5 * labels, "red", "blue").astype(object)
    weight[4] += 6.0
    table = pd.DataFrame({"size": size, "weight": weight, "colour": colour})
    for name in table.columns:
        holes = rng.random(n) < 0.15
        holes[4] = False
        table.loc[holes, name] = np.nan if name != "colour" else None
    names = np.array(["no", "yes"], dtype=object)[labels]
    names[rng.random(n) < hidden] = None
    return table.assign(outcome=names)
