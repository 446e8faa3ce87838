"""What the estimators have whose rows come from a mixture: responsibilities, new rows, checks."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.estimators.estimator import LARGEST_SEED
from bayesrbf.fitted.completing import hide_masked
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.records.mixture import MixtureParameters, Observations

if TYPE_CHECKING:
    import xarray as xr


class MixtureMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of estimators whose rows are drawn from a mixture."""

    _n_features_out: int

    def transform(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Responsibilities: p(component | row), labels not used.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Probabilities at the fitted point; rows sum to one. Components of
            all classes, class by class.
        """
        log_joint = self._component_log_joint(self._read(X))
        responsibilities: Float[np.ndarray, "obs component"] = softmax(log_joint, axis=1)
        return responsibilities

    def _component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Log joint of rows and components where the model is used, in standard units."""
        return self._density.component_log_joint(rows)

    def _draw(
        self, n_samples: int, parameters: MixtureParameters, labels: np.ndarray | None = None
    ) -> tuple[Any, Int[np.ndarray, " row"]]:
        """New rows in the container of ``fit``, and their class codes."""
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"sample(n_samples) must be an integer of at least 1; received {n_samples!r}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(LARGEST_SEED))
        rows, _ = sample(parameters, self._density.specification, int(n_samples), rng, labels)
        real = self._density.units.backward(rows.real)
        real, codes = hide_masked(real, rows.codes, self.columns_)
        return table.decode(real, codes, self.columns_, self._template), rows.labels

    def predictive_check(self, draws: int = 100, *, prior: bool = False) -> xr.DataTree:
        """Tables drawn from the declared graph beside the training table.

        Every drawn table has the missing cells and labels of the real one, so
        that like is compared with like; weights have no part in it.

        Parameters
        ----------
        draws : int
            Number of tables of every chain; at most as many as the posterior
            has draws.
        prior : bool
            Draw the parameters from the prior and not from ``posterior_``.

        Returns
        -------
        xarray.DataTree
            ``posterior_predictive`` (or ``prior_predictive``) and
            ``observed_data``, one variable a column (categories and labels as
            codes) over the rows where it is observed; from a posterior also
            ``posterior`` and the ``log_likelihood`` of the whole rows. For
            ``az.plot_ppc_dist``, ``az.plot_ppc_pit`` and ``az.plot_loo_pit``.

        Raises
        ------
        ValueError
            If ``draws`` is below 1.
        """
        from bayesrbf.estimators.mixture.checking import drawn_tables

        if draws < 1:
            raise ValueError(f"predictive_check(draws=...) must be at least 1; received {draws}.")
        last_real = self._density.specification.n_features
        return drawn_tables(
            self.declare(), self.posterior_, last_real, draws=draws, prior=prior, seed=self.seed_
        )
