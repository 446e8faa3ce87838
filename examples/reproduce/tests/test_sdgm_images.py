"""The experiment of table 2, in small: both heads learn, one of them is sparse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from reproduce import sdgm_images


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Digits of 8 x 8 points, with every point written twice across and down."""
    images, labels = load_digits(return_X_y=True)
    large = np.kron(images.reshape(-1, 8, 8), np.ones((2, 2)))
    return torch.from_numpy(large[:, None] / 16).float(), torch.from_numpy(labels).long()


def test_both_heads_learn_and_one_is_sparse() -> None:
    X, y = digits()
    found = {}
    for head in sdgm_images.HEADS:
        network = sdgm_images.trained(10, head, X[:1200], y[:1200], seed=0, epochs=6)
        found[head] = sdgm_images.scores(network, X[1200:], y[1200:])
        assert found[head]["error"] < 15
    assert found["softmax"]["weights"] == found["softmax"]["all_weights"] == 110
    assert found["SDGM"]["all_weights"] == 19 * 66
    assert found["SDGM"]["weights"] < 19 * 66


def test_a_network_is_the_same_for_the_same_seed() -> None:
    X, y = digits()
    first, second = (
        sdgm_images.trained(2, "SDGM", X[:300], y[:300], seed=1, epochs=1)(X[:5]) for _ in range(2)
    )
    torch.testing.assert_close(first, second)


def test_cells_have_names_of_their_own() -> None:
    names = [cell.name for cell in sdgm_images.cells(100, seeds=2)]
    assert len(set(names)) == len(names) == 12
