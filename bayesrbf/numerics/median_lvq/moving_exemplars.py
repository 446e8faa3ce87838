"""Exemplars that move one at a time: what a search asks of an objective, and the columns it reads.

Columns say how dissimilar the labelled rows are to the candidates of a class. Every candidate of
a prototype is judged in one matrix expression: with the prototype taken out, a row keeps what
the others give it, and each candidate adds its own term. A search asks for the same columns
again and again. They are kept where they are few, else made a block of rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.median_lvq import Dissimilarities, Prototypes
from bayesrbf.records.mixture import in_blocks

Exemplars = Int[np.ndarray, " prototype"]  # Training row that each prototype is.


@runtime_checkable
class Objective(Protocol):
    """The objective that a search for exemplars maximises."""

    @property
    def rows(self) -> Dissimilarities:
        """Training rows."""

    @property
    def prototypes(self) -> Prototypes:
        """Class of every prototype."""

    @property
    def sigma(self) -> float | None:
        """Width of the kernel, where there is one."""

    def value(self, exemplars: Exemplars) -> float:
        """The objective at given exemplars."""

    def scorer(self, exemplars: Exemplars) -> MovingExemplars:
        """Prepare to judge moves from given exemplars by values of the objective."""

    def bound(self, exemplars: Exemplars) -> MovingExemplars:
        """Prepare the bound that the generalised EM raises in place of the objective.

        It is taken at the given exemplars. Scores are the bound up to a constant. Where it
        rises, the objective rises.
        """

    def refit(self, exemplars: Exemplars) -> Self:
        """The objective at the best width for these exemplars, if it is free; it is no lower."""


@dataclass(frozen=True)
class CandidateColumns:
    """Dissimilarities of the labelled rows to candidates, in a fixed form.

    ``form`` maps dissimilarities, entry by entry, to what is asked for in float64.
    """

    rows: Dissimilarities
    form: Callable[[np.ndarray], np.ndarray]

    @cached_property
    def labels(self) -> Int[np.ndarray, " labelled"]:
        """Class codes of the labelled rows."""
        return self.rows.labels[self.rows.labelled]

    @cached_property
    def weights(self) -> Float[np.ndarray, " labelled"]:
        """Weights of the labelled rows."""
        return self.rows.weights[self.rows.labelled]

    @cached_property
    def kept(self) -> Float[np.ndarray, " entry"] | None:
        """Columns of the classes one after the other, each in one piece, where they are few."""
        return None if self.rows.to_candidates is None else self.form(self.rows.to_candidates)

    def blocks(self, label: int) -> Iterator[tuple[slice, Float[np.ndarray, "row candidate"]]]:
        """Columns of a class, and where they lie among the labelled rows.

        All rows come at once where the columns are kept, else in blocks.
        """
        rows, candidates = self.rows.labelled, self.rows.candidates[label]
        if self.kept is not None:
            first, last = rows.size * self.rows.candidate_starts[label : label + 2]
            yield slice(None), self.kept[first:last].reshape(rows.size, -1)
            return
        for at in in_blocks(rows.size, candidates.size, cached=True):
            yield at, self.form(self.rows.values[rows[at][:, None], candidates])

    def of(self, exemplars: Exemplars) -> Float[np.ndarray, "prototype labelled"]:
        """Columns of given rows, each one line of the result."""
        columns = self.form(self.rows.values[self.rows.labelled[:, None], exemplars])
        return np.ascontiguousarray(columns.T)


class MovingExemplars(ABC):
    """Exemplars that move one at a time, and what each candidate would make of an objective."""

    def __init__(
        self, columns: CandidateColumns, prototypes: Prototypes, exemplars: Exemplars
    ) -> None:
        self.columns, self.prototypes = columns, prototypes
        self._lines = columns.of(exemplars)
        self._starts = [part.start for part in prototypes.class_slices]
        self._rows = np.arange(columns.labels.size)

    @abstractmethod
    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The objective for a prototype at each of the candidates of its class."""

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move the prototypes of ``order`` in turn, to the best candidate or to one that is drawn.

        With ``uniforms``, numbers from 0 to 1, one a turn, the candidate is drawn with the
        softmax of the scores as its probabilities. Without, a prototype moves to the best
        candidate where that gains more than ``tolerance``.
        """
        moved = exemplars.copy()
        for turn, prototype in enumerate(order.tolist()):
            candidates = self.columns.rows.candidates[self.prototypes.classes[prototype]]
            values, now = self.scores(prototype), np.searchsorted(candidates, moved[prototype])
            if uniforms is None:
                best = values.argmax()
                chosen = best if values[best] - values[now] > tolerance else now
            else:
                masses = np.cumsum(np.exp(values - values.max()))
                drawn = np.searchsorted(masses, uniforms[turn] * masses[-1], side="right")
                chosen = min(drawn, candidates.size - 1)  # rounding may lead beyond the last
            moved[prototype] = candidates[chosen]
            self._lines[prototype] = self.columns.of(moved[prototype : prototype + 1])[0]
        return moved

    def others(
        self, prototype: int, nothing: float, over: np.ufunc
    ) -> tuple[Float[np.ndarray, " labelled"], Float[np.ndarray, "label labelled"]]:
        """Columns of all prototypes but one, put together by class: the row's own, and every class.

        ``nothing`` stands for the one that is left out; ``over`` puts two together, such as
        ``np.add``.
        """
        line = self._lines[prototype].copy()
        # One line is exchanged for the sums and put back, so that the others need no copy.
        self._lines[prototype] = nothing
        of_class = over.reduceat(self._lines, self._starts, axis=0)
        self._lines[prototype] = line
        return of_class[self.columns.labels, self._rows], of_class
