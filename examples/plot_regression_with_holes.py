"""
How far can I trust a predicted number?
=======================================

A regressor should say less where it knows less. An RBF network is fitted to patients' complete
records. Then more and more cells of new records are hidden. The hidden layer is a density of the
records. Missing cells are drawn from it given the known cells, so intervals are wider where less is
known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bayesrbf import RBFNetworkRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
model = RBFNetworkRegressor(response="auto", random_state=0).fit(X, y)

# %%
# The response is above 0, and so its logarithm may be what is modelled. Then no interval reaches
# below 0, and high predictions have wide ones. Rows that were held out decide.
print(model.status_)

# %%
# Such rows describe the noise, too: a factor of the fitted standard deviation, and
# the degrees of freedom of Student's t.
print(f"scale {model.noise_scale_:.2f}, degrees of freedom {model.noise_df_:.0f}")

# %%
# Errors grow with the holes, and so do the intervals: they hold about nine in ten responses, and
# more where most cells are hidden.
shares = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
order = np.random.default_rng(0).random(X_new.shape)
widths, errors, covered = [], [], []
for share in shares:
    holes = X_new.mask(order < share)
    lower, upper = model.predict_interval(holes, prob=0.9).T
    widths.append(np.mean(upper - lower))
    errors.append(np.sqrt(np.mean((model.predict(holes) - y_new) ** 2)))
    covered.append(100 * np.mean((lower < y_new) & (y_new < upper)))

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
left.plot(shares, widths, "o-", label="mean width of 90 % intervals")
left.plot(shares, errors, "s-", label="root mean squared error")
left.set(xlabel="share of cells hidden", ylabel="progression of the disease", ylim=(0, None))
left.legend()
right.plot(shares, covered, "o-")
right.axhline(90, color="0.5", linestyle="--")
right.set(xlabel="share of cells hidden", ylabel="responses inside, %", ylim=(80, 100))
plt.show()
