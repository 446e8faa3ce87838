"""Trained as its documentation says, the head is sparse and errs little more than Bayes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler
from torch.nn.functional import cross_entropy

from bayesrbf.torch.sdgm_head import SDGMHead

CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
VARIANCE = 0.03


def ripley_like(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ripley's mixture: two classes of two normal components each."""
    rng = np.random.default_rng(seed)
    labels, components = rng.integers(2, size=(2, n_rows))
    return rng.normal(CENTRES[labels, components], VARIANCE**0.5), labels


def bayes_rule(points: np.ndarray) -> np.ndarray:
    squares = ((points[:, None, None, :] - CENTRES) ** 2).sum(axis=-1)
    return np.exp(-squares / (2 * VARIANCE)).sum(axis=2).argmax(axis=1)


def train(x: torch.Tensor, y: torch.Tensor, *, beta: float, n_steps: int = 1000) -> SDGMHead:
    """The recipe: a penalty that sets in, pruning, a refit of what stays."""
    torch.manual_seed(0)
    head = SDGMHead(2, n_classes=2, n_components=3, covariance="full")
    optimiser = torch.optim.Adam(head.parameters(), lr=0.05)
    decay = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, n_steps)
    for step in range(n_steps):
        warm = beta * min(1.0, 2 * step / n_steps)
        optimiser.zero_grad()
        (cross_entropy(head(x), y) + warm * head.kl() / len(x)).backward()
        optimiser.step()
        decay.step()
    head.prune()
    head.eval()
    optimiser = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(200):
        optimiser.zero_grad()
        cross_entropy(head(x), y).backward()
        optimiser.step()
    return head


def error(head: SDGMHead, x: torch.Tensor, y: np.ndarray) -> float:
    with torch.no_grad():
        return float((head(x).argmax(dim=-1).numpy() != y).mean())


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_few_weights_reach_the_bayes_rule() -> None:
    X, y = ripley_like(400, 1)
    T, t = ripley_like(20_000, 2)
    scaler = StandardScaler().fit(X)
    x, x_test = (torch.from_numpy(scaler.transform(a)).float() for a in (X, T))
    best = float((bayes_rule(T) != t).mean())
    sparse = train(x, torch.from_numpy(y), beta=1.0)
    assert sparse.nnz() <= 10
    assert error(sparse, x_test, t) < best + 0.02
    # The penalty does it: the authors' demonstration weighs it by 1e-9, and prunes nothing.
    dense = train(x, torch.from_numpy(y), beta=1e-9, n_steps=200)
    assert dense.nnz() >= 25


def test_ripleys_table(data_folder: Path) -> None:
    """Over seeds 9.1 to 10.5 %, half of them at most 9.4, with 5 to 8 weights of 30.

    The published fit of the same model by type-II maximisation has 9.1 % with 6.
    """
    tables = [
        np.genfromtxt(data_folder / f"ripley_synth_{part}.csv", delimiter=",", skip_header=1)
        for part in ("train", "test")
    ]
    scaler = StandardScaler().fit(tables[0][:, :2])
    x, x_test = (torch.from_numpy(scaler.transform(table[:, :2])).float() for table in tables)
    y, t = (table[:, 2].astype(np.int64) for table in tables)
    head = train(x, torch.from_numpy(y), beta=1.0)
    assert head.nnz() <= 8
    assert error(head, x_test, t) <= 0.097
