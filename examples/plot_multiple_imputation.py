"""
How unsure do holes make an analysis?
=====================================

A table with missing cells can be filled and then analysed as if it were complete. The result is
then too sure: a filled cell is a guess, and the analysis does not know that. *Multiple
imputation* fills the table several times by draws, analyses each, and counts how much the answers
differ. Here a linear regression of the progression of diabetes loses most of its measurements of
body mass and blood pressure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from bayesrbf import MixtureDensity

columns = ["bmi", "bp", "s5", "target"]
table = load_diabetes(as_frame=True, scaled=False).frame[columns].astype(float)
table = (table - table.mean()) / table.std()

# %%
# Whether a cell is hidden depends on cells that are seen: patients with a low ``s5`` were seldom
# measured. Rows without a hole are then no fair sample.
rng = np.random.default_rng(0)
share = 1 / (1 + np.exp(2 * table["s5"] - 0.5))
holes = table.copy()
for column in ("bmi", "bp"):
    holes[column] = holes[column].mask(rng.random(len(table)) < share)
print(holes.isna().mean().round(2).to_dict())


# %%
# The analysis of a table is a least-squares fit. Its results are the slopes and their squared
# standard errors.
def regress(complete):
    X = np.column_stack([np.ones(len(complete)), complete[columns[:-1]]])
    y = complete["target"].to_numpy()
    slopes, rest = np.linalg.lstsq(X, y)[:2]
    variances = rest / (len(X) - X.shape[1]) * np.diag(np.linalg.inv(X.T @ X))
    return slopes[1:], variances[1:]


# %%
# A density of all four columns says what a missing cell may be, given the rest of its row. The
# response belongs to them: an imputation that ignores it flattens the slopes. ``refine`` draws the
# density itself from its posterior, so that each imputation is under another one.
density = MixtureDensity(2, covariance_type="tied", random_state=0).fit(holes).refine("laplace")
filled = density.conditional(holes, draws=30).sample(30)
answers = [regress(one) for one in filled]

# %%
# Rubin's rules: the estimates are averaged. Their variance is the mean of the squared standard
# errors, and the variance between the tables.
slopes = np.array([one for one, _ in answers])
within = np.mean([one for _, one in answers], axis=0)
between = slopes.var(axis=0, ddof=1)
pooled = slopes.mean(axis=0), within + (1 + 1 / len(slopes)) * between
print("share of the variance that is due to holes:", (between / pooled[1]).round(2))

# %%
# Beside it: the table without holes, the rows that have none, and one table that is filled with
# means. Its intervals leave out the doubt about the filled cells, so they are too narrow.
found = {
    "complete table": regress(table),
    "multiple imputation": pooled,
    "filled with means": regress(density.conditional(holes).mean().combine_first(holes)),
    "rows without holes": regress(holes.dropna()),
}
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
for place, (name, (estimate, variance)) in enumerate(found.items()):
    at = np.arange(3) + 0.15 * (place - 1.5)
    axes.errorbar(at, estimate, 1.96 * np.sqrt(variance), fmt="o", capsize=3, label=name)
axes.axhline(0, color="0.5", linewidth=0.8)
axes.set(xticks=range(3), xticklabels=columns[:-1], ylabel="slope, 95 % interval")
axes.legend(fontsize="small")
plt.show()

# %%
# You can also ask for an interval of each missing cell.
one = holes[holes["bmi"].isna()].iloc[:3]
asked = density.conditional(one, draws=30)
for q in (0.05, 0.95):
    print(q, asked.quantile(q)["bmi"].round(2).to_dict())
print("hidden:", table["bmi"].loc[one.index].round(2).to_dict())
