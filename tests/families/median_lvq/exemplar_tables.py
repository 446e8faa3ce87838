"""Tables of dissimilarities that tests of exemplars share."""

from __future__ import annotations

import numpy as np

from bayesrbf.families.median_lvq.records import Dissimilarities, SigmaPrior

PRIOR = SigmaPrior(-0.3, 0.5)
SIGMAS = {"rslvq": 0.7, "sampled": PRIOR, "glvq": None}


def table(
    n_obs: int = 30, n_classes: int = 3, seed: int = 0, hidden: int = 3, heaviest: float = 2.0
) -> Dissimilarities:
    """Asymmetric, no metric, weighted; hidden rows are candidates of every class."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_obs, 2))
    values = ((points[:, None] - points) ** 2).sum(-1) * (1 + rng.random((n_obs, n_obs)))
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_obs - n_classes)])
    labels[n_obs - hidden :] = -1
    candidates = tuple(np.flatnonzero((labels == c) | (labels < 0)) for c in range(n_classes))
    return Dissimilarities(values, labels, rng.uniform(0.25, 1, n_obs) * heaviest, candidates)


def moved(exemplars: np.ndarray, prototype: int, row: int) -> np.ndarray:
    result = exemplars.copy()
    result[prototype] = row
    return result
