"""
Which measurement next?
=======================

Every measurement has its price, and not every patient needs all of them. ``acquire_cells`` says for
each missing cell how much it is expected to lower the cost of the decision, and which one pays. It
is asked again after each measurement, until none is worth its price.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier

bunch = load_breast_cancer(as_frame=True)
columns = ["mean radius", "mean texture", "mean smoothness", "worst area", "worst concave points"]
X, y = bunch.data[columns], bunch.target_names[bunch.target]
X, X_new, y, y_new = train_test_split(X, y, test_size=100, random_state=0, stratify=y)
model = HybridMixtureClassifier(random_state=0).fit(X, y)

# %%
# What decisions cost, and what measurements cost, in one unit.
loss = {
    "malignant": {"operate": 0.0, "wait": 50.0},
    "benign": {"operate": 10.0, "wait": 0.0},
}
prices = dict(zip(columns, [1.0, 1.0, 1.0, 1.0, 2.0], strict=True))

# %%
# One patient, of whom nothing is known yet. The table has a line for each question. This patient is
# a doubtful one: most need fewer measurements, as the next picture shows.
ROW = 9
patient = X_new.iloc[[ROW]] * np.nan
lines = []
while True:
    told = model.acquire_cells(patient, costs=prices, loss=loss)
    best = str(told["best"][0].item())
    expected = float(model.decide(patient, loss)["cost"][0])
    gain = float(told["gain"].sel(column=best)[0]) if best else 0.0
    lines.append({"expected cost": expected, "measure": best or "nothing", "gain": gain})
    if not best:
        break
    patient[best] = X_new[best].iloc[ROW]
    lines[-1]["found"] = patient[best].iloc[0]
pd.DataFrame(lines).round(2)


# %%
# The same for a hundred patients, who need not be asked for the same things. Each round measures in
# every row what pays there.
def measure(rows, choose):
    """Measure until nothing pays; what was paid and the cost of the decision, by round."""
    seen, paid, path = rows * np.nan, np.zeros(len(rows)), []
    while True:
        decided = model.decide(seen, loss)["best"].to_numpy()
        costs = [loss[label][decision] for label, decision in zip(y_new, decided, strict=True)]
        path.append((paid.mean(), np.mean(costs)))
        chosen = choose(seen)
        if not chosen.astype(bool).any():
            return seen, np.array(path)
        for i in np.flatnonzero(chosen.astype(bool)):
            seen.iat[i, columns.index(chosen[i])] = rows.iat[i, columns.index(chosen[i])]
            paid[i] += prices[chosen[i]]


def what_pays(seen):
    return model.acquire_cells(seen, costs=prices, loss=loss)["best"].to_numpy().astype(object)


def in_order(seen):
    left = [name for name in columns if seen[name].isna().any()]
    return np.full(len(seen), left[0] if left else "", dtype=object)


seen, by_worth = measure(X_new, what_pays)
_, by_order = measure(X_new, in_order)
seen.notna().mean().rename("share of patients measured").round(2)

# %%
# Left: how many measurements a patient got. Right: what was paid against what the decisions cost
# these patients. If only what pays is measured, the decisions cost no more, and the measurements
# cost a part of the price.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
counts = seen.notna().sum(axis=1).value_counts().reindex(range(len(columns) + 1), fill_value=0)
left.bar(counts.index, counts, color="C0")
left.set(xlabel="measurements", ylabel="patients")
right.plot(*by_order.T, "s-", color="C1", label="columns in order")
right.plot(*by_worth.T, "o-", color="C0", label="what pays")
right.set(xlabel="paid for measurements, mean", ylabel="cost of decisions, mean", ylim=(0, None))
right.legend()
plt.show()
total = {"what pays": by_worth[-1].sum(), "all columns": by_order[-1].sum()}
pd.Series(total, name="measurements and decisions, mean cost").round(2)
