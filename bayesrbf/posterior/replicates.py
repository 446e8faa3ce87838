"""Labels and responses drawn for training rows, beside their own: for predictive checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.records.mixture import Observations

REPLICATES: Final = 1000
"""Labels drawn per row of a point estimate."""
MOST_DRAWN: Final = 2**21
"""Numbers behind the labels drawn for training rows: 16 MiB."""
LEAST_TABLES: Final = 50
"""Tables of drawn labels; ArviZ lays as many over the real one."""


@dataclass(frozen=True)
class Replicates:
    """Labels or responses drawn for training rows, beside their own."""

    rows: Int[np.ndarray, " row"]  # Places among the training rows.
    drawn: Shaped[np.ndarray, "chain draw row"]
    truth: Shaped[np.ndarray, " row"]
    every: int = 1  # One draw of the posterior in so many has drawn.


def evenly(n: int, most: int) -> Int[np.ndarray, " place"]:
    """At most so many of the first n integers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def drawn_labels(posterior: ClassPosterior, rows: Observations, seed: int) -> Replicates:
    """Labels drawn for labelled training rows, at the class shares of training.

    Of large tables some rows and every k-th draw are taken, so that there are at most
    ``MOST_DRAWN`` probabilities.
    """
    labelled = np.flatnonzero(rows.labels >= 0)
    tables = REPLICATES if posterior.n_draws == 1 else LEAST_TABLES
    most = max(1, MOST_DRAWN // (tables * posterior.n_classes))
    places = labelled[evenly(labelled.size, most)]
    numbers = posterior.n_draws * places.size * posterior.n_classes
    every = min(posterior.theta.shape[1], -(-numbers // MOST_DRAWN))
    shares = np.zeros(posterior.n_classes)
    thinned = replace(posterior, theta=posterior.theta[:, ::every], log_ratio=shares)
    drawn = draw_labels(thinned.draws(rows.take(places))[0], seed)
    return Replicates(places, drawn, rows.labels[places], every)


def draw_labels(
    probabilities: Float[np.ndarray, "chain draw obs label"], seed: int
) -> Int[np.ndarray, "chain drawn obs"]:
    """One label a row and draw; a point estimate is drawn from many times."""
    if probabilities.shape[0] * probabilities.shape[1] == 1:
        probabilities = np.repeat(probabilities, REPLICATES, axis=1)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    labels = draw_categories(rows, np.random.default_rng(seed))
    return labels.reshape(probabilities.shape[:-1])
