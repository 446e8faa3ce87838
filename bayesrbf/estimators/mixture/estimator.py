"""What the estimators whose density is a mixture share: the fit, and cells it fills in."""

from __future__ import annotations

from numbers import Integral
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.estimators.describing import constant_data, coordinates, observed_data
from bayesrbf.estimators.mixture.completing import drawn, hide_masked, most_likely
from bayesrbf.fitted.fitted_mixture import FittedMixture, Solver, fit_mixture_rows
from bayesrbf.estimators.posterior_estimator import Description, PosteriorEstimator
from bayesrbf.estimators.table_estimator import LARGEST_SEED, TableEstimator
from bayesrbf.estimators.warning import warn
from bayesrbf.numerics.log_posterior import MixtureLogPosterior
from bayesrbf.numerics.mixture_rows import MixtureOnRows
from bayesrbf.numerics.sampling import sample
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.results import Fit
from bayesrbf.specification import MixtureSpecification

if TYPE_CHECKING:
    import xarray as xr


class MixtureEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TableEstimator, PosteriorEstimator
):
    """Base of the estimators whose density is a mixture; see the subclasses."""

    _mixture: FittedMixture

    _STATE: ClassVar[dict[str, type | UnionType]] = (
        TableEstimator._STATE
        | PosteriorEstimator._STATE
        | {"_mixture": FittedMixture, "_n_features_out": int}
    )

    # ---- fitting

    def _learn(
        self,
        X: object,
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        component_class: tuple[int, ...],
    ) -> Self:
        """Read the rows and fit a mixture to the distinct ones."""
        previous = self.__dict__.get("_mixture") if self.warm_start else None
        self._read_rows(X, labels, weights)
        specification = MixtureSpecification(
            n_features=self._rows.real.shape[1],
            levels=self._columns.n_levels,
            component_class=component_class,
            covariance_type=self.covariance_type,
            tied=getattr(self, "tied", False),
        )
        start = _start(previous, specification, type(self).__name__)
        self._mixture, fit = self._fit_mixture(specification, start)
        self._n_features_out = specification.n_components
        self._report(fit.status, fit.trace)
        if fit.floored:
            warn(
                f"{type(self).__name__}: a covariance is singular to rounding, and its smallest "
                "eigenvalues were raised. Look for columns that are linear functions of others, "
                "or strengthen the prior."
            )
        return self

    def _fit_mixture(
        self, specification: MixtureSpecification, start: MixtureParameters | None
    ) -> tuple[FittedMixture, Fit]:
        """Fit to the distinct rows."""
        distinct, _ = table.distinct(self._rows)
        return fit_mixture_rows(distinct, specification, self._prior(), self._solver(), start)

    def _prior(self) -> MixturePrior:
        """The declared prior, or the default one."""
        return MixturePrior() if self.prior is None else self.prior

    def _solver(self) -> Solver:
        """How to fit."""
        return Solver(self.n_init, self.max_iter, float(self.tol), self.acceleration, self._seed)

    # ---- the hooks of a posterior

    def _log_posterior(self) -> MixtureOnRows:
        """The log posterior given the training rows, in the graph's coordinates."""
        mixture = self._mixture
        return MixtureLogPosterior(
            mixture.standardise(self._rows), mixture.specification, mixture.hyperparameters
        )

    def _map(self, log_posterior: MixtureOnRows) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the graph's coordinates."""
        mixture = self._mixture
        return log_posterior.pack(mixture.parameters.in_units(mixture.units))

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        structure = self._mixture.specification
        return Description(
            coords=coordinates(self._columns, structure, self._kept, self._class_names()),
            observed=observed_data(self._rows),
            constant=constant_data(self._rows),
        )

    def _class_names(self) -> np.ndarray | None:
        """Class labels; None for a density."""
        return None

    # ---- rows and components

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

    def score_samples(self, X: object) -> Float[np.ndarray, " obs"]:
        """Log density of the observed cells of each row.

        ``log p(x_o) = log sum_k p(k) p(x_o | k)`` at the fitted point.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Log densities in nats, in the units of ``X``; low values are novel.
        """
        rows = self._read(X)
        log_density = np.logaddexp.reduce(self._component_log_joint(rows), axis=1)
        return log_density + self._mixture.log_unit(rows)

    def _component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Log joint of rows and components where the model is used, in standard units."""
        return self._mixture.component_log_joint(rows)

    def impute(self, X: object, draws: int | None = None) -> Any:
        """Fill the missing cells; observed cells are returned as they came.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows with missing cells.
        draws : int, optional
            Number of completed tables to draw. None: one table, with the
            conditional mean ``E[x | x_o]`` of real and the most probable level
            of categorical cells, at the fitted point.

        Returns
        -------
        same container as ``X``, or list of them
            One completed table; with ``draws``, a list of tables whose missing
            cells are joint draws, each under another draw of the posterior if
            there is one.

        Raises
        ------
        ValueError
            If ``draws`` is below 1.
        """
        rows = self._read(X)
        if draws is None:
            return table.decode(*most_likely(self._mixture, rows), self._columns, X)
        if draws < 1:
            raise ValueError(f"impute(draws=...) must be at least 1; received {draws}.")
        rng = np.random.default_rng(self._seed)
        return [
            table.decode(*drawn(self._mixture, rows, point, rng), self._columns, X)
            for point in self._points(draws, rng)
        ]

    def _points(self, number: int, rng: np.random.Generator) -> list[MixtureParameters]:
        """Points of the posterior in standard units: draws, or the fitted point again."""
        if self._draws is None:
            return [self._mixture.parameters] * number
        log_posterior = self._log_posterior()
        thetas = self._draws.theta.reshape(-1, log_posterior.dimension)
        chosen = rng.choice(len(thetas), size=number, replace=number > len(thetas))
        units = self._mixture.units
        return [log_posterior.unpack(thetas[i]).standardised(units) for i in chosen]

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
        real, codes, classes, _ = sample(
            parameters, self._mixture.specification, int(n_samples), rng, labels
        )
        real, codes = hide_masked(self._mixture.units.backward(real), codes, self._columns)
        return table.decode(real, codes, self._columns, self._template), classes

    # ---- the graph

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
        last_real = self._mixture.specification.n_features
        return drawn_tables(
            self.declare(), self.posterior_, last_real, draws=draws, prior=prior, seed=self._seed
        )

    def _declaration(self) -> tuple[Observations, MixtureSpecification, MixtureHyperparameters]:
        """What is declared: training rows and prior in the user's units."""
        check_is_fitted(self)
        return self._rows, self._mixture.specification, self._mixture.hyperparameters

    def _axes(self) -> dict[str, Any]:
        """Names along the axes of graph and DataTree."""
        columns = self._columns
        return {
            "feature_names": columns.real_names,
            "categorical_names": columns.categorical_names,
            "level_names": columns.all_levels,
            "obs_names": self._kept.tolist(),
        }


def _start(
    previous: FittedMixture | None, specification: MixtureSpecification, owner: str
) -> MixtureParameters | None:
    """The previous fit, in the user's units, if it is a start for this one."""
    if previous is None:
        return None
    if previous.specification != specification:
        raise ValueError(
            f"{owner}(warm_start=True) needs the columns, classes and components of the previous "
            f"fit, {previous.specification}; received {specification}. Use a new estimator."
        )
    return previous.parameters.in_units(previous.units)
