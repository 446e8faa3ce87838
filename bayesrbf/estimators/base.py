"""What both mixture estimators share: rows in, a fitted mixture, its posterior, rows out."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bayesrbf import table
from bayesrbf.estimators.checks import check_arguments
from bayesrbf.estimators.completing import drawn, hide_masked, most_likely
from bayesrbf.estimators.describing import constant_data, coordinates, observed_data
from bayesrbf.estimators.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.numerics.conditional import sample
from bayesrbf.numerics.log_posterior import MixtureLogPosterior
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.results import Fit
from bayesrbf.specification import MixtureSpecification

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrbf.inference.draws import Draws

LARGEST_SEED = 2**31 - 1


class MixtureEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators whose density is a mixture; see the subclasses."""

    _columns: table.Columns
    _mixture: FittedMixture
    _rows: Observations
    _kept: Int[np.ndarray, " obs"]
    _draws: Draws | None
    _raw: Draws | None
    posterior_: xr.DataTree

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # ---- fitting

    def _check(self, X: object, y: object, sample_weight: object) -> Float[np.ndarray, " obs"]:
        """Check arguments and widths; the row weights."""
        check_arguments(self.get_params(deep=False), type(self).__name__)
        validate_data(self, X, y, skip_check_array=True)
        weights: Float[np.ndarray, " obs"] = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weights

    def _learn(
        self,
        X: object,
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        component_class: tuple[int, ...],
    ) -> Self:
        """Fit to the rows of positive weight: what weighs nothing teaches nothing."""
        previous = self.__dict__.get("_mixture") if self.warm_start else None
        self._kept = np.flatnonzero(weights > 0)
        X = X if self._kept.size == weights.size else _safe_indexing(X, self._kept)
        self._columns = table.learn_columns(
            X, categorical_features=self.categorical_features, missingness=self.missingness
        )
        encoded = table.encode(X, self._columns)
        self._rows = Observations(
            encoded.real, encoded.codes, labels[self._kept], weights[self._kept]
        )
        specification = MixtureSpecification(
            n_features=encoded.real.shape[1],
            levels=self._columns.n_levels,
            component_class=component_class,
            covariance_type=self.covariance_type,
            tied=getattr(self, "tied", False),
        )
        self._template = table.decode(encoded.real[:0], encoded.codes[:0], self._columns, X)
        self._seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        distinct, _ = table.distinct(self._rows)
        start = _start(previous, specification, type(self).__name__)
        self._mixture, fit = fit_rows(
            distinct, specification, self._prior(), self._solver(), start
        )
        self._report(fit)
        return self

    def _prior(self) -> MixturePrior:
        """The declared prior, or the default one."""
        return MixturePrior() if self.prior is None else self.prior

    def _solver(self) -> Solver:
        """How to fit."""
        return Solver(self.n_init, self.max_iter, self.tol, self.acceleration, self._seed)

    def _report(self, fit: Fit) -> None:
        """Fitted attributes about the way of the fit, and a warning if it did not end well."""
        self.n_iter_ = fit.trace.n_iter
        self.converged_ = fit.converged
        self.lower_bound_ = fit.log_posterior
        self.status_ = fit.status.sentence
        self._n_features_out = self._mixture.specification.n_components
        if not fit.converged:
            warnings.warn(
                f"{type(self).__name__}: {self.status_}", ConvergenceWarning, stacklevel=4
            )

    # ---- posterior

    def _infer(self) -> Self:
        """Draw what ``inference`` asks for; nothing for a point estimate."""
        self._draws = self._raw = None
        self.__dict__.pop("posterior_", None)
        return self if self.inference == "map" else self.refine(self.inference)

    def __getattr__(self, name: str) -> Any:
        # The tree is made when it is first asked for and is then an attribute like any other:
        # a fit costs milliseconds, the tree as many again and an import. A property would be
        # evaluated whenever the estimator is displayed.
        if name == "posterior_" and "_mixture" in self.__dict__:
            self.posterior_ = self._datatree()
            return self.posterior_
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "nuts"}
            Gaussian approximation at the mode, or the No-U-Turn sampler.
        **options : object
            Passed on: ``draws``, ``chains``, and for NUTS ``tune`` and more; see
            :func:`bayesrbf.inference.laplace.laplace` and
            :func:`bayesrbf.inference.nuts.nuts`.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown.
        """
        check_is_fitted(self)
        log_posterior = self._log_posterior()
        start = self._map(log_posterior)
        options = {"random_state": self._seed} | options
        if method == "laplace":
            from bayesrbf.inference.laplace import laplace as draw
        elif method == "nuts":
            from bayesrbf.inference.nuts import nuts as draw
        else:
            raise ValueError(f"refine(method) must be 'laplace' or 'nuts'; received {method!r}.")
        from bayesrbf.inference.relabel import relabel

        self._raw = draw(log_posterior, start, **options)
        self._draws = relabel(log_posterior, self._raw, start)
        self.__dict__.pop("posterior_", None)
        return self

    def _datatree(self) -> xr.DataTree:
        """Posterior, log likelihood and training rows; a point is one draw of one chain."""
        from bayesrbf.conversion import to_datatree
        from bayesrbf.inference.draws import point

        log_posterior = self._log_posterior()
        structure = self._mixture.specification
        return to_datatree(
            log_posterior,
            self._draws or point(log_posterior, self._map(log_posterior)),
            coords=coordinates(self._columns, structure, self._kept, self._class_names()),
            observed=observed_data(self._rows),
            constant=constant_data(self._rows),
        )

    def diagnose(self) -> pd.DataFrame:
        """Figures about the posterior draws, each with its sentence.

        Returns
        -------
        pandas.DataFrame
            One row a figure: R-hat, effective draws, Pareto k-hat, divergences,
            whatever the method gives.
        """
        from bayesrbf.inference.diagnose import findings, table
        from bayesrbf.inference.draws import point

        check_is_fitted(self)
        log_posterior = self._log_posterior()
        if self._draws is None:
            return table(findings(point(log_posterior, self._map(log_posterior))))
        return table(findings(self._draws, raw=self._raw, **self._probabilities_of_training()))

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of the training rows, for diagnosis; a density has none."""
        return {}

    def _class_names(self) -> np.ndarray | None:
        """Class labels; None for a density."""
        return None

    def _log_posterior(self) -> MixtureLogPosterior:
        """The log posterior given the training rows, in the graph's coordinates."""
        mixture = self._mixture
        return MixtureLogPosterior(
            mixture.standardise(self._rows), mixture.specification, mixture.hyperparameters
        )

    def _map(self, log_posterior: MixtureLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the graph's coordinates."""
        mixture = self._mixture
        return log_posterior.pack(mixture.parameters.in_units(mixture.units))

    # ---- rows

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)
        encoded = table.encode(X, self._columns, handle_unknown=self.handle_unknown)
        n_obs = encoded.real.shape[0]
        return Observations(encoded.real, encoded.codes, np.full(n_obs, -1), np.ones(n_obs))

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
            "obs_names": self._kept,
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
