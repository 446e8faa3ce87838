"""
The disease is rarer here: are the probabilities still right?
=============================================================

A classifier learns how frequent the classes are. Where it is used, they may be more or less
frequent. Then every probability is wrong, also that of a calibrated classifier. ``class_prior``
gives the new frequencies, and ``adapt_prior`` estimates them from new rows without labels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from bayesrbf import HybridMixtureClassifier

bunch = load_breast_cancer(as_frame=True)
columns = ["mean radius", "mean texture", "mean smoothness", "mean symmetry"]
X, y = bunch.data[columns], bunch.target_names[bunch.target]
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
model = HybridMixtureClassifier(random_state=0).fit(X, y)

# %%
# The new clinic screens. Malignant tumours are made ten times rarer among its patients, and look
# as they did before.
rng = np.random.default_rng(0)
kept = (y_new == "benign") | (rng.random(len(y_new)) < 0.1)
X_new, y_new = X_new[kept], y_new[kept]
true_share = (y_new == "malignant").mean()

# %%
# ``estimate_prior`` looks at the new rows alone, without their labels. Its ``gain`` is in nats;
# without any shift it would be about one half. ``adapt_prior`` changes all later predictions, so
# a second model is fitted for it here.
adapted = HybridMixtureClassifier(random_state=0).fit(X, y)
estimate = adapted.estimate_prior(X_new)
adapted.adapt_prior(X_new)
print(f"gain {estimate.attrs['gain']:.1f} nats; malignant among the new patients: {true_share:.2f}")
estimate[["trained", "probability", "standard_error"]].to_dataframe().round(2)

# %%
# If you know the new frequencies, give them.
shares = {"malignant": true_share, "benign": 1 - true_share}
given = HybridMixtureClassifier(class_prior=shares, random_state=0).fit(X, y)
models = {"as trained": model, "adapted": adapted, "true frequencies given": given}
figures = {}
for name, one in models.items():
    p = one.predict_proba(X_new)[:, list(one.classes_).index("malignant")]
    figures[name] = {
        "patients expected": p.sum(),
        "log loss": log_loss(y_new == "malignant", p),
        "alarms at .5": int((p > 0.5).sum()),
    }
print(f"malignant tumours: {(y_new == 'malignant').sum()} in {len(y_new)} patients")
pd.DataFrame(figures).T.round(3)

# %%
# As trained, the model expects far too many malignant tumours, and gives too many alarms. The
# picture shows the effect on each patient: probabilities become smaller, and their order stays.
before, after = (
    one.predict_proba(X_new)[:, list(one.classes_).index("malignant")] for one in (model, adapted)
)
figure, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
for label, colour in (("benign", "C0"), ("malignant", "C1")):
    own = y_new == label
    ax.plot(before[own], after[own], "o", color=colour, alpha=0.6, label=label)
ax.plot([0, 1], [0, 1], color="0.5", linestyle="--")
ax.set(xlabel="p(malignant) as trained", ylabel="p(malignant) adapted", aspect="equal")
ax.legend()
plt.show()

# %%
# This is right if the classes look as they did, and only their frequencies differ. If the new
# patients are of another kind, ``novelty`` shows it. The model then needs training rows of that
# kind.
