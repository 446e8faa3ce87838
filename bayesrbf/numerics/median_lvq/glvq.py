r"""GLVQ on exemplars: Sato and Yamada's margins, for every candidate at once.

See Nebel, Villmann (2013), A median variant of generalized learning vector quantization, ICONIP,
LNCS 8227. Sato, Yamada (1996), Generalized learning vector quantization, NIPS 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
from jaxtyping import Float, Real

from bayesrbf.numerics.kernels.exemplar_scores import add_margin_scores
from bayesrbf.numerics.median_lvq.moving_exemplars import (
    CandidateColumns,
    Exemplars,
    MovingExemplars,
)
from bayesrbf.records.median_lvq import Dissimilarities, Prototypes


@dataclass(frozen=True)
class MarginSum:
    r"""The objective of GLVQ, to be maximised: the sum of the margins.

    .. math:: \sum_n v_n \frac{d_-(x_n) - d_+(x_n)}{d_-(x_n) + d_+(x_n)}

    with :math:`d_+` the dissimilarity to the nearest exemplar of the row's own class, and
    :math:`d_-` that to the nearest of any other.
    """

    rows: Dissimilarities
    prototypes: Prototypes

    def pointwise(self, exemplars: Exemplars) -> Float[np.ndarray, " labelled"]:
        """Margin of every labelled row, from -1 to 1, negative where the row is misclassified."""
        labelled = self.rows.labelled
        columns = self.rows.values[labelled[:, None], exemplars]
        margins = class_margins(columns, self.prototypes)
        return margins[np.arange(labelled.size), self.rows.labels[labelled]]

    def value(self, exemplars: Exemplars) -> float:
        """The weighted sum of the margins of the labelled rows."""
        return float(self.rows.weights[self.rows.labelled] @ self.pointwise(exemplars))

    def scorer(self, exemplars: Exemplars) -> MovingExemplars:
        """Prepare to judge moves by sums of margins."""
        return MarginSwaps(self._columns, self.prototypes, exemplars)

    def bound(self, exemplars: Exemplars) -> MovingExemplars:
        r"""Prepare the bound of the generalised EM, up to a constant.

        A margin is :math:`2 g_n - 1` with :math:`g_n = d_- / (d_+ + d_-)`. With
        :math:`\gamma_n = v_n g_n / \sum_m v_m g_m` at the given exemplars held fixed, Jensen's
        inequality bounds :math:`\log \sum_n v_n g_n` from below by
        :math:`\sum_n \gamma_n \log g_n` and a constant.

        See Nebel, Villmann (2013).
        """
        gamma = self._columns.weights * (self.pointwise(exemplars) + 1) / 2
        return MarginSwaps(self._columns, self.prototypes, exemplars, gamma)

    @property
    def sigma(self) -> None:
        """None: margins have no width."""

    def refit(self, exemplars: Exemplars) -> Self:
        """The objective itself: nothing but the exemplars is free."""
        return self

    @cached_property
    def _columns(self) -> CandidateColumns:
        """Dissimilarities to the candidates."""
        return CandidateColumns(self.rows, partial(np.asarray, dtype=np.float64))


class MarginSwaps(MovingExemplars):
    r"""Margins after a move of one of the exemplars, in compiled code.

    With ``gamma``, weights of the labelled rows, scores are the bound
    :math:`\sum_n \gamma_n \log g_n`.
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
        """The sum of the margins, or its bound, for a prototype at each candidate of its class."""
        columns, label = self.columns, self.prototypes.classes[prototype]
        near, of_class = self.others(prototype, np.inf, np.minimum)
        # The nearest of any other class: the row's own is out.
        of_class[columns.labels, np.arange(near.size)] = np.inf
        far, joins = of_class.min(axis=0), columns.labels == label
        logs = self._gamma is not None
        weights = columns.weights if self._gamma is None else self._gamma
        totals = np.zeros(columns.rows.candidates[label].size)
        for at, block in columns.blocks(label):
            add_margin_scores(block, joins[at], near[at], far[at], weights[at], logs, totals)
        return totals


def class_margins(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes
) -> Float[np.ndarray, "obs label"]:
    r"""Sato-Yamada margin of each class, were it the label, from -1 to 1.

    .. math:: \frac{d_{\neg c}(x) - d_c(x)}{d_{\neg c}(x) + d_c(x)}

    with :math:`d_c` the dissimilarity to the nearest exemplar of class c and :math:`d_{\neg c}`
    that to the nearest of any other class. It is 0 where both are 0, or where there is no other
    class.
    """
    columns = columns.astype(np.float64)
    margins = np.empty((len(columns), len(prototypes.class_slices)))
    for c, part in enumerate(prototypes.class_slices):
        near = columns[:, part].min(axis=1)
        far = np.delete(columns, part, axis=1).min(axis=1, initial=np.inf)
        margins[:, c] = 2 * far_fraction(near, far) - 1
    return margins


def far_fraction(
    near: Float[np.ndarray, "*shape"], far: Float[np.ndarray, "*#shape"]
) -> Float[np.ndarray, "*shape"]:
    """Fraction of the other classes' dissimilarity, :math:`d_- / (d_+ + d_-)`, from 0 to 1.

    ``near`` is the dissimilarity to the nearest exemplar of the own class, ``far`` that to the
    nearest of any other, infinite where there is no other. The result is 1/2 then, and where
    both are 0.

    >>> far_fraction(np.array([1.0, 0.0, 2.0]), np.array([3.0, 0.0, np.inf]))
    array([0.75, 0.5 , 0.5 ])
    """
    # 0 / 0 and inf / inf are NaN: neither side is nearer.
    with np.errstate(invalid="ignore"):
        fraction = far / (near + far)
    return np.where(np.isnan(fraction), 0.5, fraction)
