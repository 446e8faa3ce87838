"""
Should a hidden layer know the classes?
=======================================

The hidden layer of an RBF network is a mixture. It is fitted to the rows and to their classes at
once; the power ``kappa`` of p(x) says how much the rows count.
"""

# %%
# Three clusters, and two components: the upper right cluster is a class of its own, the others
# share one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.manifold import TSNE

from bayesrbf import RBFNetworkClassifier

rng = np.random.default_rng(0)
means = np.array([(-0.64, 3.41), (-1.81, -3.52), (-1.52, 1.75)])
covariances = np.array(
    [
        [(0.729, -0.592), (-0.592, 0.783)],
        [(0.176, -0.254), (-0.254, 3.541)],
        [(0.283, -0.159), (-0.159, 0.385)],
    ]
)
laws = zip(means, covariances, strict=True)
X = np.concatenate([rng.multivariate_normal(*law, 100) for law in laws])
y = np.repeat([0, 1, 1], 100)

# %%
# Where the rows count for much, the components describe them, and the error is high. Where they
# count for less, the components move to where the classes differ. Circles are two standard
# deviations.
circle = 2 * np.array([np.cos(np.linspace(0, 2 * np.pi)), np.sin(np.linspace(0, 2 * np.pi))])
figure, panels = plt.subplots(1, 3, figsize=(10, 3.5), sharex=True, sharey=True)
for ax, kappa in zip(panels, (100.0, 1.0, 0.1), strict=True):
    model = RBFNetworkClassifier(
        2, features="density", covariance_type="full", kappa=kappa, l2=1.0, random_state=0
    )
    model.fit(X, y)
    ax.scatter(*X.T, c=y, s=4, cmap="coolwarm", alpha=0.5)
    point = model.posterior_["posterior"].isel(chain=0, draw=0)
    for k in range(2):
        shape = np.linalg.cholesky(point["covariances"].to_numpy()[k])
        ax.plot(*(point["means"].to_numpy()[k][:, None] + shape @ circle), color="black")
    ax.set_title(f"kappa {kappa:g}: error {100 * (1 - model.score(X, y)):.0f} %")
figure.tight_layout()
plt.show()

# %%
# Under a penalty of absolute values, output weights of components that no class needs are zero.
wine, kinds = load_wine(return_X_y=True)
left = {}
for l1 in (0.1, 1.0, 3.0):
    model = RBFNetworkClassifier(12, features="responsibility", l1=l1, random_state=0)
    left[l1] = int((model.fit(wine, kinds).coef_ != 0).any(axis=0).sum())
left

# %%
# The hidden layer is an embedding: here drawn in the plane by t-SNE, beside the plain measurements.
model = RBFNetworkClassifier(random_state=0).fit(wine, kinds)
figure, panels = plt.subplots(1, 2, figsize=(8, 3.8))
standard = (wine - wine.mean(axis=0)) / wine.std(axis=0)
layers = {"measurements": standard, "hidden layer": model.transform(wine)}
for ax, (name, rows) in zip(panels, layers.items(), strict=True):
    tsne = TSNE(perplexity=20, method="exact", max_iter=400, init="random", random_state=0)
    plane = tsne.fit_transform(rows)
    ax.scatter(*plane.T, c=kinds, s=10, cmap="viridis")
    ax.set_title(name)
    ax.set_xticks([])
    ax.set_yticks([])
figure.tight_layout()
plt.show()
