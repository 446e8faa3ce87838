r"""What it tells of the label that cells of a row were not measured.

The masks m of a row have a mixture of their own in every class, fitted as any other. A row may also
be one whose cells are missing by chance, each with the same unknown probability:

.. math:: \frac{p(m \mid c)}{p(m)} \approx (1 - w) \frac{p(m_1 \mid c)}{p(m_1)} + w, \quad
    w = \frac{\epsilon B(k + 1, J - k + 1)}{(1 - \epsilon) p(m) + \epsilon B(k + 1, J - k + 1)}

with the masks :math:`m_1` of the cells that are missing, k of J. What is missing speaks, what is
measured does not: a table of complete rows is as one of a training table without holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import betaln

from bayesrbf import table
from bayesrbf.base.arrays import one_hot
from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.records import Requirements, stored
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.mixture.fitted import FittedMixture, Solver, component_class, fit_mixture_rows
from bayesrbf.table.columns import Columns

BY_CHANCE: Final = 0.3
"""Share of rows whose cells are missing by chance, as the prior has it."""
COMPONENTS: Final = 3
"""Most components of a class: columns that are missing together are one piece of evidence."""
TOLD: Final = 3
"""Columns, at most, of which a sentence says how often they are missing."""


@stored
class Reasons:
    """Which cells are missing in each class."""

    masks: FittedMixture
    """Mixture of the masks alone."""

    def log_evidence(self, masks: Int[np.ndarray, "obs mask"]) -> Float[np.ndarray, "obs label"]:
        """``log p(m | c) / p(m)`` in nats: 1 missing, 0 measured, -1 not asked about."""
        n_missing, n_known = (masks == 1).sum(axis=1), (masks >= 0).sum(axis=1)
        by_chance = np.log(BY_CHANCE) + betaln(n_missing + 1, n_known - n_missing + 1)
        told = np.log1p(-BY_CHANCE) + self.masks.log_density(_rows(masks))
        either = np.logaddexp(by_chance, told)
        missing = np.where(masks == 1, 1, -1)
        log_joint = self.masks.class_log_joint(_rows(missing))
        nothing = self.masks.class_log_joint(_rows(np.full_like(masks[:1], -1)))
        ratio = log_joint - nothing - np.logaddexp.reduce(log_joint, axis=1)[:, None]
        return np.logaddexp((told - either)[:, None] + ratio, (by_chance - either)[:, None])

    def __laws__(self) -> Requirements:
        seen = self.masks.specification
        yield seen.n_features == 0 and set(seen.levels) == {2}, "a mixture of masks"


def _rows(masks: Int[np.ndarray, "obs mask"]) -> Observations:
    n = len(masks)
    return Observations(np.zeros((n, 0)), masks, np.full(n, -1), np.ones(n))


def fit_reasons(
    rows: Observations, n_masks: int, n_classes: int, prior: MixturePrior, solver: Solver
) -> Reasons:
    """Fit to rows whose last codes are masks."""
    masks = rows.codes[:, rows.codes.shape[1] - n_masks :]
    alone = replace(rows, real=np.zeros((rows.n_obs, 0)), codes=masks, units=None)
    alone = table.distinct(alone)[0]
    classes = component_class(alone, n_classes, COMPONENTS)
    specification = MixtureSpecification(0, (2,) * n_masks, classes)
    return Reasons(fit_mixture_rows(alone, specification, prior, solver)[0])


def telling_columns(rows: Observations, masked: Columns, classes: Sequence[object]) -> str:
    """Of a few columns that differ most, how often they are missing in classes far apart.

    ``rows`` have no masks yet.
    """
    rows = rows.take(rows.labels >= 0)
    missing = ~table.observed_cells(rows, masked)[:, masked.masked]
    of_class = rows.weights[:, None] * one_hot(rows.labels[:, None], (len(classes),))
    counts = of_class.sum(axis=0)
    shares, whole = missing.T @ of_class / counts, missing.T @ rows.weights / counts.sum()
    between = (shares - whole[:, None]) ** 2 @ counts
    apart = between / np.maximum(whole * (1 - whole), np.finfo(float).tiny)
    told = []
    for place in np.argsort(-apart, kind="stable")[:TOLD]:
        most, least = (
            f"{100 * shares[place, c]:.0f} % of {classes[c]!r}"
            for c in (shares[place].argmax(), shares[place].argmin())
        )
        told.append(f"{masked.names[masked.masked[place]]!r} is missing in {most} and {least}")
    return "; ".join(told)
