"""Counts of events beside their law under probabilities that are calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.posterior.scores import Labels, Probabilities


@dataclass(frozen=True)
class Counted:
    """A number of rows beside what a calibrated model expects."""

    number: int
    expected: float
    lower: int  # Ends of the interval in which the number lies for a calibrated model.
    upper: int


def poisson_binomial(p: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " count"]:
    """Probability of every number of successes of independent trials, 0 to all of them.

    It is the product of ``1 - p + p z`` over the trials, multiplied pair by pair.

    >>> poisson_binomial(np.array([0.5, 0.5])).round(3)
    array([0.25, 0.5 , 0.25])
    """
    factors = np.column_stack([1 - p, p])
    while len(factors) > 1:
        if len(factors) % 2:
            # The polynomial 1 as a partner for the last factor.
            identity = np.zeros((1, factors.shape[1]))
            identity[0, 0] = 1.0
            factors = np.concatenate([factors, identity])
        # The length of the product: a transform of fewer places would wrap the convolution round.
        size = 2 * factors.shape[1] - 1
        spectra = np.fft.rfft(factors, size, axis=1)
        factors = np.fft.irfft(spectra[::2] * spectra[1::2], size, axis=1)
    # The transform leaves rounding of either sign where a probability is next to 0.
    law = np.clip(factors[0, : p.size + 1], 0.0, None) if p.size else np.ones(1)
    return np.asarray(law / law.sum())


def two_sided(p: Float[np.ndarray, " obs"], number: int) -> float:
    """Probability of a number of successes at least as extreme: twice the smaller tail, at most 1.

    >>> two_sided(np.full(4, 0.5), 4)
    0.125
    """
    law = poisson_binomial(p)
    return float(min(1.0, 2 * min(law[: number + 1].sum(), law[number:].sum())))


def counted(p: Float[np.ndarray, " obs"], number: int, level: float = 0.9) -> Counted:
    """A number of successes beside its expectation and equal-tailed interval.

    >>> counted(np.full(100, 0.1), 20)
    Counted(number=20, expected=10.0, lower=5, upper=15)
    """
    below = poisson_binomial(p).cumsum()
    tails = np.searchsorted(below, [0.5 - level / 2, 0.5 + level / 2])
    lower, upper = np.minimum(tails, p.size)
    return Counted(number, float(round(p.sum(), 9)), int(lower), int(upper))


def improbable_labels(
    probabilities: Probabilities, labels: Labels, bound: float, level: float = 0.9
) -> Counted:
    """Number of rows whose label has less than a probability, beside that of a calibrated model.

    A label drawn from p falls below the bound b with probability ``sum_c p_c [p_c < b]``.
    """
    given = probabilities[np.arange(labels.size), labels]
    drawn = np.where(probabilities < bound, probabilities, 0.0).sum(axis=1)
    return counted(drawn, int((given < bound).sum()), level)


def beyond_chance(
    probabilities: Probabilities, labels: Labels, rate: float
) -> Int[np.ndarray, " found"]:
    """Rows whose labels are less probable than chance explains, the least probable first.

    The k rows of least probability g at their label are told apart from chance where labels drawn
    from the probabilities would put at most ``rate k`` rows at g or below; k is the largest such
    number. It is the procedure of Benjamini and Hochberg with the expected number in place of its
    bound.

    >>> p = np.tile([0.999, 0.001], (50, 1))
    >>> beyond_chance(p, np.r_[1, np.zeros(49, int)], 0.1)
    array([0])
    >>> beyond_chance(np.tile([0.9, 0.1], (50, 1)), np.r_[np.ones(5, int), np.zeros(45, int)], 0.1)
    array([], dtype=int64)
    """
    given = probabilities[np.arange(labels.size), labels]
    order = np.argsort(given, kind="stable")
    every = np.sort(probabilities, axis=None)
    # A label drawn from the probabilities falls on an entry as often as the entry says, so all
    # entries up to g, of any row and class, add up to the rows expected at g or below.
    expected = np.r_[0.0, every.cumsum()][np.searchsorted(every, given[order], side="right")]
    good = np.flatnonzero(expected <= rate * np.arange(1, labels.size + 1))
    return order[: good[-1] + 1 if good.size else 0]


def holm(p_values: Float[np.ndarray, " test"], level: float) -> Bool[np.ndarray, " test"]:
    """Tests that are rejected where with probability ``level`` at most any is wrong to be.

    See Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal
    of Statistics 6, 65-70.

    >>> holm(np.array([0.001, 0.04, 0.03]), 0.05)
    array([ True, False, False])
    """
    order = np.argsort(p_values, kind="stable")
    failed = p_values[order] > level / np.arange(p_values.size, 0, -1)
    failures = np.flatnonzero(failed)
    rejected = np.zeros(p_values.size, dtype=bool)
    rejected[order[: failures[0] if failures.size else p_values.size]] = True
    return rejected
