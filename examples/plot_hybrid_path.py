"""
Density or discrimination: what shall the fit be for?
=====================================================

A Gaussian with independent columns per class describes the measurements of tumours badly, and its
class probabilities are poor. A blend keeps some of the density and learns the classes.
"""

# %%
# The path begins at the likelihood. Every step starts at the fit of the step before.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from bayesrbf import Blend, HybridMixtureClassifier, hybrid_path
from bayesrbf.plots import plot_hybrid_path

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X = X[["mean radius", "mean texture", "mean smoothness", "mean concavity", "worst area"]]
plain = {"covariance_type": "diag", "tied": False, "column_maps": None}
blend = HybridMixtureClassifier(objective=Blend(), cv=3, random_state=0, **plain)
path = hybrid_path(X, y, estimator=blend)
path.mean("fold").to_dataframe().round(3)

# %%
# Held-out log score and error improve while the held-out density falls.
plot_hybrid_path(path)
plt.show()

# %%
# Out-of-fold predictions can choose the step. The same folds then calibrate the result.
model = HybridMixtureClassifier(
    objective=Blend("cv"), calibrate=True, cv=3, random_state=0, **plain
).fit(X, y)
model.kappa_, model.temperature_
