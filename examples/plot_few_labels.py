"""
Twenty labels and two thousand rows: what are the others worth?
===============================================================

Rows are cheap and labels are expensive. A mixture learns the shape of the classes from rows without
a label, too. This helps much where classes are groups of rows. Where they are not, it helps only as
long as there are very few labels, and does harm with more. This page shows both cases.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from bayesrbf import HybridMixtureClassifier

# %%
# The same four columns are labelled in two ways. In the first table a class is a group of rows. In
# the second the rows are one cloud, and the class says on which side of a line a row lies.
rng = np.random.default_rng(0)
n = 2_000
spread = np.array([[1.0, 0.9, 0, 0], [0, 0.6, 0, 0], [0, 0, 1.0, 0.5], [0, 0, 0, 0.8]])
group = rng.integers(0, 2, n)
groups = rng.normal(size=(n, 4)) @ spread + 2.0 * group[:, None] * np.array([0, 1, 0.5, 0])
cloud = rng.normal(size=(n, 4)) @ spread
side = (cloud @ [1.0, -1.0, 0.5, 0.5] + 0.5 * rng.normal(size=n) > 0).astype(int)
tables = {"classes are groups": (groups, group), "classes cut one cloud": (cloud, side)}


# %%
# A hidden label is marked by -1. ``unlabelled_weight`` is what such a row counts: 0 leaves it out,
# 1 counts it like a row with a label. By default the classifier takes one over the number of
# columns. The fit is to the likelihood, which depends on these rows the most. The log loss is that
# of the rows whose label was hidden, in the mean over five choices of labels.
def loss(X, y, n_labels, weight):
    losses = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        known = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), n_labels // 2, replace=False) for c in (0, 1)]
        )
        labels = np.full(n, -1)
        labels[known] = y[known]
        model = HybridMixtureClassifier(
            unlabelled=-1,
            unlabelled_weight=weight,
            covariance_type="full",
            shared_covariance=True,
            objective="likelihood",
            calibrate=False,
            column_transforms=None,
            random_state=0,
        ).fit(X, labels)
        losses.append(log_loss(y[labels < 0], model.predict_proba(X[labels < 0])))
    return np.mean(losses)


numbers = [6, 10, 20, 50, 200]
weights = {"left out": 0.0, "1 / number of columns": None, "like labelled rows": 1.0}
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for ax, (name, (X, y)) in zip(axes, tables.items(), strict=True):
    for told, weight in weights.items():
        ax.plot(numbers, [loss(X, y, k, weight) for k in numbers], "o-", label=told)
    ax.set(title=name, xscale="log", xlabel="rows with a label", ylabel="log loss (nats)")
    ax.set_xticks(numbers, numbers)
    ax.minorticks_off()
axes[0].legend(title="rows without a label")
plt.show()

# %%
# Left: a few labels are enough, because the other rows show the two groups. Right: with six and
# with ten labels, rows without a label help. From some twenty labels on they pull the classes
# towards groups that do not exist, and do more harm with a larger weight. With
# ``unlabelled_weight="cv"`` the labelled rows choose the weight.
