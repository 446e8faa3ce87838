"""Classifying mixtures among which held-out rows choose: structures, objectives, rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from bayesrbf import table
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.specification import CovarianceType, MixtureSpecification
from bayesrbf.records.stored import ANY_NUMBER, stored

KAPPAS: Final = (1.0, 0.5, 0.3, 0.1, 0.03)
"""Weights of the density in a blend, from the likelihood on. Below, held-out log loss
diverges where cells are hidden."""
HINGE_WEIGHTS: Final = (0.25, 1.0, 4.0, 16.0)
SHAPES: Final[tuple[CovarianceType, ...]] = ("full", "diag")
"""Shapes of covariances to choose from, in classifiers and in densities."""
MOST_COMPONENTS: Final = 3
"""Components of a class beside which one is judged."""


@dataclass(frozen=True)
class Setting:
    """One candidate: a structure, an objective, and what it makes of the rows."""

    objective: Objective
    unlabelled_weight: float
    """Factor of the weight of rows without a label."""
    specification: MixtureSpecification
    informative: bool = False
    """Whether missing cells say something."""
    masked: table.Columns | None = None
    """Columns whose masks join the rows; None: the rows are as they were read."""

    def cells(self, rows: Observations) -> Observations:
        """Rows with the masks of their missing cells, where these are to join them."""
        return rows if self.masked is None else table.with_masks(rows, self.masked)

    def weigh(self, rows: Observations) -> Observations:
        """Training rows of this candidate; those that weigh nothing are left out."""
        rows = self.cells(rows)
        if self.unlabelled_weight == 1 or not (rows.labels < 0).any():
            return rows
        weights = table.weigh_unlabelled(rows.labels, rows.weights, self.unlabelled_weight)
        return replace(rows, weights=weights).take(weights > 0)

    def with_masks(self, columns: table.Columns) -> Setting:
        """The candidate under which missing cells of these columns say something."""
        masked = columns.with_masks
        specification = replace(self.specification, levels=masked.n_levels)
        return replace(self, specification=specification, informative=True, masked=masked)


@stored
class MixtureCandidate:
    """One classifying mixture that was judged."""

    n_components: tuple[int, ...]
    """Components of every class."""
    covariance_type: CovarianceType
    tied: bool
    objective: Objective
    unlabelled_weight: float
    """Factor of the weight of rows without a label."""
    informative: bool
    """Whether missing cells say something."""
    log_score: float = field(metadata=ANY_NUMBER)
    """Log probability of the class of a row held out, in nats."""

    @classmethod
    def of(cls, setting: Setting, log_score: float) -> MixtureCandidate:
        """A setting and its score."""
        structure = setting.specification
        return cls(
            tuple(np.bincount(structure.component_class).tolist()),
            structure.covariance_type,
            structure.tied,
            setting.objective,
            float(setting.unlabelled_weight),
            setting.informative,
            float(log_score),
        )


def open_shapes(
    specification: MixtureSpecification,
    *,
    open_type: bool,
    open_tied: bool,
    more_components: tuple[int, ...] | None = None,
) -> tuple[MixtureSpecification, ...]:
    """Every structure that is to be judged; one where nothing is open.

    Without real columns there are no covariances to choose. Covariances that the classes share are
    tried with the components of the specification alone, where it is open whether they are shared.

    Examples
    --------
    >>> asked = MixtureSpecification(2, (), (0, 1))
    >>> [(s.covariance_type, s.tied) for s in open_shapes(asked, open_type=True, open_tied=True)]
    [('full', True), ('diag', True), ('full', False), ('diag', False)]
    """
    shapes = SHAPES if open_type else (specification.covariance_type,)
    shared = (True, False) if open_tied else (specification.tied,)
    if not specification.n_features:
        shapes, shared = (specification.covariance_type,), (specification.tied,)
    few = [
        replace(specification, covariance_type=shape, tied=tied)
        for tied in shared
        for shape in shapes
    ]
    if more_components in (None, specification.component_class):
        return tuple(few)
    last = shared[-1]
    return (
        *few,
        *(replace(one, component_class=more_components) for one in few if one.tied == last),
    )


def open_weights(
    objective: Objective, *, open_dial: bool, unlabelled_weight: float | None, n_columns: int
) -> list[tuple[Objective, float]]:
    """Objectives and weights of unlabelled rows that are to be judged; one pair if none is open.

    A weight of None opens 0, 1 / n_columns and 1.

    Examples
    --------
    >>> blend = Objective("blend")
    >>> pairs = open_weights(blend, open_dial=True, unlabelled_weight=1.0, n_columns=4)
    >>> [objective.kappa for objective, _ in pairs]
    [1.0, 0.5, 0.3, 0.1, 0.03]
    """
    objectives = [objective]
    if open_dial and objective.name == "blend":
        objectives = [replace(objective, kappa=kappa) for kappa in KAPPAS]
    elif open_dial and objective.name == "hinge":
        objectives = [replace(objective, hinge_weight=weight) for weight in HINGE_WEIGHTS]
    weights = {0.0, 1.0 / n_columns, 1.0} if unlabelled_weight is None else {unlabelled_weight}
    return [(one, weight) for one in objectives for weight in sorted(weights)]
