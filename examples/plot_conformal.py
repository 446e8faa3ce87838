"""
Which classes can this row not be ruled out of?
===============================================

A class probability is as good as its model. ``ConformalSets`` promises something weaker that needs
no model to be right: sets of classes that hold the true one in nine rows of ten. A row with
many holes is compared with rows that lack about as many cells. So it is covered as often as a
complete row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import ConformalSets

# %%
# Pictures of digits lose cells: one in five lacks nothing, another nearly everything. The
# classifier fills them by means and knows nothing of it, to show that it need not be right. Groups
# are made for a level of .95: none has fewer than a hundred rows.
digits = load_digits(as_frame=True)
pixels, y = digits.data.loc[:, digits.data.std() > 2], digits.target.to_numpy()
rng = np.random.default_rng(0)
lost = rng.choice([0.0, 0.5, 0.8, 0.9, 0.96], size=len(y))
X = pixels.mask(rng.random(pixels.shape) < lost[:, None])
X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
naive = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(C=0.1))
sets = ConformalSets(naive, level=0.95, random_state=0).fit(X_fit, y_fit)

# %%
# A complete row, and one that lacks nearly everything: which digits may each be?
missing = X_new.isna().sum(axis=1)
sets.predict_set(X_new.loc[[missing.idxmin(), missing.idxmax()]])

# %%
# How often the sets of new rows hold the true digit. Intervals are binomial, of 95 %.
sets.coverage(X_new, y_new, level=0.9).round(3)


# %%
# One table is a matter of luck: a hundred rows set the boundary of a group, and a hundred judge it.
# Over ten splits the difference shows. Compared with all rows, complete ones are covered more often
# than those with many holes, in larger sets than they need. Compared with their like, all are
# covered as often.
def covered(mondrian, split):
    X_fit, X_new, y_fit, y_new = train_test_split(X, y, test_size=0.5, random_state=split)
    sets = ConformalSets(naive, mondrian=mondrian, level=0.95, random_state=split).fit(X_fit, y_fit)
    inside = sets.predict_set(X_new, 0.9).to_numpy()
    missing = pd.cut(X_new.isna().sum(axis=1), [-1, 0, 29, 38, 42, 45])
    return pd.Series(inside[np.arange(len(y_new)), y_new]).groupby(missing.to_numpy()).mean()


kinds = {"compared with their like": "missing", "compared with all rows": None}
found = {
    words: pd.concat([covered(kind, split) for split in range(10)], axis=1)
    for words, kind in kinds.items()
}
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for shift, (words, shares) in enumerate(found.items()):
    axes.errorbar(
        np.arange(len(shares)) + 0.1 * shift,
        shares.mean(axis=1),
        2 * shares.std(axis=1) / np.sqrt(shares.shape[1]),
        fmt="o",
        label=words,
    )
axes.axhline(0.9, color="0.5", linestyle="--")
axes.set(
    xlabel="missing cells, of 45",
    ylabel="sets that hold the digit",
    xticks=range(len(shares)),
    xticklabels=["0", "1 to 29", "30 to 38", "39 to 42", "43 to 45"],
)
axes.legend()
plt.show()

# %%
# The same figures, in the mean over the splits.
pd.DataFrame({words: shares.mean(axis=1) for words, shares in found.items()}).round(3)
