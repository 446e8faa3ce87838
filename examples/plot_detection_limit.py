"""
What becomes of values at the detection limit?
==============================================

A laboratory reports a value below the detection limit as the limit itself. So a column that varies
smoothly between patients has a spike in the table. A normal density takes the spike for a very
narrow peak, or spreads it over values that nobody measured. ``point_masses="auto"`` gives such a
value a probability of its own in every component, and the density covers what is left.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayesrbf import MixtureDensity

rng = np.random.default_rng(0)
n, limit = 600, 0.5
inflamed = rng.random(n) < 0.35
troponin = np.exp(rng.normal(np.where(inflamed, 1.2, -0.9), 0.7))
truth = pd.DataFrame(
    {
        "troponin": np.maximum(troponin, limit),
        "leucocytes": rng.normal(np.where(inflamed, 12.0, 7.0), 2.0),
        "temperature": rng.normal(np.where(inflamed, 38.6, 36.9), 0.5),
    }
)
X = truth.mask(rng.random(truth.shape) < 0.25)

# %%
# A quarter of the cells is missing. The fit names the spike, and how many cells it holds.
settings = {"n_components": "cv", "column_transforms": "power", "random_state": 0}
with_point_masses = MixtureDensity(point_masses="auto", **settings).fit(X)
without = MixtureDensity(**settings).fit(X)
with_point_masses.point_masses_

# %%
# Missing cells are drawn given the rest of their row. They should look like the cells that were
# hidden: as many at the limit, and hardly any below it.
hidden = X["troponin"].isna()
drawn = {
    "hidden cells": truth["troponin"][hidden],
    "drawn with point masses": with_point_masses.impute(X, draws=1)[0]["troponin"][hidden],
    "drawn without": without.impute(X, draws=1)[0]["troponin"][hidden],
}
pd.DataFrame(
    {
        name: {
            "at the limit": np.isclose(cells, limit).mean(),
            "below the limit": (cells < limit - 1e-9).mean(),
            "mean": cells.mean(),
        }
        for name, cells in drawn.items()
    }
).round(2)

# %% A density without point masses makes the spike a narrow peak. What it draws lies on both sides
# of the limit, and below the limit no laboratory reports anything.
edges = np.linspace(0.0, 3.0, 61)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharex=True, sharey=True, layout="constrained")
for ax, (name, cells) in zip(axes, drawn.items(), strict=True):
    ax.hist(cells, edges, color="C0")
    ax.axvline(limit, color="C1", linewidth=0.8)
    ax.set(title=name, xlabel="troponin", ylabel="missing cells")
    ax.label_outer()
plt.show()

# %%
# The rest of the row says how probable the limit is. Where the temperature is high it is not.
grid = pd.DataFrame({"troponin": np.nan, "leucocytes": np.nan, "temperature": [36.5, 37.5, 38.5]})
several = np.stack([table["troponin"] for table in with_point_masses.impute(grid, draws=500)])
grid.assign(at_the_limit=np.isclose(several, limit).mean(axis=0).round(2)).drop(
    columns=["troponin", "leucocytes"]
)
