r"""GLVQ on exemplars: Sato and Yamada's margins, for every candidate at once.

References
----------
Nebel, Villmann (2013), A median variant of generalized learning vector quantization,
ICONIP, LNCS 8227. Sato, Yamada (1996), Generalized learning vector quantization, NIPS 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
from jaxtyping import Float

from bayesrbf.exemplars import Dissimilarities, Prototypes
from bayesrbf.numerics.kernels.exemplar_scores import add_margin_scores
from bayesrbf.numerics.median_lvq.columns import CandidateColumns, MovingExemplars
from bayesrbf.numerics.median_lvq.exemplars import class_margins
from bayesrbf.numerics.median_lvq.objective import Exemplars, Scorer


@dataclass(frozen=True)
class MarginSum:
    r"""The objective of GLVQ, to be maximised: the sum of the margins.

    .. math:: \sum_n v_n \frac{d_-(x_n) - d_+(x_n)}{d_-(x_n) + d_+(x_n)}

    with :math:`d_+` the dissimilarity to the nearest exemplar of the row's own
    class, and :math:`d_-` that to the nearest of any other.

    Attributes
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    """

    rows: Dissimilarities
    prototypes: Prototypes

    def pointwise(self, exemplars: Exemplars) -> Float[np.ndarray, " labelled"]:
        """Margin of every labelled row.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        ndarray of shape (n_labelled,)
            From -1 to 1, negative where the row is misclassified.
        """
        labelled = self.rows.labelled
        columns = self.rows.values[labelled[:, None], exemplars]
        margins = class_margins(columns, self.prototypes)
        return margins[np.arange(labelled.size), self.rows.labels[labelled]]

    def value(self, exemplars: Exemplars) -> float:
        """The sum of the margins.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        float
            Weighted sum over the labelled rows.
        """
        return float(self.rows.weights[self.rows.labelled] @ self.pointwise(exemplars))

    def scorer(self, exemplars: Exemplars) -> Scorer:
        """Prepare to judge swaps.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is at first.

        Returns
        -------
        Scorer
            Its scores are sums of margins.
        """
        return MarginSwaps(self._columns, self.prototypes, exemplars)

    def bound(self, exemplars: Exemplars) -> Scorer:
        r"""Prepare the bound of the generalised EM.

        A margin is :math:`2 g_n - 1` with :math:`g_n = d_- / (d_+ + d_-)`. With
        :math:`\gamma_n = v_n g_n / \sum_m v_m g_m` held fixed, Jensen's inequality
        bounds :math:`\log \sum_n v_n g_n` from below by
        :math:`\sum_n \gamma_n \log g_n` and a constant.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is: where the bound is taken.

        Returns
        -------
        Scorer
            Its scores are the bound up to a constant.

        References
        ----------
        Nebel, Villmann (2013).
        """
        gamma = self._columns.weights * (self.pointwise(exemplars) + 1) / 2
        return MarginSwaps(self._columns, self.prototypes, exemplars, gamma)

    @property
    def sigma(self) -> None:
        """Margins have no width."""

    def refit(self, exemplars: Exemplars) -> Self:
        """Nothing but the exemplars is free.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        MarginSum
            The same.
        """
        return self

    @cached_property
    def _columns(self) -> CandidateColumns:
        """Dissimilarities to the candidates."""
        return CandidateColumns(self.rows, partial(np.asarray, dtype=np.float64))


class MarginSwaps(MovingExemplars):
    """Margins after a swap of one of the exemplars, in compiled code.

    Parameters
    ----------
    columns : CandidateColumns
        Dissimilarities of the labelled rows to the candidates.
    prototypes : Prototypes
        Class of every prototype.
    exemplars : ndarray of shape (n_prototypes,)
        Training row that each prototype is at first.
    gamma : ndarray of shape (n_labelled,), optional
        Weights under which far shares are judged by their logs.
    """

    def __init__(
        self,
        columns: CandidateColumns,
        prototypes: Prototypes,
        exemplars: Exemplars,
        gamma: Float[np.ndarray, " labelled"] | None = None,
    ) -> None:
        super().__init__(columns, prototypes, exemplars)
        self._gamma = gamma

    def scores(self, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The sum of the margins or its bound, were a prototype each candidate of its class.

        Parameters
        ----------
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Sums.
        """
        columns, label = self.columns, self.prototypes.classes[prototype]
        near, of_class = self.others(prototype, np.inf, np.minimum)
        of_class[columns.labels, np.arange(near.size)] = np.inf
        far, joins = of_class.min(axis=0), columns.labels == label
        logs = self._gamma is not None
        weights = columns.weights if self._gamma is None else self._gamma
        totals = np.zeros(columns.rows.candidates[label].size)
        for at, block in columns.blocks(label):
            add_margin_scores(block, joins[at], near[at], far[at], weights[at], logs, totals)
        return totals
