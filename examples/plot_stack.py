"""
What is a pool of models made of?
=================================

No single model is the best one on every table. ``StackedClassifier`` fits kernel networks, mixtures
and trees, lets each predict rows that it has not seen, and pools them with the weights that predict
best. Here a table of wines has lost a third of its cells.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from bayesrbf import StackedClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
X = X.mask(np.random.default_rng(0).random(X.shape) < 1 / 3)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# The weights have a posterior of their own. On ninety rows it is wide, because several models
# predict them about as well.
model = StackedClassifier(random_state=0).fit(X, y)
members = model.member_table()
members.round(3)

# %%
# Every member's held-out log loss beside the pool's. The pool is the last line.
pool = members.iloc[:-1]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
places = np.arange(len(pool))
left.hlines(places, pool["lower"], pool["upper"], color="C0")
left.plot(pool["weight"], places, "o")
left.set(xlabel="weight, 90 % interval", xlim=(0, 1), yticks=places, yticklabels=pool.index)
right.plot(pool["log_loss"], places, "o", color="C0")
right.axvline(members["log_loss"].iloc[-1], color="0.5", linestyle="--", label="the pool")
right.set(xlabel="held-out log loss (nats)")
right.legend()
plt.show()

# %%
# New rows may have missing cells, too.
p = model.predict_proba(X_new)
print(f"log loss {-np.log(p[np.arange(len(p)), y_new]).mean():.3f} on rows that no member has seen")
