"""A fitted stack: members, the pool of what they say, and a density of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.folds import HeldOut
from bayesrbf.estimators.stack.drawing import JointPredictor
from bayesrbf.estimators.stack.fitting import FittedMembers, Pool, StackSettings
from bayesrbf.estimators.stack.training import LearnedRates, fit_density
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.stack.pooling import LEAST, LOG_TEMPERATURE_SD, PSEUDO_ROWS, pooled
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

BLOCK = 2048
"""Rows that members see at once: what they hold of each is many times its cells."""


@dataclass(frozen=True)
class FittedStack(FittedModel):
    """A fitted stack; its own posterior is that of weights and temperatures."""

    members: FittedMembers
    pool: Pool
    held: HeldOut
    """What members said about rows that they were not fitted to."""
    companion: FittedMixture
    names: tuple[str, ...]
    """Names of the members."""

    @property
    def density(self) -> FittedMixture:
        """The companion, on columns as they are."""
        return self.companion

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Log of the pool at the fitted point, before its temperature; some rows at a time."""
        result = np.empty((rows.n_obs, self.members.n_classes))
        for start in range(0, rows.n_obs, BLOCK):
            part = slice(start, start + BLOCK)
            values = self.members.log_probabilities(rows.take(np.arange(rows.n_obs)[part]))
            result[part] = pooled(values, self.pool.weights, self.pool.member_temperatures)
        return result

    def log_posterior(self, rows: Observations) -> StackLogPosterior:
        """The log posterior of weights and temperatures, given the rows held out."""
        return StackLogPosterior(self.held.values, self.held.labels, self.held.weights)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        pool = self.pool
        return log_posterior.pack(pool.weights, pool.member_temperatures, pool.temperature)

    def log_density_at_point(self, log_posterior: LogPosterior) -> float:
        """Log posterior density of the fitted weights and temperatures, without Jacobian."""
        point = self.point(log_posterior)
        return log_posterior.value_and_gradient(point, jacobian=False)[0]

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> JointPredictor:
        """Prepare rows for predictions at any weights and temperatures, members as fitted."""
        fixed = self.members.log_probabilities(rows)
        return JointPredictor(log_posterior, fixed, [], self.companion.log_density(rows))

    def member_table(self, rows: Observations, seed: int) -> pd.DataFrame:
        """Weights and their spread, temperatures and held-out losses in nats, member by member."""
        import pandas as pd

        from bayesrbf.inference.laplace import laplace

        pool, log_posterior = self.pool, self.log_posterior(rows)
        draws = laplace(log_posterior, self.point(log_posterior), draws=500, random_state=seed)
        weights = log_posterior.constrained(draws.theta)[names.WEIGHTS]
        weights = weights.reshape(-1, len(self.names))
        return pd.DataFrame(
            {
                "weight": [*pool.weights, 1.0],
                "sd": [*weights.std(axis=0), np.nan],
                "lower": [*np.quantile(weights, 0.05, axis=0), np.nan],
                "upper": [*np.quantile(weights, 0.95, axis=0), np.nan],
                "temperature": [*pool.member_temperatures, pool.temperature],
                "log_loss": pool.losses(self.held),
            },
            index=pd.Index([*self.names, "stack"], name=names.MEMBER),
        )

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of weights and temperatures on the rows held out."""
        from bayesrbf.models import declare_stack

        assert axes.classes is not None
        return declare_stack(
            self.held.values,
            self.held.labels,
            self.held.weights,
            member_names=self.names,
            class_names=axes.classes.tolist(),
            concentration=1 + PSEUDO_ROWS,
            log_temperature_sd=LOG_TEMPERATURE_SD,
            least=LEAST,
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names, and the labels of the rows held out."""
        coords = {
            names.MEMBER: list(self.names),
            names.OBS: np.arange(self.held.labels.size),
            names.LABEL: axes.classes,
        }
        return Description(
            coords,
            {names.OBSERVED_LABEL: ((names.OBS,), self.held.labels)},
            {"row_weight": ((names.OBS,), self.held.weights)},
            names.OBSERVED_LABEL,
        )


def fit_stack(
    rows: Observations,
    settings: StackSettings,
    pool: Pool,
    held: HeldOut,
    of_folds: Sequence[LearnedRates],
) -> FittedStack:
    """Fit the companion and all members to distinct rows, under a pool that is known.

    Members have the digits of single precision: what they predict moves in its seventh digit, and
    the file is half as large.
    """
    levels, n_classes = settings.levels, settings.n_classes
    companion = fit_density(rows, levels, n_classes, settings.prior, settings.seed)
    members = settings.fit(rows, 0, of_folds).rounded
    return FittedStack(members, pool, held, companion, settings.names)
