"""
How does a table become a TRIPOD report?
========================================

A study that develops a prediction model says how many rows it took and why, how well the model does
on rows that it had not seen, how much it hangs on which rows these were, and how it does elsewhere.
TRIPOD+AI (Collins et al. 2024, BMJ 385:e078378) lists what such a paper has to tell. Here one table
takes the whole way, in some minutes: plan, report, validation, update.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bayesrbf
from bayesrbf.datasets import load_table

# %%
# SUPPORT (Knaus et al. 1995) has 9,105 seriously ill patients, with values of day 3. Which of them
# died in hospital? ``BAYESRBF_DATA`` names the folder of the table. Without it the table of breast
# cancers of scikit-learn stands in, and the text speaks of figures of another table.
name, event = (
    ("support2", "dead") if "BAYESRBF_DATA" in os.environ else ("breast_cancer", "malignant")
)
table = load_table(name)
rng = np.random.default_rng(0)
rows = rng.permutation(len(table.X))[:2_000]
here, elsewhere = rows[:250], rows[250:]
share = (table.y[here] == event).mean()
print(f"{share:.0%} of {here.size} rows are {event!r}; {table.X.shape[1]} columns")

# %%
# How many rows should there be? The criteria of Riley et al. are those of regression models with so
# many parameters. A study often has what it has, as this one, and says by how much it falls short.
#
# .. code-block:: console
#
#    $ bayesrbf plan --events 0.26 --columns 25 --c-statistic 0.75
print(bayesrbf.plan_sample_size(share, table.X.shape[1], c_statistic=0.75))

# %%
# The report fits the table, holds its rows out, and writes a page, the model and ``tripod.md``.
# Refits to bootstrap samples say how stable its probabilities are, and those to drawn tables
# whether more rows would help. 200 refits are usual. Here are 3, because they take most of the
# time.
#
# .. code-block:: console
#
#    $ bayesrbf report TABLE.csv --target outcome --event dead --threshold 0.3 --out DIR --tripod \
#        --stability 200 --intended-use "Talks about aims of care" --population "Adults, day 3"
folder = tempfile.TemporaryDirectory()
file, out = Path(folder.name) / "table.csv", Path(folder.name) / "report"
table.X.iloc[here].assign(outcome=table.y[here]).to_csv(file, index=False)
command = [sys.executable, "-m", "bayesrbf", "report", file, "--target", "outcome", "--out", out]
command += ["--event", event, "--threshold", "0.3", "--tripod", "--stability", "3", "--json"]
command += ["--intended-use", "Talks about aims of care", "--population", "Adults, day 3"]
told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
print(told["verdict"], told["evidence"], told["learning_curve"]["sentence"], sep="\n")

# %%
# ``tripod.md`` has every item, with what the report knows of it, where that stands on the page, and
# a box for what only the author can write. Two of them:
items = (out / "tripod.md").read_text(encoding="utf-8").split("### ")
print(*(item for item in items if item.startswith(("10 ", "26 "))), sep="\n")

# %%
# The learning curve: the fitted model stands for the truth, and its recipe is fitted to tables that
# are drawn from it. Bands hold the central 80 % of the fits, of which there are two of each size
# here. The dotted line is the table.
curve = told["learning_curve"]
fig, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, (figure, values) in zip(panels, curve["figures"].items(), strict=False):
    mean, low, high = np.transpose(values)
    ax.fill_between(curve["sizes"], low, high, alpha=0.25)
    ax.plot(curve["sizes"], mean, "o-")
    ax.axvline(here.size, color="grey", linestyle=":")
    ax.set(xlabel="rows", ylabel=figure)
panels[0].set_ylim(0)
panels[1].axhline(1.0, color="grey", linewidth=0.8)
plt.show()

# %%
# Elsewhere more patients die: here half of those who lived are left out, to play another hospital.
# How many rows does it take to judge the model? Half of the rows that there are update it, and the
# others judge it: too few for the slope, enough for all else.
auroc = told["against_rest"][event]["auroc"]["value"]
sent = elsewhere[(table.y[elsewhere] == event) | (rng.random(elsewhere.size) < 0.5)]
local, new = np.array_split(sent, 2)
print(bayesrbf.plan_sample_size((table.y[sent] == event).mean(), c_statistic=auroc, threshold=0.3))
print(f"There are {new.size}.")

# %%
# On the command line ``bayesrbf validate`` and ``bayesrbf update`` do the same with files. As it
# was, the model expects too few deaths elsewhere: its curve lies above the diagonal. An intercept
# moves it there, and what is decided by it is worth more. The sentence on the update is what a
# paper says at items 12f and 24 of TRIPOD+AI.
model = bayesrbf.load(out / "model.safetensors")
updated = bayesrbf.recalibrate(model, table.X.iloc[local], table.y[local])
print(updated.updates_[0].sentence)
fig, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
left.plot([0, 1], [0, 1], color="grey", linestyle=":")
for title, one in {"as it was": model, "updated": updated}.items():
    p = one.predict_proba(table.X.iloc[new])[:, one.classes_.tolist().index(event)]
    found = bayesrbf.performance(table.y[new], p, event=event)
    (figures,) = found.events
    for figure in ("observed_to_expected", "slope", "auroc"):
        value, low, high = (
            getattr(getattr(figures, figure), end) for end in ("value", "lower", "upper")
        )
        print(f"{title:<10} {figure:<21} {value:.2f} ({low:.2f} to {high:.2f})")
    curve = figures.curve
    left.fill_between(curve.probability, curve.lower, curve.upper, alpha=0.2)
    left.plot(curve.probability, curve.observed, label=title)
    benefit = figures.decision_curve
    right.plot(benefit.thresholds, benefit.model, label=title)
right.plot(benefit.thresholds, benefit.everybody, color="grey", linestyle=":", label="all")
left.set(xlabel=f"probability of {event!r}", ylabel="observed share", aspect="equal")
right.set(xlabel="threshold", ylabel="net benefit of a row", xlim=(0, 0.8), ylim=(-0.05, 0.5))
right.legend()
plt.show()
folder.cleanup()
