"""Which of a hybrid mixture's arguments are open, and what the others ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Final, Literal

import numpy as np

from bayesrbf import table
from bayesrbf.estimators.arguments import Arguments, PerClass, Stored
from bayesrbf.fitted.fitted_mixture import LIKELIHOOD
from bayesrbf.fitted.mixture_candidates import MOST_COMPONENTS, Setting, open_shapes, open_weights
from bayesrbf.fitted.mixture_fitting import Solver
from bayesrbf.fitted.mixture_selection import Round
from bayesrbf.records.mixture_objectives import MixtureObjective, objective_of
from bayesrbf.records.objective import ObjectiveName
from bayesrbf.records.specification import CovarianceType, MixtureSpecification

OPEN: Final = "cv"
"""The word that leaves an argument to the rows held out."""


@dataclass(frozen=True)
class HybridArguments:
    """Arguments on which objective, solver and candidates depend."""

    n_components: Stored[int | PerClass[int] | Literal["cv"]]
    covariance_type: Stored[CovarianceType | Literal["cv"]]
    tied: Stored[bool | Literal["cv"]]
    missingness: Stored[Literal["ignorable", "informative", "cv"]]
    unlabelled_weight: Stored[float | Literal["cv"] | None]
    objective: Stored[ObjectiveName | MixtureObjective]
    n_init: Stored[int]
    max_iter: Stored[int]
    tol: Stored[float]

    @classmethod
    def of(cls, parameters: Arguments) -> HybridArguments:
        """Those among the parameters of a classifier."""
        return cls(**{one.name: parameters[one.name] for one in fields(cls)})

    def solver(self, seed: int) -> Solver:
        """How mixtures are fitted."""
        return Solver(
            self.n_init,
            self.max_iter,
            float(self.tol),
            seed,
            steps=objective_of(self.objective).steps,
        )

    def rounds(
        self, specification: MixtureSpecification, columns: table.Columns
    ) -> tuple[Setting, tuple[Round, ...]]:
        """The first candidate, and the questions to the held-out rows in their order.

        Shapes first, because the likelihood has the best shapes of a blend, too, and costs a
        fraction of it; then the dial and the weight of unlabelled rows; missing cells last.
        """
        asked, n_columns = objective_of(self.objective), len(columns.names)
        objective, open_dial = asked.constants, asked.is_open
        open_weight = self.unlabelled_weight == OPEN
        weight = 1 / n_columns if self.unlabelled_weight is None else 1.0
        many = None
        if self.n_components == OPEN:
            many = tuple(np.repeat(specification.component_class, MOST_COMPONENTS).tolist())
        shapes = open_shapes(
            specification,
            open_type=self.covariance_type == OPEN,
            open_tied=self.tied == OPEN,
            more_components=many,
        )
        cheap = LIKELIHOOD if open_dial or len(shapes) > 1 else objective
        first_weight = 0.0 if open_weight else weight
        start = Setting(cheap, first_weight, shapes[0], informative=bool(columns.masked))
        weights = open_weights(
            objective,
            open_dial=open_dial,
            unlabelled_weight=None if open_weight else weight,
            n_columns=n_columns,
        )
        holes: list[Callable[[Setting], Setting]] = [replace]
        if self.missingness == OPEN and any(columns.missing):
            holes.append(partial(Setting.with_masks, columns=columns))
        return start, (
            Round([partial(replace, specification=shape) for shape in shapes], 1.0),
            Round([partial(replace, objective=o, unlabelled_weight=w) for o, w in weights]),
            Round(holes, 1.0),
        )
