"""
Do seven in ten really mean seven in ten?
=========================================

Of the rows that are given a probability of .7, seven in ten should be of the class. A density that
takes related columns for independent counts the same information several times. Its probabilities
are far too extreme. ``calibrate=True`` fits a temperature, and an exponent of the class shares, to
predictions of rows that were held out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import cross_val_predict

from bayesrbf import HybridMixtureClassifier
from bayesrbf.plots import plot_reliability

bunch = load_breast_cancer(as_frame=True)
X = bunch.data[[name for name in bunch.data if name.startswith("mean")]]
y = bunch.target_names[bunch.target]

# %%
# The first model is a density with independent columns in each class, not calibrated. The second
# is the same, calibrated. The third is the default, which is fitted to the classes as well.
independent = {"objective": "likelihood", "covariance_type": "diag", "shared_covariance": False}
models = {
    "before": HybridMixtureClassifier(**independent, calibrate=False, random_state=0),
    "after": HybridMixtureClassifier(**independent, calibrate=True, random_state=0),
    "default": HybridMixtureClassifier(random_state=0),
}
held_out = {
    name: cross_val_predict(model, X, y, cv=5, method="predict_proba")[:, 1]
    for name, model in models.items()
}

# %%
# A temperature alone would change no answer. The exponent changes a few, so the error moves a
# little. The scores that judge probabilities become better.
pd.DataFrame(
    {
        name: {
            "temperature": models[name].fit(X, y).temperature_,
            "error": 1 - accuracy_score(y == "malignant", p > 0.5),
            "log loss": log_loss(y == "malignant", p),
            "Brier score": brier_score_loss(y == "malignant", p),
        }
        for name, p in held_out.items()
    }
).T.round(3)

# %%
# Rows in groups of like probability: what was predicted for a class (``benign`` above,
# ``malignant`` below), and what share was of it. A calibrated classifier lies within the grey bars
# nine times in ten.
figure, axes = plt.subplots(2, 3, figsize=(10, 7.2), layout="constrained")
for column, (name, p) in zip(axes.T, held_out.items(), strict=True):
    plot_reliability(np.column_stack([1 - p, p]), y, axes=column)
    column[0].set_title(name)
plt.show()
