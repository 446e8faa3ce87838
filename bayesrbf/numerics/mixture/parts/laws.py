"""The laws of all columns of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np
from jaxtyping import Int

from bayesrbf.numerics.mixture.parts.full_covariances import FullCovariances
from bayesrbf.numerics.mixture.parts.independent_columns import (
    DiagonalCovariances,
    SphericalCovariances,
)
from bayesrbf.numerics.mixture.parts.level_columns import LevelColumns
from bayesrbf.numerics.mixture.parts.real_columns import RealColumns
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

SHAPES: Final[dict[str, type[RealColumns]]] = {
    "full": FullCovariances,
    "diag": DiagonalCovariances,
    "spherical": SphericalCovariances,
}


@dataclass(frozen=True)
class Laws:
    """The laws of the real and the categorical columns."""

    reals: RealColumns
    levels: LevelColumns

    @cached_property
    def classes(self) -> Int[np.ndarray, " component"]:
        """Class of every component."""
        return np.asarray(self.reals.specification.component_class)

    def mode(
        self,
        statistics: Statistics,
        parameters: MixtureParameters,
        hyperparameters: MixtureHyperparameters,
    ) -> MixtureParameters:
        """The M-step: the mode of the expected complete-data log posterior.

        The statistics are those of the E-step at ``parameters``; the prior is in the same units.
        """
        by_class = np.bincount(self.classes, statistics.counts)
        classes = by_class + (hyperparameters.class_concentration - 1)
        counts = statistics.counts + (hyperparameters.weight_concentration - 1)
        weights = counts / np.bincount(self.classes, counts).take(self.classes)
        following = MixtureParameters(
            classes / classes.sum(),
            weights,
            parameters.means,
            parameters.precisions_cholesky,
            self.levels.mode(statistics.category_counts, hyperparameters),
        )
        return self.reals.mode(following, statistics, hyperparameters)


@cache
def laws_of(specification: MixtureSpecification) -> Laws:
    """The laws of a mixture's columns, made once."""
    return Laws(SHAPES[specification.shape](specification), LevelColumns(specification))
