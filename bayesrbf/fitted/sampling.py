"""Random samples of the rows of every class: in one pass over blocks, and of weighted rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.mixture import Observations, joined_rows


@dataclass(frozen=True)
class Sample:
    """Some rows of every class, each class drawn without regard to the others.

    Every row has a random number of its own, whatever block it is in; of every class the rows with
    the smallest are in the sample.
    """

    rows: Observations
    keys: Float[np.ndarray, " obs"]
    places: Int[np.ndarray, " obs"]
    """Number of every row in the whole table."""
    by_label: Float[np.ndarray, " label"]
    """Weight of all rows of every class, drawn or not, and last of those without a label."""
    most: int
    """Rows of a class."""

    @classmethod
    def of(cls, rows: Observations, first: int, n_classes: int, most: int, seed: int) -> Sample:
        """The sample of a block, whose first row has that number in the whole table."""
        keys = np.random.Generator(np.random.PCG64(seed).advance(first)).random(rows.n_obs)
        places = np.arange(first, first + rows.n_obs)
        by_label = np.zeros(n_classes + 1)
        np.add.at(by_label, rows.labels, rows.weights)  # -1 is the last
        return cls(rows, keys, places, by_label, most).drawn()

    def joined(self, other: Sample) -> Sample:
        """The sample of the rows of both."""
        return Sample(
            joined_rows([self.rows, other.rows]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.places, other.places]),
            self.by_label + other.by_label,
            self.most,
        ).drawn()

    def drawn(self) -> Sample:
        """The rows with the smallest keys of every class, in their order."""
        labels, chosen = self.rows.labels, np.zeros(self.rows.n_obs, dtype=bool)
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            chosen[own[np.argsort(self.keys[own], kind="stable")[: self.most]]] = True
        return replace(
            self, rows=self.rows.take(chosen), keys=self.keys[chosen], places=self.places[chosen]
        )

    def weighed(self) -> Observations:
        """The rows, each class with its share of the whole table; all together as they are."""
        size, weights = self.by_label.size, self.rows.weights
        own = np.bincount(self.rows.labels % size, weights, size)
        if np.allclose(own, self.by_label, rtol=1e-12):
            return self.rows  # every row is in the sample
        factors = self.by_label / np.where(own > 0, own, 1.0) * own.sum() / self.by_label.sum()
        return replace(self.rows, weights=weights * factors[self.rows.labels])


def weighted_sample(rows: Observations, most: int, seed: int) -> Observations:
    r"""At most so many rows, as many of every class as it has or as all may have alike.

    Within a class with weights w and random numbers u, the k rows with the largest priorities w / u
    are drawn and weigh max(w, t), with t the next priority [1]_: sums over them are unbiased, and
    no heavy row is missed. Every class then has its own weight again.

    .. [1] Duffield, Lund, Thorup (2007), Priority sampling for estimation of arbitrary subset sums,
       Journal of the ACM 54.

    >>> cells, none = np.arange(6.0)[:, None], np.zeros((6, 0), int)
    >>> weights = np.array([1.0, 1.0, 1.0, 97.0, 1.0, 1.0])
    >>> rows = Observations(cells, none, np.array([0, 0, 0, 0, 1, 1]), weights)
    >>> some = weighted_sample(rows, 4, 0)
    >>> some.real[:, 0], np.bincount(some.labels, some.weights)
    (array([2., 3., 4., 5.]), array([100.,   2.]))
    """
    priorities = rows.weights / np.random.default_rng(seed).random(rows.n_obs)
    labels, counts = np.unique(rows.labels, return_counts=True)
    weights, left = np.zeros(rows.n_obs), most
    for turn, place in enumerate(np.argsort(counts, kind="stable")):
        quota = min(int(counts[place]), left // (labels.size - turn))
        left -= quota
        own = np.flatnonzero(rows.labels == labels[place])
        own = own[np.argsort(-priorities[own], kind="stable")]
        next_one = priorities[own[quota]] if quota < own.size else 0.0
        some = own[:quota]
        weights[some] = np.maximum(rows.weights[some], next_one)
        weights[some] *= rows.weights[own].sum() / weights[some].sum()
    chosen = weights > 0
    return replace(rows.take(chosen), weights=weights[chosen])
