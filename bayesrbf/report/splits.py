"""Which rows are held out together, and which rows may then teach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.fitted.folds import grouped_folds, later_folds, stratified_folds
from bayesrbf.report.words import plural


@dataclass(frozen=True)
class Splits:
    """Folds, and what keeps rows out of their training parts."""

    folds: Int[np.ndarray, " obs"]  # That holds a row out; -1 where none does.
    groups: Int[np.ndarray, " obs"] | None = None  # Rows of one number are on one side.
    times: Float[np.ndarray, " obs"] | None = None  # Only earlier rows teach; NaN always does.

    @property
    def numbers(self) -> Int[np.ndarray, " fold"]:
        """Numbers of the folds."""
        numbers: Int[np.ndarray, " fold"] = np.unique(self.folds[self.folds >= 0])
        return numbers

    def training(self, fold: int) -> Bool[np.ndarray, " obs"]:
        """The rows that teach the model that predicts a fold."""
        out = self.folds == fold
        teaches = ~out
        if self.times is not None:
            teaches &= ~(self.times >= np.min(self.times[out]))
        if self.groups is not None:
            teaches &= ~np.isin(self.groups, self.groups[out])
        return teaches

    def pairs(self) -> list[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
        """Positions of training and held-out rows of every fold."""
        return [
            (np.flatnonzero(self.training(fold)), np.flatnonzero(self.folds == fold))
            for fold in self.numbers.tolist()
        ]

    @property
    def sentence(self) -> str:
        """Sentences on hold-out by time or by group; empty where rows are held out by chance."""
        parts = []
        if self.times is not None:
            n_rows, folds = int((self.folds >= 0).sum()), self.numbers.size
            parts.append(
                f"The latest {plural(n_rows, 'labelled row')} were held out in "
                f"{plural(folds, 'part')}, each predicted from the rows before it; weights and "
                "temperatures were fitted to some of those held out by chance, so that a drift is "
                "judged and not made up for."
            )
        if self.groups is not None:
            groups = plural(np.unique(self.groups).size, "group")
            parts.append(f"Rows of one group ({groups}) were never on both sides of a split.")
        return " ".join(parts)


def fold_count(labels: Int[np.ndarray, " obs"], most: int) -> int:
    """Number of folds: the rows of the second most frequent class, at least 2, at most ``most``.

    >>> fold_count(np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, -1]), most=5)
    3
    """
    frequencies = np.sort(np.bincount(labels[labels >= 0]))
    return int(np.clip(frequencies[-2] if frequencies.size > 1 else 0, 2, most))


def splits_of(
    labels: Int[np.ndarray, " obs"],
    n_folds: int,
    seed: int,
    groups: Int[np.ndarray, " obs"] | None = None,
    times: Float[np.ndarray, " obs"] | None = None,
) -> Splits:
    """Folds by time where it is given, else by groups where they are, else by class.

    There are at most ``n_folds``, and no more than the second most frequent class has rows.
    """
    n_folds = fold_count(labels, n_folds)
    if times is not None:
        return Splits(later_folds(labels, times, n_folds), groups, times)
    if groups is not None:
        return Splits(grouped_folds(labels, groups, n_folds, seed), groups)
    return Splits(stratified_folds(labels, n_folds, seed))
