"""Column transformations to stand in front of an estimator; missing cells stay missing."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesrbf.estimators.arguments import row_weights
from bayesrbf.numerics.column_maps import HalfRankMaps, fit_half_rank
from bayesrbf.numerics.threads import on_one_blas_thread
from bayesrbf.table import standardisation


class HalfRankTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Mean of the standardised value and its normal score, for kernels.

    .. math:: x \mapsto \tfrac12 \, \mathrm{clip}(z, \pm 4)
        + \tfrac12 \, \Phi^{-1}(\text{mid-rank}(x) / n)

    with z the standardised value and the scores restandardised. Outliers move closer, and
    their order stays. Ties share a mid-rank. Scores are linear between the training
    cells, and constant outside them. NaN stays NaN.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, where the table had names.

    See Also
    --------
    sklearn.preprocessing.PowerTransformer : Yeo-Johnson's powers, for mixtures.

    Examples
    --------
    >>> X = [[1.0], [2.0], [np.nan], [3.0], [100.0]]
    >>> HalfRankTransformer().fit_transform(X).ravel().round(2)
    array([-0.98, -0.48,   nan, -0.09,  1.55])
    """

    _maps: HalfRankMaps

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @on_one_blas_thread
    def fit(self, X: object, y: object = None, sample_weight: object = None) -> Self:
        """Learn location, scale and ranks of every column.

        Parameters
        ----------
        X : array-like of shape (n_obs, n_columns)
            Training rows, NaN where missing.
        y : object
            Ignored.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights, at least 0: a row of weight 2 counts twice.

        Returns
        -------
        self
            The fitted transformer.
        """
        beside = copy(self)
        real = validate_data(beside, X, dtype=np.float64, ensure_all_finite="allow-nan")
        weights = row_weights(sample_weight, real)
        real, weights = real[weights > 0], weights[weights > 0]
        maps = fit_half_rank(standardisation(real, weights), real, weights)
        # One assignment: an error or an interrupt leaves the fit before.
        self.__dict__ = vars(beside) | {"_maps": maps}
        return self

    def transform(self, X: object) -> Float[np.ndarray, "obs feature"]:
        """Map rows.

        Parameters
        ----------
        X : array-like of shape (n_obs, n_columns)
            Rows, NaN where missing.

        Returns
        -------
        ndarray of shape (n_obs, n_columns)
            Mapped rows, NaN where missing.
        """
        check_is_fitted(self)
        real = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        return self._maps.forward(real)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the ranks are known."""
        return hasattr(self, "_maps")
