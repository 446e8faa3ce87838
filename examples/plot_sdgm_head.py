"""
What does a mixture do as the last layer of a network?
======================================================

A softmax layer cuts the space of a network's features into wedges, one for each class. A sparse
discriminative Gaussian mixture gives each class some normal components there instead, and drops the
weights that it can do without. Here a small convolutional network reduces handwritten digits to two
numbers. It is trained once with each of these two last layers; all else is the same (after Hayashi
and Uchida, 2021, section 4.2 and figure 5). It needs ``pip install torch``.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from bayesrbf.datasets import data_folder
from bayesrbf.torch import SDGMHead

torch.set_num_threads(1)
N_CLASSES = 10
SUBSET = 10_000

# %%
# scikit-learn's digits come with it. Where the environment variable ``BAYESRBF_DATA`` names the
# folder of the benchmark tables, a part of MNIST's training images joins them, and all its test
# images.
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8).astype(np.float32) / 16
tables = {
    "digits": train_test_split(images, labels, test_size=0.3, stratify=labels, random_state=0)
}
if "BAYESRBF_DATA" in os.environ:
    with np.load(data_folder() / "mnist.npz") as mnist:
        parts = [mnist["x_train"][:SUBSET, None], mnist["x_test"][:, None]]
        tables["MNIST"] = [part.astype(np.float32) / 255 for part in parts]
        tables["MNIST"] += [mnist["y_train"][:SUBSET], mnist["y_test"]]


# %%
# The features are normalised, the same way for both layers: which of the mixture's weights can be
# zero depends on the origin, and how fast they are learned on the scale.
def make_network(head, side):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=1 if side < 16 else 2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4, 2),
        nn.BatchNorm1d(2, affine=False),
        head,
    )


# %%
# The mixture's penalty grows over the first half of the epochs. After four fifths of them, weights
# that are small beside their noise are pruned. The last epochs train the other weights without the
# penalty. The last layer learns faster than the others.
def train(network, images, labels, n_epochs, batch_size=64):
    head = network[-1]
    sparse = isinstance(head, SDGMHead)
    groups = [{"params": network[:-1].parameters()}, {"params": head.parameters(), "lr": 0.05}]
    optimiser = torch.optim.Adam(groups, lr=0.01)
    decay = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, n_epochs)
    for epoch in range(n_epochs):
        refit = epoch >= 0.8 * n_epochs
        if sparse and refit:
            head.prune()
            head.eval()
        for rows in torch.randperm(len(images)).split(batch_size):
            if len(rows) < batch_size:
                continue
            loss = nn.functional.cross_entropy(network(images[rows]), labels[rows])
            if sparse and not refit:
                loss = loss + min(1.0, 2 * epoch / n_epochs) * head.kl() / len(images)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        decay.step()
    return network.eval()


def compare(name, n_epochs):
    X, X_test, y, y_test = (torch.as_tensor(part) for part in tables[name])
    y, y_test = y.long(), y_test.long()
    networks = {}
    for title in ("softmax", "SDGM"):
        torch.manual_seed(0)
        head = nn.Linear(2, N_CLASSES)
        if title == "SDGM":
            head = SDGMHead(2, N_CLASSES, n_components=2, covariance="full")
        networks[title] = network = train(make_network(head, X.shape[-1]), X, y, n_epochs)
        with torch.no_grad():
            logits = network(X_test)
        error = (logits.argmax(dim=1) != y_test).double().mean()
        log_loss = nn.functional.cross_entropy(logits, y_test)
        weights = f"{head.weight.numel() + N_CLASSES}, intercepts included"
        if title == "SDGM":
            weights = f"{head.nnz()} of {head.weight.numel()}"
        print(f"{name}, {title}: error {error:.1%}, log loss {log_loss:.3f}, weights {weights}")
    draw(name, networks, X_test, y_test)


# %%
# The picture: where the test images lie between the network and its last layer, and which class
# that layer gives to each place.
def draw(name, networks, X, y):
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    for axes, (title, network) in zip(panels, networks.items(), strict=True):
        with torch.no_grad():
            features = network[:-1](X)
            low, high = features.quantile(torch.tensor([0.001, 0.999]), dim=0)
            low, high = (1.1 * low - 0.1 * high).numpy(), (1.1 * high - 0.1 * low).numpy()
            grid = np.meshgrid(*np.linspace(low, high, 300).T)
            places = torch.from_numpy(np.stack(grid, axis=-1)).float().reshape(-1, 2)
            given = network[-1](places).argmax(dim=1).reshape(300, 300).numpy()
        colours = {"cmap": "tab10", "vmin": -0.5, "vmax": 9.5}
        axes.imshow(
            given,
            extent=(low[0], high[0], low[1], high[1]),
            origin="lower",
            aspect="auto",
            alpha=0.25,
            **colours,
        )
        points = axes.scatter(*features.T.numpy(), c=y.numpy(), s=4, **colours)
        axes.set(title=f"{name}: {title}", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    figure.colorbar(points, ax=panels, ticks=range(N_CLASSES), label="digit")
    plt.show()


compare("digits", n_epochs=60)

# %%
# There are 540 test images: errors that differ by less than a percent or two differ by chance. The
# mixture has 114 weights before pruning: 6 for each of 20 components, one of which is fixed.

# %%
# The same with MNIST, where it is there.
if "MNIST" in tables:
    compare("MNIST", n_epochs=12)
