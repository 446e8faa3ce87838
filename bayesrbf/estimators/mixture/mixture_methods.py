"""What estimators share whose rows come from a mixture: its fit, responsibilities, new rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.answers.asking import new_rows
from bayesrbf.estimators.out_of_core.answering import by_blocks
from bayesrbf.estimators.reading import LARGEST_SEED
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.completed_rows import hide_masked
from bayesrbf.fitted.fitted_model import FittedModel
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.numerics.mixture.sampling import sample
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.results import Fit

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr


class MixtureMethods(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of estimators whose rows are drawn from a mixture."""

    fitted_: FittedTable[Any, Any]
    warm_start: Any
    random_state: Any

    # ---- fitting

    def _start(self, specification: Any) -> Any:
        """The previous fit in the user's units under ``warm_start``; None at the first fit."""
        fitted = vars(self).get("fitted_")
        if fitted is None or not self.warm_start:
            return None
        before = fitted.model.specification
        if before.structure != specification.structure:
            raise ValueError(
                f"{type(self).__name__}(warm_start=True) needs the columns, classes and "
                f"components of the previous fit, {before}; received "
                f"{specification}. Use a new estimator."
            )
        return fitted.model.start

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
        cells = hide_masked(real, rows.codes, rows.further, fit.columns)
        return fit.table.decoded(cells, fit.table.template), rows.labels

    def predictive_check(self, draws: int = 100, *, prior: bool = False) -> xr.DataTree:
        """Tables drawn from the declared graph beside the training table.

        Every drawn table has the same missing cells and hidden labels as the real one, so
        that the two can be compared. Row weights are not used.

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
        if draws < 1:
            raise ValueError(f"predictive_check(draws=...) must be at least 1; received {draws}.")
        fit = self._mixture_fit
        fit.require_all_rows("predictive_check()")
        graph, last_real = (
            fit.model.declare(fit.rows, fit.axes),
            fit.density.specification.n_features,
        )
        seed = fit.table.seed
        return drawn_tables(graph, fit.tree, last_real, draws=draws, prior=prior, seed=seed)


def drawn_tables(
    model: pm.Model, tree: xr.DataTree, last_real: int, *, draws: int, prior: bool, seed: int
) -> xr.DataTree:
    """Draw tables from a graph whose rows are one node, and split them into columns.

    Tables of every chain are ``draws`` at most. The label before the real columns and the
    categories behind them are codes; ``last_real`` is the place of the last real column.
    """
    import pymc as pm
    import xarray as xr

    from bayesrbf.conversion import by_column

    groups = (names.CONSTANT_DATA, names.OBSERVED_DATA)  # of a classifier, and of a density
    of_cells = [tree.children[group].to_dataset() for group in groups]
    (observed,) = (group[names.OBSERVED] for group in of_cells if names.OBSERVED in group)
    places = np.arange(observed.sizes[names.COLUMN])
    discrete = (places == 0) | (places > last_real)
    if names.CLASS_PROBABILITIES not in tree.children[names.POSTERIOR]:
        observed = observed.where(
            xr.DataArray(places > 0, dims=names.COLUMN)
        )  # one class says nothing
    # one pass over few tables: compiling would cost more than it saves
    compiled = {"mode": "FAST_COMPILE"}
    if prior:
        made = pm.sample_prior_predictive(draws, model, random_seed=seed, compile_kwargs=compiled)
        drawn = made.children["prior_predictive"].to_dataset()[names.OBSERVED]
        return by_column(drawn, observed, discrete)
    (scored,) = tree.children[names.LOG_LIKELIHOOD].data_vars
    evaluated = tree.children[names.LOG_LIKELIHOOD].to_dataset()[names.DRAW].to_numpy()
    spread = np.linspace(0, evaluated.size - 1, draws).astype(int)
    kept = tree.sel({names.DRAW: evaluated[np.unique(spread)]})
    made = pm.sample_posterior_predictive(
        kept, model, random_seed=seed, progressbar=False, compile_kwargs=compiled
    )
    check = by_column(
        made.children["posterior_predictive"].to_dataset()[names.OBSERVED],
        observed,
        discrete,
        kept.children[names.LOG_LIKELIHOOD].to_dataset()[scored],
    )
    check[names.POSTERIOR] = kept.children[names.POSTERIOR]
    return check
