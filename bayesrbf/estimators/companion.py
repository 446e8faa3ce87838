"""A mixture beside a classifier that has no density of its own: novelty, and missing cells."""

from __future__ import annotations

from types import UnionType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.classifier import PosteriorClassifier
from bayesrbf.estimators.mixture.completing import most_likely
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.estimators.table_estimator import TableEstimator
from bayesrbf.parameters import Observations


class CompanionClassifier(TableEstimator, PosteriorClassifier):
    """Base of the classifiers of tables that fit a class-conditional mixture, too."""

    _companion: FittedMixture

    _STATE: ClassVar[dict[str, type | UnionType]] = (
        TableEstimator._STATE | PosteriorClassifier._STATE | {"_companion": FittedMixture}
    )

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        return TableEstimator._read(self, X)

    def _log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density of observed cells, in the user's units."""
        by_class = self._companion.class_log_joint(rows)
        return np.logaddexp.reduce(by_class, axis=1) + self._companion.log_unit(rows)

    def score_samples(self, X: object) -> Float[np.ndarray, " obs"]:
        """Log density of the observed cells of each row, under the companion mixture.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Log densities in nats, in the units of ``X``; low values are novel.
        """
        return self._log_density(self._read(X))

    def impute(self, X: object) -> Any:
        """Fill the missing cells under the companion mixture; others stay as they came.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.

        Returns
        -------
        same container as ``X``
            With conditional means of real and most probable levels of categorical cells.
        """
        rows = self._read(X)
        return table.decode(*most_likely(self._companion, rows), self._columns, X)
