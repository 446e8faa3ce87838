"""What estimators share whose rows come from a mixture: its fit, responsibilities, new rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.estimators.arguments import Stored
from bayesrbf.estimators.by_blocks import by_blocks
from bayesrbf.estimators.estimator import AnyFit
from bayesrbf.estimators.reading import LARGEST_SEED
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.completed_rows import hide_masked
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.results import Fit


class MixtureMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of estimators whose rows are drawn from a mixture."""

    fitted_: AnyFit
    random_state: Stored[int | np.random.RandomState | None]

    # ---- fitting

    def _warn_where_singular(self, fit: Fit) -> None:
        """Warn if a covariance is singular."""
        if fit.floored:
            warn(
                f"{type(self).__name__}: a covariance is singular to rounding, and its smallest "
                "eigenvalues were raised. Look for columns that are linear functions of others, "
                "or strengthen the prior."
            )

    @property
    def atoms_(self) -> dict[str, dict[float, float]]:
        """Name of every real column with atoms, and of each atom its share of the cells."""
        columns, rows = self._mixture_fit.columns, self._mixture_fit.rows
        shares_of = {}
        for feature, category in columns.atomic.items():
            at, atoms = rows.codes[:, category], columns.atoms[feature]
            observed = at >= 0
            counts = np.bincount(at[observed], rows.weights[observed], len(atoms) + 1)
            shares = (counts / counts.sum()).tolist()
            shares_of[columns.real_names[feature]] = dict(zip(atoms, shares[1:], strict=True))
        return shares_of

    @property
    def _mixture_fit(self) -> FittedTable[FittedModel, object]:
        """The fit; NotFittedError where there is none."""
        check_is_fitted(self)
        return self.fitted_

    @property
    def _n_features_out(self) -> int:
        """Number of components."""
        return self._mixture_fit.density.specification.n_components

    # ---- rows

    @by_blocks
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
        fit = self._mixture_fit
        return fit.density.responsibilities(new_rows(fit, X).cells)

    def _draw(
        self, n_samples: int, parameters: MixtureParameters, labels: np.ndarray | None = None
    ) -> tuple[Any, Int[np.ndarray, " row"]]:
        """New rows in the container of ``fit``, and their class codes."""
        fit = self._mixture_fit
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(
                f"sample(n_samples) must be an integer of at least 1; received {n_samples!r}."
            )
        rng = np.random.default_rng(check_random_state(self.random_state).randint(LARGEST_SEED))
        density = fit.density
        rows, _ = sample(parameters, density.specification, int(n_samples), rng, labels)
        real = density.in_users_units(rows.real)
        cells = hide_masked(real, rows.codes, fit.columns)
        return fit.table.decoded(cells, fit.table.template), rows.labels
