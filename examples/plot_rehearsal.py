"""
Do these intervals hold, on these rows?
=======================================

An interval of a class probability is right if the model is right. ``rehearse`` tries the intervals
where the model is wrong. It fits models of other families to the table and draws labels from their
probabilities. Then it fits the classifier to these labels, and compares its intervals with the
probabilities that the labels were drawn from.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from bayesrbf import HybridMixtureClassifier, rehearse
from bayesrbf.plots import plot_rehearsal

X, y = load_wine(return_X_y=True, as_frame=True)
model = HybridMixtureClassifier(random_state=0).fit(X, y)

# %%
# Every teacher costs as many fits as there are repeats. The model stays as it is.
rehearsal = rehearse(model, X, y, n_repeats=2, draws=200)
print(rehearsal.attrs["sentence"])
rehearsal[["coverage", "coverage_error", "width"]].to_dataframe().round(2)

# %%
# Below the diagonal intervals are narrower than they promise.
plot_rehearsal(rehearsal)
plt.show()
