"""What every estimator of tables shares: reading them, at fit and at predict."""

from __future__ import annotations

from types import UnionType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from bayesrbf import table
from bayesrbf.estimators.checks import check_arguments
from bayesrbf.estimators.stored import StoredEstimator
from bayesrbf.parameters import Observations

LARGEST_SEED = 2**31 - 1


class TableEstimator(StoredEstimator):
    """Base of what is fitted to rows of real and categorical cells with holes."""

    _columns: table.Columns
    _kept: Int[np.ndarray, " obs"]
    _rows: Observations
    _seed: int
    _template: Any

    _STATE: ClassVar[dict[str, type | UnionType]] = {
        "_columns": table.Columns,
        "_kept": np.ndarray,
        "_rows": Observations,
        "_seed": int,
        "_template": object,
        "n_features_in_": int,
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _common_arguments(self) -> dict[str, Any]:
        """Arguments that mean the same everywhere; a family leaves out what it checks itself."""
        return self.get_params(deep=False)

    def _check(self, X: object, y: object, sample_weight: object) -> Float[np.ndarray, " obs"]:
        """Check arguments and widths; the row weights."""
        check_arguments(self._common_arguments(), type(self).__name__)
        table.as_frame(X)  # has the words for frames that are none, before scikit-learn has
        validate_data(self, X, y, skip_check_array=True)
        if _num_samples(X) == 0:
            raise ValueError("X has 0 sample(s), but fit needs at least one row.")
        weights: Float[np.ndarray, " obs"] = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weights

    def _read_rows(
        self, X: object, labels: Int[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
    ) -> None:
        """Learn the columns and read the rows of positive weight: no other row teaches."""
        self._kept = np.flatnonzero(weights > 0)
        X = X if self._kept.size == weights.size else _safe_indexing(X, self._kept)
        self._columns = table.learn_columns(
            X,
            categorical_features=self.categorical_features,
            missingness=getattr(self, "missingness", "ignorable"),
        )
        encoded = table.encode(X, self._columns)
        self._rows = Observations(
            encoded.real, encoded.codes, labels[self._kept], weights[self._kept]
        )
        self._template = table.decode(encoded.real[:0], encoded.codes[:0], self._columns, X)
        self._seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        check_is_fitted(self)
        if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
            validate_data(self, X, reset=False, skip_check_array=True)
        encoded = table.encode(X, self._columns, handle_unknown=self.handle_unknown)
        n_obs = encoded.real.shape[0]
        return Observations(encoded.real, encoded.codes, np.full(n_obs, -1), np.ones(n_obs))
