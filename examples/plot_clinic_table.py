"""
Which rows of a clinic's table can I use?
=========================================

All of them. Here most blood tests were never done, and those that were done had a reason: the
patient had a fever. Three ways are compared on new patients: leave out the rows with missing cells,
fill missing cells with medians, or leave the table as it is.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesrbf import HybridMixtureClassifier
from bayesrbf.plots import plot_missing

# %%
# The patients are made up. Temperature and heart rate are nearly always taken. A blood test is
# done for most who have a fever, and for few others.
rng = np.random.default_rng(1)


def patients(n):
    sepsis = rng.random(n) < 0.3
    X = pd.DataFrame(
        {
            "ward": rng.choice(["surgery", "medicine", "emergency"], n),
            "temperature": rng.normal(np.where(sepsis, 38.3, 37.3), 0.8),
            "heart rate": rng.normal(np.where(sepsis, 100, 84), 14),
            "CRP": np.exp(rng.normal(np.where(sepsis, 4.6, 2.8), 0.9)),
            "lactate": np.exp(rng.normal(np.where(sepsis, 0.9, 0.2), 0.4)),
            "leucocytes": np.exp(rng.normal(np.where(sepsis, 2.6, 2.1), 0.35)),
        }
    )
    tested = rng.random(n) < 1 / (1 + np.exp(-2.5 * (X["temperature"] - 37.9)))
    for column, share in {"CRP": 0.9, "lactate": 0.6, "leucocytes": 0.9}.items():
        X[column] = X[column].where(tested & (rng.random(n) < share))
    X["heart rate"] = X["heart rate"].mask(rng.random(n) < 0.05)
    return X, np.where(sepsis, "sepsis", "none")


X, y = patients(300)
X_new, y_new = patients(2_000)
ax = plot_missing(X.sort_values("temperature"), figsize=(5.0, 3.4))
ax.set(ylabel="patients, by temperature")
plt.show()

# %%
# Rows without any hole are few, and nearly all of them have a fever: they are no fair sample.
whole = X.notna().all(axis=1)
print(f"{whole.sum()} of {len(X)} rows have no hole")
print(
    f"sepsis in these rows {(y[whole] == 'sepsis').mean():.0%}, in all {(y == 'sepsis').mean():.0%}"
)

# %%
# The classifier takes the table with its holes, at fit and at predict. New patients have holes
# too, which logistic regression sees filled with medians.
numbers = [name for name in X if name != "ward"]


def by_medians():
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), ["ward"]),
    )
    return make_pipeline(prepared, LogisticRegression())


models = {
    "rows without a hole, logistic regression": by_medians().fit(X[whole], y[whole]),
    "medians, logistic regression": by_medians().fit(X, y),
    "rows without a hole, mixture": HybridMixtureClassifier(random_state=0).fit(X[whole], y[whole]),
    "the table as it is, mixture": HybridMixtureClassifier(random_state=0).fit(X, y),
}
losses = {name: log_loss(y_new, model.predict_proba(X_new)) for name, model in models.items()}
pd.Series(losses, name="log loss on new patients").round(3)

# %%
# Left: the mean loss of each way. Right: the loss of the last way by the number of blood tests. It
# is lower for patients with more tests.
p = models["the table as it is, mixture"].predict_proba(X_new)
loss = -np.log(p[np.arange(len(p)), (y_new == "sepsis").astype(int)])
tests = X_new[["CRP", "lactate", "leucocytes"]].notna().sum(axis=1).to_numpy()
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.2), layout="constrained")
left.barh(list(losses), list(losses.values()), color="C0")
left.invert_yaxis()
left.set(xlabel="log loss on new patients (nats)")
right.bar(range(4), [loss[tests == k].mean() for k in range(4)], color="C0")
right.set(xticks=range(4), xlabel="blood tests done", ylabel="log loss (nats)")
plt.show()

# %%
# The tests depend on the temperature, which the table has. So a missing test says nothing beyond
# it, and may be ignored. If tests are done for a reason that the table does not have,
# ``missingness="informative"`` uses the missing cells as information.
