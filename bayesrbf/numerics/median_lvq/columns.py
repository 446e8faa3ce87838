"""What the labelled rows have to do with the candidates of a class, a block of rows at a time.

Every candidate of a prototype is judged in one matrix expression: with the prototype taken
out, a row keeps what the others give it, and each candidate adds its own term. A search asks
for the same columns again and again: they are kept where they are few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.exemplars import Dissimilarities, Prototypes
from bayesrbf.numerics.median_lvq.objective import Exemplars

BLOCK: Final = 2**17
"""Entries of a block: what stays in a core's own cache."""


@dataclass(frozen=True)
class CandidateColumns:
    """Dissimilarities of the labelled rows to candidates, in a form that does not change.

    Attributes
    ----------
    rows : Dissimilarities
        Training rows.
    form : callable
        Dissimilarities -> what is asked for, float64, entry by entry.
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
        """Columns of a class: at once where they are kept, else a block of rows at a time.

        Parameters
        ----------
        label : int
            The class.

        Yields
        ------
        at : slice
            Where the block lies among the labelled rows.
        columns : ndarray of shape (n_block, n_candidates)
            The columns of its candidates.
        """
        rows, candidates = self.rows.labelled, self.rows.candidates[label]
        if self.kept is not None:
            first, last = rows.size * self.rows.candidate_starts[label : label + 2]
            yield slice(None), self.kept[first:last].reshape(rows.size, -1)
            return
        height = max(1, BLOCK // candidates.size)
        for start in range(0, rows.size, height):
            at = slice(start, start + height)
            yield at, self.form(self.rows.values[rows[at][:, None], candidates])

    def of(self, exemplars: Exemplars) -> Float[np.ndarray, "prototype labelled"]:
        """Columns of some rows.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            The rows.

        Returns
        -------
        ndarray of shape (n_prototypes, n_labelled)
            Each a line.
        """
        columns = self.form(self.rows.values[self.rows.labelled[:, None], exemplars])
        return np.ascontiguousarray(columns.T)


class MovingExemplars(ABC):
    """Exemplars that move one at a time, and their columns.

    Parameters
    ----------
    columns : CandidateColumns
        Of the labelled rows and the candidates.
    prototypes : Prototypes
        Class of every prototype.
    exemplars : ndarray of shape (n_prototypes,)
        Training row that each prototype is at first.
    """

    def __init__(
        self, columns: CandidateColumns, prototypes: Prototypes, exemplars: Exemplars
    ) -> None:
        self.columns, self.prototypes = columns, prototypes
        self._lines = columns.of(exemplars)
        self._starts = [part.start for part in prototypes.class_slices]
        self._rows = np.arange(columns.labels.size)

    @abstractmethod
    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The objective, were a prototype each of the candidates of its class.

        Parameters
        ----------
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Values of the objective.
        """

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move prototypes in turn, each to its best candidate or to one that is drawn.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Where the prototypes are.
        order : ndarray of shape (n_turns,)
            Prototypes that move.
        uniforms : ndarray of shape (n_turns,), optional
            A number from 0 to 1 for every draw; None: to the best candidate.
        tolerance : float
            What must be gained by a move to the best.

        Returns
        -------
        ndarray of shape (n_prototypes,)
            Where they are then.
        """
        moved = exemplars.copy()
        for turn, prototype in enumerate(order.tolist()):
            candidates = self.columns.rows.candidates[self.prototypes.classes[prototype]]
            values, now = self.scores(prototype), np.searchsorted(candidates, moved[prototype])
            if uniforms is None:
                best = values.argmax()
                chosen = best if values[best] - values[now] > tolerance else now
            else:
                shares = np.cumsum(np.exp(values - values.max()))
                drawn = np.searchsorted(shares, uniforms[turn] * shares[-1], side="right")
                chosen = min(drawn, candidates.size - 1)
            moved[prototype] = candidates[chosen]
            self._lines[prototype] = self.columns.of(moved[prototype : prototype + 1])[0]
        return moved

    def others(
        self, prototype: int, nothing: float, over: np.ufunc
    ) -> tuple[Float[np.ndarray, " labelled"], Float[np.ndarray, "label labelled"]]:
        """Columns of the other prototypes, put together class by class.

        Parameters
        ----------
        prototype : int
            The prototype that is out.
        nothing : float
            What stands for it.
        over : numpy.ufunc
            What puts two together, such as ``np.add``.

        Returns
        -------
        own : ndarray of shape (n_labelled,)
            Of the row's own class.
        of_class : ndarray of shape (n_classes, n_labelled)
            Of every class.
        """
        line = self._lines[prototype].copy()
        self._lines[prototype] = nothing
        of_class = over.reduceat(self._lines, self._starts, axis=0)
        self._lines[prototype] = line
        return of_class[self.columns.labels, self._rows], of_class
