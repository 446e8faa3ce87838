"""Hides more and more cells of held-out rows, and keeps the predictions for the copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf import table
from bayesrbf.numerics.log_sums import class_shares
from bayesrbf.numerics.rounding import single_digits
from bayesrbf.records.masked_rows import MaskedRows
from bayesrbf.records.mixture import Observations
from bayesrbf.table import Columns

STRATA: Final = 3
"""Copies whose share of hidden cells is drawn from a third of the way from none to all; one more
copy keeps a single cell."""
MANY_ROWS: Final = 2500.0
"""Weight of the labelled rows from which a row has one copy, of any kind: together they tell as
much as the copies of fewer rows do."""


@dataclass(frozen=True)
class Masking:
    """A scheme that hides cells of held-out rows."""

    columns: Columns
    log_shares: Float[np.ndarray, " label"]
    """Log shares of the classes in training."""
    seed: int
    of_many: bool = False
    """Whether a row has one copy."""

    def versions(self, fold: int, train: Observations, test: Observations) -> list[Observations]:
        """Held-out rows of a fold as they are, followed by copies with cells hidden.

        Cells are drawn in the canonical order of the training rows' columns: the order in which a
        user's table has them changes nothing.
        """
        order = table.canonical_positions(train, self.columns)
        rng = np.random.default_rng([self.seed, fold])
        observed = table.observed_cells(test, self.columns)
        hidden = np.zeros((STRATA + 1, *observed.shape), bool)
        hidden[..., order] = hiding_masks(observed[:, order], rng)
        if self.of_many:
            kinds = rng.permutation(np.arange(test.n_obs) % len(hidden))
            hidden = hidden[kinds, np.arange(test.n_obs)][None]
        return [test, *(table.hide(test, mask, self.columns) for mask in hidden)]

    def hidden(self, versions: Sequence[Observations]) -> Float[np.ndarray, "obs version"]:
        """Share of hidden cells of the rows in all versions."""
        return np.stack([table.hidden_share(rows, self.columns) for rows in versions], axis=1)

    def answered(
        self,
        values: Sequence[np.ndarray],
        hidden: Sequence[np.ndarray],
    ) -> MaskedRows:
        """Predictions for the copies of all folds.

        Both lists have an array of shape (n_held_out, n_versions, ...) a fold. Single precision
        tells enough of them, and a file is smaller.
        """
        answers = single_digits(np.concatenate(values)[:, 1:])
        return MaskedRows(answers, single_digits(np.concatenate(hidden)), self.log_shares)


def masking_of(rows: Observations, columns: Columns, n_classes: int, seed: int) -> Masking | None:
    """The scheme that hides cells; None where a missing cell says something.

    None, too, where labels are sets of classes, of which no shares follow.
    """
    if columns.masked or not columns.names or rows.labels.max() >= n_classes:
        return None
    shares = class_shares(rows.labels, rows.weights, n_classes)
    of_many = rows.n_labelled > MANY_ROWS
    return Masking(columns, np.log(shares), seed, of_many)


def hiding_masks(
    observed: Bool[np.ndarray, "obs column"], rng: np.random.Generator
) -> Bool[np.ndarray, "copy obs column"]:
    """Which cells every copy hides; the last copy keeps one observed cell of every row."""
    n_obs, n_columns = observed.shape
    shares = (np.arange(STRATA)[:, None] + rng.random((STRATA, n_obs))) / STRATA
    some = rng.random((STRATA, n_obs, n_columns)) < shares[..., None]
    # One of the observed cells at random. A row without any keeps a cell that is missing.
    alone = np.where(observed, rng.random(observed.shape), -1.0).argmax(axis=1)
    all_but_one = np.arange(n_columns) != alone[:, None]
    return np.concatenate([some, all_but_one[None]])
