"""Scores of densities, imputations, errors that were found and novelty, on arrays."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

Array = np.ndarray

MIN_PROBABILITY = 1e-3
"""Probabilities of levels are held above this, so that one miss among few draws is not infinite."""


def at_resolution(log_density: Array, at_point_mass: Array, resolution: Array) -> Array:
    """Log densities of rows where some cells are point masses, compared at the columns' resolution.

    A mass m at a point mass of a column of resolution r counts as the density m / r around it:
    ``log p(row) - sum_{j at a point mass} log r_j``.
    """
    return log_density - (at_point_mass * np.log(resolution)).sum(axis=1)


def crps(draws: Array, truth: Array) -> Array:
    """Continuous ranked probability score of every cell, ``E|X - x| - E|X - X'| / 2``, unbiased.

    ``draws`` are (draw, cell); both means are over pairs of different draws.
    """
    n = len(draws)
    ascending = np.sort(draws, axis=0)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    half_spread = ranks @ ascending / (n * (n - 1))
    return np.abs(draws - truth).mean(axis=0) - half_spread


def held(draws: Array, truth: Array, level: float, rng: np.random.Generator) -> Array:
    """Whether central intervals of draws hold the truth: by its rank, ties broken at random."""
    tie = 1e-6 * np.maximum(np.abs(truth), 1e-12)
    less = (draws < truth - tie).sum(axis=0)
    equal = (np.abs(draws - truth) <= tie).sum(axis=0)
    rank = (less + rng.random(truth.size) * (equal + 1)) / (len(draws) + 1)
    return np.abs(2 * rank - 1) <= level


def level_loss(probabilities: Array, truth: Array) -> Array:
    """Log loss of categories in nats."""
    own = probabilities[np.arange(truth.size), truth]
    return -np.log(np.maximum(own, MIN_PROBABILITY))


def average_precision(score: Array, wrong: Array) -> float:
    """Mean precision over the errors, equal scores found together; high scores are suspicious."""
    order = np.argsort(-score, kind="stable")
    found = np.cumsum(wrong[order])
    last = np.append(np.diff(score[order]) != 0, True)
    found, seen = found[last], np.arange(1, score.size + 1)[last]
    return float(np.diff(found, prepend=0) @ (found / seen) / found[-1])


def r_precision(score: Array, wrong: Array) -> float:
    """Share of errors among the most suspicious cells, as many as there are errors.

    Of cells with equal scores at the end of the list each counts by its chance to be on it.
    """
    n = int(wrong.sum())
    last = np.sort(score)[-n]
    above, level = score > last, score == last
    return float((wrong[above].sum() + (n - above.sum()) * wrong[level].mean()) / n)


def auroc(score: Array, novel: Array) -> float:
    """Probability that a novel row has a higher score than another one."""
    ranks = rankdata(score)
    n_novel = novel.sum()
    above = ranks[novel].sum() - n_novel * (n_novel + 1) / 2
    return float(above / (n_novel * (novel.size - n_novel)))
