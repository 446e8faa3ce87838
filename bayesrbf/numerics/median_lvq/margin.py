r"""GLVQ on exemplars: Sato and Yamada's margins, for every candidate at once.

References
----------
Nebel, Villmann (2013), A median variant of generalized learning vector quantization,
ICONIP, LNCS 8227. Sato, Yamada (1996), Generalized learning vector quantization, NIPS 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float

from bayesrbf.exemplars import Dissimilarities, Prototypes
from bayesrbf.numerics.median_lvq.exemplars import (
    Exemplars,
    Scores,
    blocks,
    class_margins,
    far_share,
)

Nearest = tuple[Float[np.ndarray, " labelled"], Float[np.ndarray, " labelled"]]


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

    def scores(self, exemplars: Exemplars, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The sum of the margins, were a prototype each of the candidates of its class.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Sums of margins.
        """
        label = self.prototypes.classes[prototype]
        rest = self._rest(exemplars, prototype)
        total = np.zeros(self.rows.candidates[label].size)
        for at, part, columns in blocks(self.rows, label):
            share = _shares(columns, self.rows.labels[part] == label, (rest[0][at], rest[1][at]))
            total += self.rows.weights[part] @ (2 * share - 1)
        return total

    def bound(self, exemplars: Exemplars) -> Scores:
        r"""Scores of the bound of the generalised EM.

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
        callable
            Exemplars and a prototype -> bound for each candidate, up to a constant.

        References
        ----------
        Nebel, Villmann (2013).
        """
        share_now = (self.pointwise(exemplars) + 1) / 2
        gamma = self.rows.weights[self.rows.labelled] * share_now

        def scores(moved: Exemplars, prototype: int) -> Float[np.ndarray, " candidate"]:
            label = self.prototypes.classes[prototype]
            rest = self._rest(moved, prototype)
            total = np.zeros(self.rows.candidates[label].size)
            for at, part, columns in blocks(self.rows, label):
                own = self.rows.labels[part] == label
                counted = gamma[at] > 0
                near, far = rest[0][at][counted], rest[1][at][counted]
                share = _shares(columns[counted], own[counted], (near, far))
                with np.errstate(divide="ignore"):
                    total += gamma[at][counted] @ np.log(share)
            return total

        return scores

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

    def _rest(self, exemplars: Exemplars, prototype: int) -> Nearest:
        """Dissimilarity to the nearest other prototype, of the own class and of the others."""
        labelled = self.rows.labelled
        columns = self.rows.values[labelled[:, None], exemplars].astype(np.float64)
        columns[:, prototype] = np.inf
        own = np.asarray(self.prototypes.classes) == self.rows.labels[labelled, None]
        near = np.where(own, columns, np.inf).min(axis=1)
        far = np.where(own, np.inf, columns).min(axis=1)
        return near, far


def _shares(
    columns: np.ndarray, own: np.ndarray, rest: Nearest
) -> Float[np.ndarray, "row candidate"]:
    """Far share of rows, were one prototype each of the candidates.

    A candidate of the row's own class may be the nearest of its own, one of another
    class the nearest of the others.
    """
    near, far = (side[:, None] for side in rest)
    return far_share(
        np.where(own[:, None], np.minimum(near, columns), near),
        np.where(own[:, None], far, np.minimum(far, columns)),
    )
