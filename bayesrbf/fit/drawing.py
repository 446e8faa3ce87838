"""Draws of a fitted model by any method, and random samples of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import Observations, joined_rows
from bayesrbf.fit.table import FittedTable
from bayesrbf.inference.draws import Draws

# Draws of the posterior of a fit by any method, from the fitted point.


METHODS: Final = {
    "laplace": "bayesrbf.inference.laplace",
    "advi": "bayesrbf.inference.variational",
    "gibbs": "bayesrbf.inference.nuts",
    "nuts": "bayesrbf.inference.nuts",
}
"""Module of the function that draws by each method; the function has the method's name."""
MAX_DRAWING_ROWS: Final = {"gibbs": 1_000_000, "nuts": 100_000}
"""Rows beyond which a method that sees all of them again and again takes more than some four hours:
8,000 sweeps, or 80,000 gradients, at the 1.8 microseconds of a row in an E-step of eight
components and ten columns."""


@dataclass(frozen=True)
class Rehearsal:
    """Settings of rehearsals for one kind of classifier: default method, and teachers left out."""

    method: str = "laplace"
    """Method of the draws unless another is asked for."""
    kin: tuple[str, ...] = ()
    """Teachers of the classifier's own kind; they would flatter it, and are left out."""
    methods: tuple[str, ...] = (*(name for name in METHODS if name != "gibbs"), "bootstrap")
    """Methods that can draw: only mixtures and exemplars have Gibbs sweeps."""


def drawn(fit: FittedTable[Any, Any], method: str, options: dict[str, Any]) -> Draws:
    """Draws by a method; ValueError for an unknown one, or too many rows for it."""
    n_rows, most = fit.rows.n_obs, MAX_DRAWING_ROWS.get(method)
    if most is not None and n_rows > most:
        raise ValueError(
            f"refine({method!r}) takes at most {most:,} rows, each of which it looks at thousands "
            f"of times; received {n_rows:,}. Use 'laplace' or 'advi', or fit a random sample of "
            "the rows."
        )
    options = {"random_state": fit.table.seed, **options}
    if method in METHODS:  # imported here, so that a fit without draws never does
        draw: Callable[..., Draws] = getattr(import_module(METHODS[method]), method)
        return draw(fit.log_posterior, fit.point, **options)
    if method != "bootstrap":
        allowed = " or ".join(repr(name) for name in (*METHODS, "bootstrap"))
        raise ValueError(f"refine(method) must be {allowed}; received {method!r}.")
    from bayesrbf.inference.laplace import bootstrap

    rows, _ = table.distinct(fit.rows)  # of copies, the sum of the weights is drawn

    def reweighted(weights: np.ndarray) -> LogPosterior:
        return fit.model.log_posterior(replace(rows, weights=weights))

    return bootstrap(reweighted, rows.weights, fit.point, subjects=rows.subjects, **options)


# Random samples of the rows of every class: in one pass over blocks, and of weighted rows.


@dataclass(frozen=True)
class Sample:
    """Random sample of the rows of every class.

    Every row has a random key, whatever block it is in; the sample has the rows of every class with
    the smallest keys.
    """

    rows: Observations
    keys: Float[np.ndarray, " obs"]
    positions: Int[np.ndarray, " obs"]
    """Position of every row in the whole table."""
    by_label: Float[np.ndarray, " label"]
    """Weight of all rows of every class, drawn or not, and last of unlabelled rows."""
    most: int
    """Maximum number of rows of a class."""

    @classmethod
    def of(cls, rows: Observations, first: int, n_classes: int, most: int, seed: int) -> Sample:
        """The sample of a block, whose first row has that number in the whole table."""
        keys = np.random.Generator(np.random.PCG64(seed).advance(first)).random(rows.n_obs)
        positions = np.arange(first, first + rows.n_obs)
        by_label = np.zeros(n_classes + 1)
        np.add.at(by_label, rows.labels, rows.weights)  # -1 is the last
        return cls(rows, keys, positions, by_label, most).drawn()

    def joined(self, other: Sample) -> Sample:
        """Sample of the rows from which either sample was drawn."""
        return Sample(
            joined_rows([self.rows, other.rows]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.positions, other.positions]),
            self.by_label + other.by_label,
            self.most,
        ).drawn()

    def drawn(self) -> Sample:
        """Sample of the ``most`` rows of every class with the smallest keys, in their order."""
        labels, chosen = self.rows.labels, np.zeros(self.rows.n_obs, dtype=bool)
        for label in np.unique(labels):
            of_label = np.flatnonzero(labels == label)
            chosen[of_label[np.argsort(self.keys[of_label], kind="stable")[: self.most]]] = True
        return replace(
            self,
            rows=self.rows.take(chosen),
            keys=self.keys[chosen],
            positions=self.positions[chosen],
        )

    def weighed(self) -> Observations:
        """Rows whose weights give each class its share of the weight of the whole table.

        Their total weight is unchanged. A sample of all rows is unchanged.
        """
        size, weights = self.by_label.size, self.rows.weights
        mass = np.bincount(self.rows.labels % size, weights, size)
        if np.allclose(mass, self.by_label, rtol=1e-12):
            return self.rows  # every row is in the sample
        factors = self.by_label / np.where(mass > 0, mass, 1.0) * mass.sum() / self.by_label.sum()
        return replace(self.rows, weights=weights * factors[self.rows.labels])


def weighted_sample(rows: Observations, most: int, seed: int) -> Observations:
    r"""Sample of at most ``most`` rows, balanced over the classes, with unbiased weights.

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
    for turn, class_index in enumerate(np.argsort(counts, kind="stable")):
        quota = min(int(counts[class_index]), left // (labels.size - turn))
        left -= quota
        of_class = np.flatnonzero(rows.labels == labels[class_index])
        of_class = of_class[np.argsort(-priorities[of_class], kind="stable")]
        next_one = priorities[of_class[quota]] if quota < of_class.size else 0.0
        sampled = of_class[:quota]
        weights[sampled] = np.maximum(rows.weights[sampled], next_one)
        weights[sampled] *= rows.weights[of_class].sum() / weights[sampled].sum()
    chosen = weights > 0
    return replace(rows.take(chosen), weights=weights[chosen])
