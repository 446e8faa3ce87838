"""
Do the centres measure the same patients?
=========================================

Four centres measured two laboratory values of patients of two kinds. Many values are missing, and
the last centre sent few patients. Are its patients other ones, or are eight rows just too few to
tell? A *hierarchical* model answers both at once: the means of the centres share a normal prior,
whose spread is learned, so that a small centre borrows from the others. No estimator of this
package is that model. It is written in PyMC, and the rows with holes are one node of it.
"""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

from bayesrbf.models import observe_mixture

rng = np.random.default_rng(0)
names = ["north", "east", "south", "west"]
centre = np.repeat([0, 1, 2, 3], [40, 30, 30, 8])
shift = np.array([[0.6, 0.0], [-0.5, 0.5], [0.0, -0.6], [0.4, 0.3]])
severe = rng.random(centre.size) < 0.4
truth = np.where(severe[:, None], [2.0, 1.5], [-1.0, -1.0]) + shift[centre]
cells = truth + 0.7 * rng.normal(size=truth.shape)
cells[rng.random(cells.shape) < 0.3] = np.nan
print(f"{np.isnan(cells).mean():.0%} of the cells are missing")

# %%
# The model says what the centres share: kinds of patients, how much these vary, and the spread of
# the means between centres. ``means[centre]`` are the means of every row's own centre. Missing
# cells and the kind of a patient are summed out, so NUTS sees no more than these variables.
coords = {"centre": names, "kind": ["mild", "severe"], "value": ["CRP", "lactate"]}
with pm.Model(coords=coords) as model:
    common = pm.Normal("common", [[-1.0], [1.0]], 1.0, dims=("kind", "value"))
    spread = pm.HalfNormal("spread", 1.0)
    dims = ("centre", "kind", "value")
    means = pm.Deterministic("means", common + spread * pm.Normal("shifts", dims=dims), dims=dims)
    shares = pm.Dirichlet("shares", np.ones(2), dims=("centre", "kind"))
    scale = pm.HalfNormal("scale", 1.0, dims=("kind", "value"))
    covariances = np.eye(2) * scale[:, :, None] ** 2
    observe_mixture("rows", cells, shares[centre], means[centre], covariances)
    draws = pm.sample(800, tune=500, chains=2, cores=1, random_seed=0, progressbar=False)

# %%
# ``spread`` is how much means differ between centres. (Put the variable of most dims first: behind
# ``common``, ArviZ 1.3 takes the dims of ``means`` in another order than the values, and the names
# of its lines are wrong.)
az.summary(draws, var_names=["means", "common", "spread"], round_to=2)

# %%
# Posterior means with 80 % intervals beside the averages of the cells that were measured. The
# averages mix both kinds of patients; the model takes them apart. Intervals are wide where a centre
# has few patients of a kind, and the means there are drawn to the dotted ones, which all share.
posterior = draws["posterior"]["means"].stack(sample=("chain", "draw"))
low, middle, high = posterior.quantile([0.1, 0.5, 0.9], "sample").to_numpy()
fig, panels = plt.subplots(1, 2, sharey=True, figsize=(9, 3), layout="constrained")
for column, ax in enumerate(panels):
    for kind, colour in enumerate(["C0", "C3"]):
        at = middle[:, kind, column]
        reach = [at - low[:, kind, column], high[:, kind, column] - at]
        places = np.arange(4) + 0.1 * kind
        ax.errorbar(at, places, xerr=reach, fmt="o", color=colour, label=coords["kind"][kind])
        shared = float(draws["posterior"]["common"][..., kind, column].mean())
        ax.axvline(shared, color=colour, linestyle=":", linewidth=1)
    averages = [np.nanmean(cells[centre == one, column]) for one in range(4)]
    ax.plot(averages, np.arange(4), "kx", label="average of the cells")
    ax.set(xlabel=coords["value"][column], yticks=range(4), yticklabels=names)
panels[1].legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
