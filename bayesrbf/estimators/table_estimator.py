"""What both mixture estimators share, first half: tables in, a fitted mixture, a file."""

from __future__ import annotations

import warnings
from os import PathLike
from types import NoneType, UnionType
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, _safe_indexing, check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from bayesrbf import table
from bayesrbf.estimators.checks import check_arguments
from bayesrbf.estimators.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.inference.draws import Draws
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixturePrior
from bayesrbf.results import Fit, Trace
from bayesrbf.specification import MixtureSpecification

LARGEST_SEED = 2**31 - 1


class TableEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base that reads tables and fits a mixture to them; see the estimators."""

    _columns: table.Columns
    _draws: Draws | None
    _kept: Int[np.ndarray, " obs"]
    _mixture: FittedMixture
    _raw: Draws | None
    _rows: Observations
    _seed: int
    _template: Any
    _trace: Trace

    _STATE: ClassVar[dict[str, type | UnionType]] = {
        "_columns": table.Columns,
        "_draws": Draws | NoneType,
        "_kept": np.ndarray,
        "_mixture": FittedMixture,
        "_n_features_out": int,
        "_raw": Draws | NoneType,
        "_rows": Observations,
        "_seed": int,
        "_template": object,
        "_trace": Trace,
        "converged_": bool,
        "lower_bound_": float,
        "n_features_in_": int,
        "n_iter_": int,
        "status_": str,
    }
    """Fitted attributes and their types, for reading them back from a file."""

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
        if _num_samples(X) == 0:
            raise ValueError("X has 0 sample(s), but fit needs at least one row.")
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
        self._mixture, fit = fit_rows(distinct, specification, self._prior(), self._solver(), start)
        self._report(fit)
        return self

    def _prior(self) -> MixturePrior:
        """The declared prior, or the default one."""
        return MixturePrior() if self.prior is None else self.prior

    def _solver(self) -> Solver:
        """How to fit."""
        return Solver(self.n_init, self.max_iter, float(self.tol), self.acceleration, self._seed)

    def _report(self, fit: Fit) -> None:
        """Fitted attributes about the way of the fit, and a warning if it did not end well."""
        self._trace = fit.trace
        self.n_iter_ = fit.trace.n_iter
        self.converged_ = fit.converged
        self.lower_bound_ = fit.log_posterior
        self.status_ = fit.status.sentence
        self._n_features_out = self._mixture.specification.n_components
        if not fit.converged:
            warnings.warn(
                f"{type(self).__name__}: {self.status_}", ConvergenceWarning, stacklevel=4
            )
        if fit.floored:
            warnings.warn(
                f"{type(self).__name__}: a covariance is singular to rounding, and its smallest "
                "eigenvalues were raised. Look for columns that are linear functions of others, "
                "or strengthen the prior.",
                stacklevel=4,
            )

    # ---- reading

    def _read(self, X: object) -> Observations:
        """New rows in the user's units, labels hidden."""
        check_is_fitted(self)
        if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
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

    # ---- the artefact

    def save(self, path: str | PathLike[str]) -> str:
        """Write the fitted estimator to one ``.safetensors`` file, whole or not at all.

        The file holds the training rows too, for :meth:`declare` and :meth:`refine`.

        Parameters
        ----------
        path : path-like
            File to write; read it with :func:`bayesrbf.load`.

        Returns
        -------
        str
            SHA-256 of the file in hexadecimal.
        """
        from bayesrbf.persistence import save

        check_is_fitted(self)
        return save(self, path)

    def _to_record(self) -> dict[str, Any]:
        """Constructor arguments and fitted state; the tree is made anew from them."""
        arguments = self.get_params(deep=False)
        state = {k: v for k, v in vars(self).items() if k not in {*arguments, "posterior_"}}
        return {"arguments": arguments, "state": state}

    @classmethod
    def _from_record(cls, record: dict[str, Any]) -> Self:
        """The estimator that :meth:`_to_record` took apart; the record is not trusted."""
        estimator, state = cls(**record["arguments"]), record["state"]
        odd = (set(cls._STATE) ^ set(state)) - {"feature_names_in_"}
        if odd or set(record) != {"arguments", "state"}:
            raise ValueError(f"unknown or missing state: {', '.join(sorted(odd | set(record)))}")
        for name, kind in cls._STATE.items():
            if not isinstance(state[name], kind):
                raise TypeError(f"{name} must be {kind}, received {type(state[name]).__name__}")
        estimator.__dict__.update(state)
        return estimator


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
