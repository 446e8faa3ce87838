"""
I have distances and no columns: which cases stand for a class?
===============================================================

Texts, curves, molecules and pictures are often easier to compare than to describe. A classifier by
exemplars needs nothing but dissimilarities: it chooses a few training cases for each class, and
every answer names the cases that it rests on. Here handwritten digits are compared after one of
them has been moved by a pixel in each direction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from bayesrbf import MedianLVQClassifier
from bayesrbf.plots import plot_exemplars

images, digits = load_digits(return_X_y=True)
rows = np.flatnonzero(np.isin(digits, [3, 5, 8, 9]))[:500]
images, digits = images[rows] / 16, digits[rows]
train, new = np.arange(300), np.arange(300, 500)


# %%
# The dissimilarity of an image to an exemplar: the squared difference at the best of nine places.
# It is no metric, and not symmetric either.
def dissimilarities(these, those):
    padded = np.pad(these.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    moved = [padded[:, i : i + 8, j : j + 8].reshape(-1, 64) for i in range(3) for j in range(3)]
    return np.min([((one[:, None] - those[None]) ** 2).sum(axis=2) for one in moved], axis=0)


matrix = dissimilarities(images[train], images[train])
print(f"largest difference between d[n, m] and d[m, n]: {np.abs(matrix - matrix.T).max():.1f}")

# %%
# Three exemplars a class. New images have to be compared to these twelve alone.
model = MedianLVQClassifier(3, metric="precomputed", random_state=0).fit(matrix, digits[train])
chosen = model.exemplar_columns
to_exemplars = dissimilarities(images[new], images[train][chosen])
matrix_new = model.from_exemplar_columns(to_exemplars)
print(f"error on {len(new)} new images: {np.mean(model.predict(matrix_new) != digits[new]):.1%}")

# %%
# The exemplars are training images, so they can be looked at.
figure, axes = plt.subplots(1, len(chosen), figsize=(9, 1.1), layout="constrained")
for ax, row in zip(axes, sorted(chosen, key=lambda row: digits[row]), strict=True):
    ax.imshow(images[row].reshape(8, 8), cmap="Greys")
    ax.set(title=str(digits[row]), xticks=[], yticks=[])
plt.show()

# %%
# The image that the model is least sure of, and what its answer rests on.
doubtful = int(model.predict_proba(matrix_new).max(axis=1).argmin())
reasons = model.responsible_exemplars(matrix_new)
shown = reasons[reasons["row"] == doubtful].head(4)
plot_exemplars(shown, images[new], images[train], row=doubtful, image_shape=(8, 8))
plt.show()
print(f"it was written as a {digits[new][doubtful]}")
