"""
How does a model get from my notebook to where it is used?
==========================================================

A fitted model is saved to one file and read back somewhere else. The file has numbers and text and
no code, so reading it runs nothing. It also has the draws of the posterior and the training rows,
so it is as confidential as the table.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import bayesrbf
from bayesrbf import HybridMixtureClassifier

wine = load_wine(as_frame=True)
X, y = wine.data.iloc[:, :6], wine.target_names[wine.target]
X, X_new, y, y_new = train_test_split(X, y, test_size=40, random_state=0, stratify=y)
model = HybridMixtureClassifier(random_state=0).fit(X, y).refine("laplace", draws=250)

# %%
# ``save`` returns a fingerprint of the file. Give it to ``load``, which refuses a file with another
# fingerprint. So nobody can change the file on the way without being noticed.
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "wine.safetensors"
digest = model.save(path)
print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB, fingerprint {digest[:12]}...")
loaded = bayesrbf.load(path, digest=digest)

# %%
# The loaded model gives the same probabilities, to the last digit.
np.array_equal(model.predict_proba(X_new), loaded.predict_proba(X_new))

# %%
# It knows the columns by their names. A table without one of them is refused in a sentence.
try:
    loaded.predict_proba(X_new.drop(columns="ash"))
except ValueError as error:
    print(str(error).splitlines()[0])

# %%
# A file that was damaged is refused, too.
damaged = Path(folder.name) / "damaged.safetensors"
damaged.write_bytes(path.read_bytes()[:-8])
try:
    bayesrbf.load(damaged)
except ValueError as error:
    print(str(error).replace(folder.name, "."))

# %%
# Probabilities of the loaded model for new wines, with intervals of 90 %. A cross marks wines that
# are no ``class_1``.
told = loaded.uncertainty(X_new).sel(label="class_1").sortby("probability")
is_class = (y_new == "class_1")[X_new.index.get_indexer(told["obs"])]
places = np.arange(told.sizes["obs"])
figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ax.vlines(places, told["lower"], told["upper"], color="0.75", linewidth=4)
ax.plot(places[is_class], told["probability"][is_class], "o", color="C0", label="class_1")
ax.plot(places[~is_class], told["probability"][~is_class], "x", color="C1", label="another class")
ax.set(xlabel="new wines, by probability", ylabel="probability of class_1", xticks=[])
ax.legend()
plt.show()
folder.cleanup()
