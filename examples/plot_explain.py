"""
Which cells made the answer?
============================

A row of the wine table has lost some of its cells. ``explain`` says what each of the others adds to
the log odds of a class. A cell's *Shapley value* is what it adds on average over all orders in
which the cells can become known. *Lost without the cell* is what it adds when all others are known
already.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from bayesrbf import HybridMixtureClassifier

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
X = X.mask(np.random.default_rng(0).random(X.shape) < 1 / 3)
model = HybridMixtureClassifier(random_state=0).fit(X, y)

# %%
# The values of a row sum to the change of the log odds from no cell to all its cells. Missing cells
# have no value.
told = model.explain(X.iloc[:1]).sel(label="class_0").isel(obs=0).dropna("column")
print(f"log odds {float(told['base']):.2f} with no cell, {float(told['log_odds']):.2f} with all")
told[["shapley", "left_out"]].to_dataframe()[["shapley", "left_out"]].round(2)

# %%
# Columns with the same information share it. Little is lost without one of them, because the other
# still has the information. That does not mean that they do not matter.
told = told.sortby("shapley")
places = np.arange(told.sizes["column"])
cells = [f"{name} = {X[name].iloc[0]:g}" for name in told["column"].to_numpy()]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.barh(places, told["shapley"], color="C0", alpha=0.6, label="Shapley value")
axes.plot(told["left_out"], places, "o", color="C1", label="lost without the cell")
axes.axvline(0, color="0.5", linewidth=0.8)
axes.set(yticks=places, yticklabels=cells, xlabel="log odds of class_0 (nats)")
axes.legend(loc="lower right")
plt.show()

# %%
# Decisions use the same probabilities. Here it costs 5 to sell a wine as class_0 by mistake, and an
# expert tastes a wine for 0.2.
costs = {
    "class_0": {"sell as class_0": 0.0, "sell as another": 1.0},
    "class_1": {"sell as class_0": 5.0, "sell as another": 0.0},
    "class_2": {"sell as class_0": 5.0, "sell as another": 0.0},
}
decided = model.decide(X, costs, reject=0.2)
print(f"{int(decided['refer'].sum())} of {len(X)} wines go to the expert")
