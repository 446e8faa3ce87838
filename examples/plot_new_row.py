"""
Is this row new, or only mistyped?
==================================

A classifier answers whatever it is asked. Whether it has seen anything like the row is another
question. ``novelty`` judges whole rows and ``surprise`` single cells, both with holes left in.
Here wines of two growers train a model, and five kinds of new rows are shown to it.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier

bunch = load_wine(as_frame=True)
columns = ["alcohol", "malic_acid", "alcalinity_of_ash", "flavanoids", "color_intensity", "hue"]
wine, grower = bunch.data[columns], bunch.target_names[bunch.target]
known = grower != "class_2"
X, X_new, y, y_new = train_test_split(wine[known], grower[known], test_size=0.4, random_state=0)
model = HybridMixtureClassifier(random_state=0).fit(X, y)

# %%
# Rows of the same growers, complete and with holes; rows of a third grower, whom the model does
# not know; rows with one cell in another unit; and rows whose cells are exchanged between wines,
# so that every cell is usual and their combination is not.
rng = np.random.default_rng(0)
kinds = {
    "same growers": X_new,
    "half of the cells hidden": X_new.mask(rng.random(X_new.shape) < 0.5),
    "a third grower": wine[~known],
    "alcohol as a fraction": X_new.assign(alcohol=X_new["alcohol"] / 100),
    "cells exchanged": X_new.apply(lambda column: rng.permutation(column)),
}

# %%
# The novelty of a row is the share of rows drawn from the model, with the same cells missing, that
# are more typical. So rows of the same growers should be spread from 0 to 1, whatever is missing.
# The class probabilities of the third grower are no warning: the model is sure of most of them.
# Where a whole column has another unit, the model warns. The warning is printed below.
rows, said = [], set()
for kind, new in kinds.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        novelty, p = model.novelty(new), model.predict_proba(new).max(axis=1)
    said |= {str(one.message) for one in caught}
    rows.append(
        {
            "kind": kind,
            "rows": len(new),
            "novelty, mean": novelty.mean(),
            "novelty above .95": (novelty > 0.95).mean(),
            "probability above .9": (p > 0.9).mean(),
        }
    )
pd.DataFrame(rows).set_index("kind").round(2)

# %%
print(*said, sep="\n")

# %%
# Row by row, with .95 as a dashed line. Of the same growers more than one row in twenty lies
# beyond it: the model has seen few wines, and is a little too narrow.
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
for place, new in enumerate(kinds.values()):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        novelty = model.novelty(new)
    ax.plot(novelty, place + rng.uniform(-0.25, 0.25, len(novelty)), "o", markersize=3, alpha=0.5)
ax.axvline(0.95, color="0.5", linestyle="--")
ax.set(yticks=range(len(kinds)), yticklabels=kinds, xlabel="novelty")
ax.invert_yaxis()
plt.show()

# %%
# ``surprise`` explains why a row is unusual. It says which cells stand out, and which values the
# rest of the row makes probable. Here one wine has its alcohol in another unit.
odd = X_new.iloc[[0]].assign(alcohol=X_new["alcohol"].iloc[0] / 100)
told = model.surprise(odd).isel(obs=0)
table = told[["expected", "lower", "upper", "stands_out"]].to_dataframe().drop(columns="obs")
table.insert(0, "found", odd.iloc[0])
table.round(2)
