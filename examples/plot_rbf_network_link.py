"""
Should a hidden layer know the classes?
=======================================

The hidden layer of an RBF network is a mixture. A link pulls the weights of its components towards
the weights that the output layer gives them. So the mixture describes what the output layer needs.
"""

# %%
# Three clusters, and two components: the upper right cluster is a class of its own, the others
# share one.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.manifold import TSNE

from bayesrbf import PublishedScheme, RBFNetworkClassifier

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
# Without the link the components describe the rows, and the error is high. With it they move to
# where the classes differ. Circles are two standard deviations.
circle = 2 * np.array([np.cos(np.linspace(0, 2 * np.pi)), np.sin(np.linspace(0, 2 * np.pi))])
figure, panels = plt.subplots(1, 3, figsize=(10, 3.5), sharex=True, sharey=True)
for ax, link in zip(panels, (0.0, 1e2, 1e4), strict=True):
    scheme = PublishedScheme("caetano", link=link)
    model = RBFNetworkClassifier(
        2, scheme=scheme, features="density", covariance_type="full", l2=1.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # alternations need not come to rest
        model.set_params(n_init=1, max_iter=25, random_state=0).fit(X, y)
    ax.scatter(*X.T, c=y, s=4, cmap="coolwarm", alpha=0.5)
    point = model.posterior_["posterior"].isel(chain=0, draw=0)
    for k in range(2):
        shape = np.linalg.cholesky(point["covariances"].to_numpy()[k])
        ax.plot(*(point["means"].to_numpy()[k][:, None] + shape @ circle), color="black")
    ax.set_title(f"link {link:g}: error {100 * (1 - model.score(X, y)):.0f} %")
figure.tight_layout()
plt.show()

# %%
# Under a penalty of absolute values, components that no class needs leave their mixture.
wine, kinds = load_wine(return_X_y=True)
left = {}
for l1 in (0.1, 1.0, 3.0):
    model = RBFNetworkClassifier(12, scheme="caetano", l1=l1, n_init=1, max_iter=40, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left[l1] = model.set_params(random_state=0).fit(wine, kinds).coef_.shape[1]
left

# %%
# The hidden layer is an embedding: here that of the joint scheme, drawn in the plane by t-SNE,
# beside the plain measurements.
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
