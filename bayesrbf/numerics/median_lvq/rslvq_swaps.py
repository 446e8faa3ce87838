"""Log likelihoods after a swap: by plain sums of kernels where they are safe, else by logs."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.kernels.exemplar_scores import add_swap_scores, sweep_exemplars
from bayesrbf.numerics.median_lvq.moving_exemplars import (
    CandidateColumns,
    Exemplars,
    MovingExemplars,
)
from bayesrbf.records.median_lvq import Prototypes

SAFE: Final = 600.0  # Kernels down to exp(-SAFE) are added and divided as they are.


class _Swaps(MovingExemplars):
    r"""Scores of RSLVQ after a swap: the base of those by kernels and those by their logs.

    With ``bound``, scores are the bound
    :math:`\sum_n v_n \gamma_{nj} \log k_{nj} - \sum_n v_n \log \sum_j k_{nj}`. Given is the
    first sum for every prototype and candidate, in place of the term of the row's own class.
    ``offset`` is added to every log likelihood.
    """

    def __init__(
        self,
        columns: CandidateColumns,
        prototypes: Prototypes,
        exemplars: Exemplars,
        *,
        bound: Float[np.ndarray, "prototype most"] | None = None,
        offset: float = 0.0,
    ) -> None:
        super().__init__(columns, prototypes, exemplars)
        self._bound, self._offset = bound, offset

    def _first(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The part of the scores that does not depend on the sums of kernels."""
        size = self.columns.rows.candidates[self.prototypes.classes[prototype]].size
        if self._bound is not None:
            return self._bound[prototype, :size].copy()
        return np.full(size, self._offset)


class KernelSwaps(_Swaps):
    """Scores from sums of kernels, none of which underflows, in compiled code."""

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The log likelihood or its bound, for a prototype at each candidate of its class."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        own, of_class = self.others(prototype, 0.0, np.add)
        whole, joins = of_class.sum(axis=0), columns.labels == label
        # Where no other prototype is left, a candidate's kernel is the whole sum.
        rest = -np.log(np.where(whole > 0, whole, 1.0))
        if self._bound is None:
            rest += np.log(np.where(own > 0, own, 1.0))
        else:
            # The term of the row's own class is in the bound already.
            joins = np.zeros_like(joins)
        totals = self._first(prototype) + columns.weights @ rest
        for at, block in columns.blocks(label):
            add_swap_scores(block, joins[at], own[at], whole[at], columns.weights[at], totals)
        return totals

    def sweep(
        self,
        exemplars: Exemplars,
        order: Int[np.ndarray, " turn"],
        *,
        uniforms: Float[np.ndarray, " turn"] | None = None,
        tolerance: float = 0.0,
    ) -> Exemplars:
        """Move prototypes in turn, in one compiled call where the kernels are kept."""
        columns = self.columns
        if columns.kept is None:
            return super().sweep(exemplars, order, uniforms=uniforms, tolerance=tolerance)
        classes, candidates = np.asarray(self.prototypes.classes), columns.rows.candidates
        places = np.empty_like(exemplars)
        for label, part in enumerate(self.prototypes.class_slices):
            places[part] = np.searchsorted(candidates[label], exemplars[part])
        sweep_exemplars(
            columns.kept,
            columns.rows.candidate_starts,
            classes,
            columns.labels,
            columns.weights,
            np.empty((0, 0)) if self._bound is None else self._bound,
            order,
            np.empty(0) if uniforms is None else uniforms,
            tolerance,
            self._lines,
            places,
        )
        return np.concatenate(
            [
                candidates[label][places[part]]
                for label, part in enumerate(self.prototypes.class_slices)
            ]
        )


class LogSwaps(_Swaps):
    """Scores from logs of kernels, some of which would underflow."""

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The log likelihood or its bound, for a prototype at each candidate of its class."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        own, of_class = self.others(prototype, -np.inf, np.logaddexp)
        whole, totals = np.logaddexp.reduce(of_class, axis=0), self._first(prototype)
        for at, block in columns.blocks(label):
            log_ratios = -np.logaddexp(block, whole[at, None])
            if self._bound is None:
                joins = (columns.labels[at] == label)[:, None]
                log_ratios += np.logaddexp(np.where(joins, block, -np.inf), own[at, None])
            totals += columns.weights[at] @ log_ratios
        return totals
