"""
Grant, decline, or ask somebody?
================================

A lender knows what its mistakes cost: a loan that is not paid back costs five, a good customer who
is sent away costs one, and an hour of a colleague who looks at the papers costs a half. ``decide``
takes the cheapest of these for every applicant. This page sets it beside a threshold of one half,
the threshold that follows from the costs, and a threshold that scikit-learn tunes.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    TunedThresholdClassifierCV,
    train_test_split,
)

from bayesrbf import HybridMixtureClassifier

# %%
# The applicants are made up. One in four does not pay back. Many leave the box for their savings
# empty.
rng = np.random.default_rng(0)
n = 2_000
bad = rng.random(n) < 0.25
X = pd.DataFrame(
    {
        "income": np.exp(rng.normal(np.where(bad, 7.5, 7.8), 0.4)),
        "debt": np.exp(rng.normal(np.where(bad, 8.6, 8.0), 0.8)),
        "years in job": rng.gamma(2.0, np.where(bad, 1.5, 3.0)),
        "savings": np.exp(rng.normal(np.where(bad, 6.0, 7.0), 1.0)),
        "home": np.where(rng.random(n) < np.where(bad, 0.3, 0.6), "owns", "rents"),
    }
)
X["savings"] = X["savings"].mask(rng.random(n) < 0.4)
y = np.where(bad, "defaults", "pays")
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# Costs by what the applicant turns out to be, and by what was decided.
MISS, ALARM, LOOK = 5.0, 1.0, 0.5
costs = {
    "defaults": {"grant": MISS, "decline": 0.0},
    "pays": {"grant": 0.0, "decline": ALARM},
}


def mean_cost(y_true, alarm):
    """What answers cost on average; an alarm is an applicant who is declined."""
    missed = (y_true == "defaults") & ~alarm
    return np.where(missed, MISS, np.where((y_true == "pays") & alarm, ALARM, 0.0)).mean()


# %%
# With two classes the cheapest decision is a threshold: decline where the probability of default
# is above ``ALARM / (ALARM + MISS)``. scikit-learn has two classifiers that answer by a threshold,
# and the one that tunes it needs rows for that.
model = HybridMixtureClassifier(random_state=0)
threshold = ALARM / (ALARM + MISS)
fixed = FixedThresholdClassifier(model, threshold=threshold, pos_label="defaults").fit(X, y)
cost_score = make_scorer(
    lambda y_true, said, pos_label: mean_cost(y_true, said == pos_label),
    greater_is_better=False,
    pos_label="defaults",
)
tuned = TunedThresholdClassifierCV(
    model, scoring=cost_score, cv=3, thresholds=np.linspace(0.02, 0.98, 49), random_state=0
).fit(X, y)
model.fit(X, y)
print(f"threshold from the costs {threshold:.2f}, tuned {tuned.best_threshold_:.2f}")

# %%
# ``decide`` needs no threshold, and has a third answer: ``reject`` is the cost of referring an
# applicant to somebody. Here we assume that the colleague is always right.
decided = model.decide(X_new, costs, reject=LOOK)
refer = decided["refer"].to_numpy()
declined = decided["best"].to_numpy() == "decline"
with_colleague = np.where(refer, LOOK, 0.0).mean() + (~refer).mean() * mean_cost(
    y_new[~refer], declined[~refer]
)
cost = {
    "grant all": mean_cost(y_new, np.zeros(len(y_new), bool)),
    "decline all": mean_cost(y_new, np.ones(len(y_new), bool)),
    "most probable class": mean_cost(y_new, model.predict(X_new) == "defaults"),
    "threshold from the costs": mean_cost(y_new, fixed.predict(X_new) == "defaults"),
    "tuned threshold": mean_cost(y_new, tuned.predict(X_new) == "defaults"),
    "decide": mean_cost(y_new, declined),
    "decide, or refer": with_colleague,
}
print(f"{refer.mean():.0%} of the applicants are referred")
pd.Series(cost, name="mean cost of an applicant").round(3)

# %%
# Left: what each rule costs on applicants who took no part in the fit. ``decide`` and the
# threshold from the costs are the same rule. Right: what other thresholds would have cost these
# applicants.
p = model.predict_proba(X_new)[:, list(model.classes_).index("defaults")]
thresholds = np.linspace(0.01, 0.99, 99)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
left.barh(list(cost), list(cost.values()), color="C0")
left.invert_yaxis()
left.set(xlabel="mean cost of an applicant")
right.plot(thresholds, [mean_cost(y_new, p > t) for t in thresholds], color="C0")
right.axvline(threshold, color="C1", label="from the costs")
right.axvline(tuned.best_threshold_, color="C2", linestyle="--", label="tuned")
right.set(xlabel="decline where p(default) is above", ylabel="mean cost of an applicant")
right.legend()
plt.show()

# %%
# A fit gives one answer. After ``refine``, ``probability_best`` is the share of the draws under
# which the decision costs least. Near one half, a little more data could change the decision.
sure = model.refine("laplace", draws=100).decide(X_new, costs)["probability_best"].to_numpy()
print(f"{(sure < 0.9).mean():.0%} of the decisions hold under fewer than nine draws in ten")
