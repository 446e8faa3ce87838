"""
Unsure for which reason?
========================

A class probability near one half can mean two things: rows like this one really belong to either
class (*aleatoric*), or the model has seen too little to tell (*epistemic*). More rows reduce the
second kind of doubt and not the first. Here the wine table loses a third of its cells, and a
classifier is fitted to the others. The picture shows both kinds of doubt for every row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from bayesrbf import HybridMixtureClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
hidden = np.random.default_rng(0).random(X.shape) < 1 / 3
X = X.mask(hidden)

# %%
# The fit takes the table as it is. ``refine`` draws from the posterior around the fitted point, and
# ``uncertainty`` uses the draws for every row.
model = HybridMixtureClassifier(random_state=0).fit(X, y)
rows = model.refine("laplace").uncertainty(X)
rows

# %%
# Rows with many missing cells are less sure for both reasons: a missing cell leaves several classes
# open, and the model has to answer by fewer cells. More rows would reduce the second kind only.
entropies = rows[["aleatoric_entropy", "epistemic_entropy"]].to_dataframe()
groups = np.minimum(hidden.sum(axis=1) // 2 * 2, 6)
entropies.groupby(groups).mean().rename_axis("missing cells, at least").round(3)

# %%
# Row by row:
figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
points = axes.scatter(
    rows["aleatoric_entropy"], rows["epistemic_entropy"], c=hidden.sum(axis=1), cmap="cividis"
)
axes.set(xlabel="aleatoric entropy (nats)", ylabel="epistemic entropy (nats)")
figure.colorbar(points, label="missing cells in the row")
plt.show()

# %%
# The least certain row, class by class: the mean probability and its 90 % interval.
least = int(rows["total_entropy"].argmax("obs"))
rows[["probability", "lower", "upper"]].isel(obs=least).to_dataframe().round(3)
