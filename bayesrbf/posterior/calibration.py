"""Calibration error of class probabilities, and what chance alone does to it.

Labels are class codes, probabilities have one column per class. Every number has a
picture and every picture a band: what a perfectly calibrated classifier with the very
same probabilities would show on labels drawn from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.posterior.scores import Labels, Probabilities, Weights


@dataclass(frozen=True)
class ReliabilityCurve:
    """Predicted probability against observed frequency of one class, bin by bin."""

    predicted: Float[np.ndarray, " bin"]  # Mean predicted probability of the rows in a bin.
    observed: Float[np.ndarray, " bin"]  # Weighted share of the class among them.
    lower: Float[np.ndarray, " bin"]
    """Lower end of the consistency band, where a calibrated classifier's ``observed`` lies."""
    upper: Float[np.ndarray, " bin"]  # Its upper end.
    mass: Float[np.ndarray, " bin"]  # Total row weight of a bin.


@dataclass(frozen=True)
class Calibration:
    """Calibration of one set of predictions, with what chance alone would do to it."""

    error: float  # Classwise expected calibration error, between 0 (calibrated) and 1.
    noise: tuple[float, float]  # Equal-tailed interval of that error under perfect calibration.
    curves: tuple[ReliabilityCurve, ...]  # One curve per class.

    @property
    def within_noise(self) -> bool:
        """Whether the error is no larger than chance makes it for a calibrated classifier."""
        return self.error <= self.noise[1]


def calibration(
    probabilities: Probabilities,
    labels: Labels,
    weights: Weights | None = None,
    *,
    n_bins: int = 10,
    prob: float = 0.9,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> Calibration:
    """Classwise calibration error, reliability curves, and bands of both with probability ``prob``.

    The error is ``1/C sum_c sum_b (V_cb / V) |mean of p_nc - share of class c|`` over at most
    ``n_bins`` bins b of equal weight V_cb per class. Equal probabilities are never split, so that a
    constant prediction is judged in one bin, in whatever order the rows come; see Kull et al.
    (2019), Beyond temperature scaling, NeurIPS, section 2.

    The bands come from labels drawn from the predictions themselves,
    ``y_n ~ Categorical(p_n)``, scored in the same bins.

    See Bröcker, Smith (2007), Increasing the reliability of reliability diagrams, Weather
    and Forecasting 22, section 3.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=500)
    >>> labels = (p.cumsum(1) < rng.random((500, 1))).sum(1)
    >>> calibration(p, labels).within_noise
    True
    >>> overconfident = p**4 / (p**4).sum(1, keepdims=True)
    >>> calibration(overconfident, labels).within_noise
    False
    """
    bins = _Bins.of(probabilities, weights, n_bins)
    observed = bins.observed(labels)
    drawn = _drawn_labels(probabilities, n_resamples, np.random.default_rng(random_state))
    resampled = np.stack([bins.observed(codes) for codes in drawn])
    tails = np.array([0.5 - prob / 2, 0.5 + prob / 2])
    lower, upper = np.quantile(resampled, tails, axis=0)
    noise = np.quantile(bins.error(resampled), tails)
    curves = tuple(
        ReliabilityCurve(
            predicted=bins.predicted[rows],
            observed=observed[rows],
            lower=lower[rows],
            upper=upper[rows],
            mass=bins.mass[rows],
        )
        for rows in bins.of_class
    )
    return Calibration(float(bins.error(observed)), (float(noise[0]), float(noise[1])), curves)


@dataclass(frozen=True)
class _Bins:
    """Bins of equal weight along each class's probability, flat over classes."""

    index: Int[np.ndarray, "obs label"]  # Flat bin of every row and class.
    weights: Weights
    mass: Float[np.ndarray, " bin"]  # Row weight of every flat bin.
    predicted: Float[np.ndarray, " bin"]  # Mean probability of every flat bin.
    of_class: tuple[slice, ...]  # Flat bins of each class.

    @classmethod
    def of(cls, probabilities: Probabilities, weights: Weights | None, n_bins: int) -> _Bins:
        """Bin every class's probabilities."""
        weights = np.ones(probabilities.shape[0]) if weights is None else weights
        columns = [_equal_weight_bins(p, weights, n_bins) for p in probabilities.T]
        edges = np.cumsum([0, *(column.max() + 1 for column in columns)])
        index = np.stack(columns, axis=1) + edges[:-1]
        every_weight = np.repeat(weights, len(columns))
        mass = np.bincount(index.ravel(), every_weight)
        total = np.bincount(index.ravel(), every_weight * probabilities.ravel())
        of_class = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
        return cls(index, weights, mass, total / mass, of_class)

    def observed(self, labels: Labels) -> Float[np.ndarray, " bin"]:
        """Share of its class in every bin."""
        own = self.index[np.arange(labels.size), labels]
        return np.bincount(own, self.weights, minlength=self.mass.size) / self.mass

    def error(self, observed: Float[np.ndarray, "*draws bin"]) -> Float[np.ndarray, "*draws"]:
        """Classwise expected calibration error of observed shares."""
        share = self.mass / (self.weights.sum() * len(self.of_class))
        return np.asarray(np.abs(observed - self.predicted) @ share)


def _equal_weight_bins(
    values: Float[np.ndarray, " obs"], weights: Weights, n_bins: int
) -> Int[np.ndarray, " obs"]:
    """Bin of each value: equal weights, ties together, numbered from 0 without gaps.

    A value belongs to the bin of the middle of its own stretch of weight, so the
    binning depends on the weighted distribution only and not on the order of the rows.
    Rows of no weight follow the weighted value before them, so that no bin is empty.
    """
    _, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weights)
    middle = (mass.cumsum() - mass / 2) / mass.sum()
    bins = np.minimum((middle * n_bins).astype(np.intp), n_bins - 1)
    weighted = mass > 0
    _, compact = np.unique(bins[weighted], return_inverse=True)
    position = np.clip(weighted.cumsum() - 1, 0, None)
    return compact[position][inverse]


def _drawn_labels(
    probabilities: Probabilities, n: int, rng: np.random.Generator
) -> Iterator[Labels]:
    """Label vectors from the predictions themselves, one at a time to keep memory small."""
    cumulative = probabilities.cumsum(1)[:, :-1]
    for _ in range(n):
        yield (cumulative < rng.random((probabilities.shape[0], 1))).sum(1)
