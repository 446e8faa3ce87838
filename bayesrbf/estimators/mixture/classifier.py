"""A classifier whose classes are mixtures: what it adds to a classifier and to a mixture."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.classifier import PosteriorClassifier
from bayesrbf.estimators.mixture.estimator import MixtureEstimator
from bayesrbf.numerics.prevalence import at_prevalence
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    from bayesrbf.posterior.predictive import Predictor


class MixtureClassifier(PosteriorClassifier, MixtureEstimator):
    """Base of the classifiers whose classes are mixtures; see the subclasses."""

    _STATE: ClassVar[dict[str, type | UnionType]] = (
        MixtureEstimator._STATE | PosteriorClassifier._STATE
    )

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        return MixtureEstimator._read(self, X)

    def _predictor(self, log_posterior: Any) -> Callable[[Observations], Predictor]:
        """Prepares rows for predictions at many points."""
        return lambda rows: log_posterior.predictor(self._mixture.standardise(rows))

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Log joint of rows and classes at the fitted point, in standard units."""
        return self._mixture.class_log_joint(rows)

    def _component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Log joint of rows and components at the prevalences of use, in standard units."""
        fitted = np.log(self._mixture.parameters.class_probabilities)
        change = at_prevalence(fitted, self._log_ratio()) - fitted
        log_joint = self._mixture.component_log_joint(rows)
        return log_joint + change[list(self._mixture.specification.component_class)]

    def _class_names(self) -> np.ndarray:
        """Class labels."""
        return self.classes_
