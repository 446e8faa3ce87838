"""A sparse mixture as the last layer of a network beside softmax: MNIST, after Hayashi (2021).

The network is smaller than the paper's. Both heads follow the same normalisation, learn from the
same images in the same order, and see the same number of steps.

See Hayashi, Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR; section
4.2, table 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Final

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from bayesrbf.datasets import data_folder
from bayesrbf.torch import SDGMHead
from reproduce.cells import Cell, Figures

HEADS: Final = ("softmax", "SDGM")
SIZES: Final = (2, 10)  # Features before the last layer.
N_CLASSES: Final = 10
N_COMPONENTS: Final = 2
BATCH: Final = 128
EPOCHS: Final = 10
LONGER: Final = 30  # Epochs of a second run with two features: so narrow a network learns slowly.
REFIT: Final = 0.8
"""Fraction of the epochs after which weights are pruned and the rest trained without penalty."""


def cells(n_images: int, seeds: int = 1) -> Iterator[Cell]:
    """Cells of table 2's rows on MNIST, a network a seed; two features are trained longer, too.

    A cell has the error in % and the log loss on the test images, and the head's weights that are
    not zero.
    """
    for n_features in SIZES:
        for head in HEADS:
            for seed in range(seeds):
                name = f"mnist/{n_features}/{head}/{n_images}/{seed}"
                yield Cell(name, partial(_mnist, n_features, head, n_images, seed, EPOCHS))
    for head in HEADS:
        for seed in range(seeds):
            name = f"mnist/2/{head}, {LONGER} epochs/{n_images}/{seed}"
            yield Cell(name, partial(_mnist, 2, head, n_images, seed, LONGER))


@cache
def _images() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and labels, test images and labels."""
    with np.load(data_folder() / "mnist.npz") as file:
        X, X_new = (torch.from_numpy(file[f"x_{part}"]) for part in ("train", "test"))
        y, y_new = (torch.from_numpy(file[f"y_{part}"]).long() for part in ("train", "test"))
    return X[:, None].float() / 255, y, X_new[:, None].float() / 255, y_new


def _mnist(n_features: int, head: str, n_images: int, seed: int, epochs: int) -> Figures:
    """One network on MNIST."""
    X, y, X_new, y_new = _images()
    some = torch.randperm(len(X), generator=torch.Generator().manual_seed(seed))[:n_images]
    network = trained(n_features, head, X[some], y[some], seed, epochs)
    return scores(network, X_new, y_new)


def make_network(n_features: int, head: str) -> nn.Sequential:
    """A network from images of one channel to class logits: three convolutions, features, head.

    The features have mean 0 and variance 1.
    """
    last: nn.Module = nn.Linear(n_features, N_CLASSES)
    if head == "SDGM":
        last = SDGMHead(n_features, N_CLASSES, n_components=N_COMPONENTS, covariance="full")
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4, n_features),
        nn.BatchNorm1d(n_features, affine=False),
        last,
    )


def trained(
    n_features: int, head: str, X: torch.Tensor, y: torch.Tensor, seed: int, epochs: int = EPOCHS
) -> nn.Sequential:
    """Train from random weights and return the network in evaluation mode.

    The mixture's penalty rises over the first half.
    """
    torch.manual_seed(seed)
    network = make_network(n_features, head)
    last = network[-1]
    sparse = hasattr(last, "prune")
    groups = [{"params": network[:-1].parameters()}, {"params": last.parameters(), "lr": 0.05}]
    optimiser = torch.optim.Adam(groups, lr=0.005)
    decay = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, epochs)
    for epoch in range(epochs):
        penalised = sparse and epoch < REFIT * epochs
        beta = min(1.0, 2 * epoch / epochs) if penalised else 0.0
        if sparse and not penalised:
            last.prune()
            last.eval()
        for rows in torch.randperm(len(X)).split(BATCH):
            if len(rows) < 2:  # one row has no variance to normalise with
                continue
            loss = cross_entropy(network(X[rows]), y[rows])
            if beta:
                loss = loss + beta * last.kl() / len(X)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        decay.step()
    return network.eval()


def scores(network: nn.Sequential, X: torch.Tensor, y: torch.Tensor) -> Figures:
    """Error in % and log loss in nats on images, and the head's weights that are not zero."""
    with torch.no_grad():
        logits = torch.cat([network(part) for part in X.split(1000)])
    last = network[-1]
    sparse = hasattr(last, "nnz")
    size = last.weight.numel() if sparse else sum(part.numel() for part in last.parameters())
    return {
        "error": 100 * float((logits.argmax(dim=1) != y).double().mean()),
        "log_loss": float(cross_entropy(logits, y)),
        "weights": last.nnz() if sparse else size,
        "all_weights": size,
    }
