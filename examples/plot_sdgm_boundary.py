"""
How few numbers draw this boundary?
===================================

A mixture of normal densities for every class has a mean and a covariance for each component. Most
of these numbers describe the rows and not the boundary between the classes. A sparse
discriminative mixture keeps the numbers that the boundary needs and sets the others to zero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from bayesrbf import SDGMClassifier
from bayesrbf.plots import plot_sdgm

# %%
# Three tables of two columns: a straight boundary, a ring, and two moons.
rng = np.random.default_rng(0)
cloud = rng.normal(size=(300, 2))
straight = np.where(cloud[:, 0] + 0.3 * rng.normal(size=300) > 0, "right", "left")
ring = np.where((cloud**2).sum(axis=1) + 0.2 * rng.normal(size=300) < 1.4, "inside", "outside")
moons, of_moon = make_moons(300, noise=0.2, random_state=0)
tables = {
    "straight": (cloud, straight),
    "ring": (cloud, ring),
    "moons": (moons, np.where(of_moon, "lower", "upper")),
}

# %%
# A component has six weights to begin with. One a class is enough for a line or a ring; two are
# given to the moons. The title of each picture says what was left. A solid line is the boundary; a
# dashed one parts the components of a class.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
models = {}
for ax, (name, (X, y)) in zip(axes, tables.items(), strict=True):
    n_components = 2 if name == "moons" else 1
    models[name] = SDGMClassifier(n_components, n_init=2, random_state=0).fit(X, y)
    plot_sdgm(models[name], X, y, ax=ax)
plt.show()

# %%
# The path of each fit. Weights are removed while the evidence for the model rises. The fit stops
# when it rises no more.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for name, model in models.items():
    left.step(range(len(model.path_.n_weights)), model.path_.n_weights, where="post", label=name)
    right.plot(model.path_.evidence, label=name)
left.set(xlabel="step", ylabel="weights left", ylim=(0, None))
right.set(xlabel="step", ylabel="log evidence (nats)")
left.legend()
plt.show()
