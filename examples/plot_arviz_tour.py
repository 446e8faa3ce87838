"""
Can I trust these draws?
========================

Every posterior here is an ArviZ ``DataTree``, for every method that draws. So the functions of
ArviZ work on it. This page draws the posterior of a mixture by NUTS and asks ArviZ the usual
questions. Do the chains agree? Are there enough draws? Does the model look like the data? How well
is each row predicted without itself?
"""

import arviz as az
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from bayesrbf import HybridMixtureClassifier, MedianLVQClassifier, predictive_check

iris = load_iris(as_frame=True)
X, y = iris.data.iloc[:, :2], iris.target_names[iris.target]
X.columns = ["length", "width"]
model = HybridMixtureClassifier(
    covariance_type="full",
    shared_covariance=True,
    objective="likelihood",
    column_transforms=None,
    calibrate=False,
    random_state=0,
).fit(X, y)
model.refine("nuts", draws=1_000, chains=4)
model.posterior_

# %%
# Names of variables and dims are those of the declared graph.
az.summary(model.posterior_, var_names=["means", "class_probabilities"], round_to=2)

# %%
# Do the chains agree? Their lines coincide, and none drifts.
az.plot_trace_dist(model.posterior_, var_names=["means"], compact=True)
plt.show()

# %%
# ``diagnose`` has these figures and others with a sentence for each.
model.diagnose()

# %%
# Does the model look like the data? The picture has tables drawn from the posterior and the real
# one. The real widths have a spike that no drawn table has: they were rounded to a tenth, and one
# value is frequent.
print(X["width"].value_counts().head(3).to_dict())
checked = predictive_check(model, 30)
az.plot_ppc_dist(checked, var_names=["length", "width"], num_samples=30)
plt.show()

# %%
# How well would each label be predicted without it? The Pareto k of a row says whether the estimate
# can be trusted. ``y`` is the log probability of a label given the cells. The draws target ``x_y``,
# the log density of both, which is in the group that ArviZ reads; ``y`` is put in its place.
labels = model.posterior_.assign(log_likelihood=model.posterior_["log_scores"])
az.loo(labels, var_name="y")

# %%
# Every classifier has ``y``, so a model of labels and cells can be compared with one of labels
# alone.
other = MedianLVQClassifier(random_state=0).fit(X, y).refine("gibbs", draws=500)
az.compare({"mixture": labels, "exemplars": other.posterior_}, var_name="y")
