"""Class probabilities under every draw: intervals, kinds of doubt, predictive checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesrbf import names, table
from bayesrbf.estimators.describing import Named, observed_data
from bayesrbf.estimators.posterior_estimator import PosteriorEstimator
from bayesrbf.inference.draws import MEMORY
from bayesrbf.numerics.prevalence import class_shares
from bayesrbf.numerics.sampling import draw_categories

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.posterior.predictive import ClassPosterior, Predictor

DIAGNOSED = 200
"""Training rows, evenly spread, whose class probabilities are diagnosed."""
REPLICATES = 1000
"""Labels drawn per row for a predictive check of a point estimate."""


class ClassPosteriorEstimator(PosteriorEstimator):
    """Base of the classifiers' base; a family writes the hooks below."""

    classes_: Shaped[np.ndarray, " label"]
    temperature_: float
    _prevalence: Float[np.ndarray, " label"] | None
    _rows: Any

    _STATE: ClassVar[dict[str, type | UnionType]] = PosteriorEstimator._STATE | {
        "_prevalence": np.ndarray | NoneType,
        "classes_": np.ndarray,
        "temperature_": float,
    }

    # ---- what a family writes

    def _read(self, X: object) -> Any:
        """New rows, in the form that the family's predictor takes."""
        raise AttributeError(f"{type(self).__name__} reads no rows.")

    def _predictor(self, log_posterior: Any) -> Callable[[Any], Predictor]:
        """Prepares rows: maps what ``_read`` gives to coordinates -> what a draw says."""
        raise AttributeError(f"{type(self).__name__} declares no posterior.")

    def _class_log_joint(self, rows: Any) -> Float[np.ndarray, "obs label"]:
        """Log joint (or log probability) of rows and classes at the fitted point."""
        raise AttributeError(f"{type(self).__name__} gives no probabilities.")

    def _fitted_shares(self) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for: those of the labelled rows."""
        return class_shares(self._rows.labels, self._rows.weights, self.classes_.size)

    def _observed(self, rows: Any) -> Named:
        """Rows as a group of the DataTree."""
        return observed_data(rows)

    # ---- what the draws say

    def predict_posterior(
        self,
        X: object,
        *,
        memory: int = MEMORY,
        path: str | PathLike[str] | None = None,
    ) -> xr.DataTree:
        """Class probabilities of each row under every draw of the posterior.

        Under ``class_prior`` every draw is moved by Bayes' rule for itself;
        :meth:`predict_proba` moves their mean.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        memory : int
            Bytes that the probabilities may take, 2 GiB by default. Where they
            would take more, every k-th draw is kept, with a warning.
        path : path-like, optional
            A ``.npy`` file to write them to: every draw is kept, and the tree
            reads from the file.

        Returns
        -------
        xarray.DataTree
            ``predictions`` with ``probability`` over chain, draw, obs and label;
            ``predictions_constant_data`` with the rows.

        Raises
        ------
        ValueError
            If not even one draw of each chain fits into the memory.
        """
        from bayesrbf.conversion import predictions

        rows = self._read(X)
        posterior = replace(self._class_posterior(), memory=memory)
        file = None if path is None else Path(path)
        probabilities, thinning = posterior.draws(rows, file)
        return predictions(
            probabilities,
            labels=self.classes_,
            rows=np.arange(rows.n_obs),
            constant=self._observed(rows),
            thinning=thinning,
        )

    def uncertainty(self, X: object, prob: float = 0.9, *, memory: int = MEMORY) -> xr.Dataset:
        """How sure the posterior is of each row, and why not.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        prob : float
            Probability inside the equal-tailed intervals.
        memory : int
            Bytes that arrays over draws may take at once, 2 GiB by default; more
            rows are summarised a block at a time, always over every draw.

        Returns
        -------
        xarray.Dataset
            Mean, sd, interval per class; total, aleatoric and epistemic entropy
            in nats; novelty (log density). After a point estimate what only a
            posterior knows is NaN, with a warning.
        """
        from bayesrbf.posterior.uncertainty import to_dataset

        rows = self._read(X)
        posterior = replace(self._class_posterior(), memory=memory)
        summary = posterior.summary(rows, prob)
        return to_dataset(
            summary, self.classes_, np.arange(rows.n_obs), point_estimate=posterior.n_draws == 1
        )

    def to_datatree(self, X: object, y: object) -> xr.DataTree:
        """Labels drawn for rows beside their true ones, for predictive checks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, such as a test set.
        y : array-like of shape (n_obs,)
            Their labels; rows whose label is hidden are left out.

        Returns
        -------
        xarray.DataTree
            ``posterior_predictive`` and ``observed_data``, both with ``y`` as
            class codes, beside the groups of :meth:`predict_posterior`.

        Raises
        ------
        ValueError
            If a label is no class of the fit.
        """
        from bayesrbf.conversion import predictive_check

        tree = self.predict_posterior(X)
        probability = tree[names.PREDICTIONS][names.PROBABILITY]
        found, codes = table.encode_labels(y)
        unknown = np.setdiff1d(found, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y holds {unknown[0]!r}, which is no class of the fit: {self.classes_.tolist()}."
            )
        labelled = np.flatnonzero(codes >= 0)
        drawn = self._draw_labels(probability.to_numpy()[:, :, labelled])
        truth = np.searchsorted(self.classes_, found[codes[labelled]])
        rows = probability[names.OBS].to_numpy()[labelled]
        for group, subtree in predictive_check(rows, drawn, truth).items():
            tree[group] = subtree
        return tree

    def _draw_labels(
        self, probabilities: Float[np.ndarray, "chain draw obs label"]
    ) -> Int[np.ndarray, "chain drawn obs"]:
        """One label a row and draw; a point estimate is drawn from many times."""
        if probabilities.shape[0] * probabilities.shape[1] == 1:
            probabilities = np.repeat(probabilities, REPLICATES, axis=1)
        rng = np.random.default_rng(self._seed)
        rows = probabilities.reshape(-1, probabilities.shape[-1])
        return draw_categories(rows, rng).reshape(probabilities.shape[:-1])

    def _class_posterior(self) -> ClassPosterior:
        """The posterior of class probabilities; one draw for a point estimate."""
        from bayesrbf.posterior.predictive import ClassPosterior

        log_posterior = self._log_posterior()
        fitted = self._map(log_posterior)[None, None]
        theta = fitted if self._draws is None else self._draws.theta
        return ClassPosterior(
            predictor=self._predictor(log_posterior),
            theta=theta,
            log_ratio=self._log_ratio(),
            temperature=self.temperature_,
        )

    def _log_ratio(self) -> Float[np.ndarray, " label"]:
        """Log ratio of the prevalences of use to those of training."""
        if self._prevalence is None:
            return np.zeros(self.classes_.size)
        return np.log(self._prevalence) - np.log(self._fitted_shares())

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of some training rows, under the draws and at the fit."""
        n_obs = self._rows.n_obs
        spread = np.unique(np.linspace(0, n_obs - 1, min(n_obs, DIAGNOSED)).astype(int))
        posterior = self._class_posterior()
        rows = self._rows.take(spread)
        log_posterior = self._log_posterior()
        fitted = self._map(log_posterior)
        at_fit = posterior.probabilities(posterior.predictor(rows)(fitted))
        probabilities, _ = posterior.draws(rows)
        return {
            "probabilities": probabilities,
            "map_probabilities": at_fit,
        }
