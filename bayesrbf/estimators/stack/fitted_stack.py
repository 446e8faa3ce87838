"""A fitted stack: members, the pool of what they say, and a density of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import nnls

from bayesrbf.estimators.stack.drawing import JointPredictor
from bayesrbf.estimators.stack.fitting import FittedMembers, Pool, StackSettings
from bayesrbf.estimators.stack.members import MEMBERS
from bayesrbf.estimators.stack.training import LearnedRates, fit_density
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.fitted.holding_out import HeldOut
from bayesrbf.numerics.hidden_share import KNOTS, PULL_SD, hats, hidden_share
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.stack.disagreement import variance_of_kinds
from bayesrbf.numerics.stack.pooling import (
    LEAST,
    LOG_TEMPERATURE_SD,
    PSEUDO_ROWS,
    tempered_members,
)
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.posterior.scores import log_loss
from bayesrbf.records import names
from bayesrbf.records.masked_rows import Recalibration
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
    """Of rows with all cells."""
    held: HeldOut
    """What members said about rows that they were not fitted to."""
    companion: FittedMixture
    names: tuple[str, ...]
    """Names of the members."""
    emptier: tuple[Pool, ...] = ()
    """Of rows with more and more of their cells hidden: at the knots after the first."""

    @property
    def density(self) -> FittedMixture:
        """The companion, on columns as they are."""
        return self.companion

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point in nats; some rows at a time."""
        log_posterior = self.log_posterior(rows)
        theta, result = self.point(log_posterior), np.empty((rows.n_obs, self.members.n_classes))
        for start in range(0, rows.n_obs, BLOCK):
            part = rows.take(slice(start, start + BLOCK))
            values = self.members.log_probabilities(part)
            said = log_posterior.pooled(values, hidden_share(part), theta)
            result[start : start + BLOCK] = said
        return result

    def log_posterior(self, rows: Observations) -> StackLogPosterior:
        """The log posterior of weights and temperatures, given the rows held out."""
        return self.pool_posterior

    @property
    def pool_posterior(self) -> StackLogPosterior:
        """The same: of all rows of a table, only those held out speak of the pool."""
        held = self.held
        return StackLogPosterior(held.values, held.labels, held.weights, held.masked)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        return packed(log_posterior, (self.pool, *self.emptier))

    @property
    def held_share(self) -> Float[np.ndarray, " obs"]:
        """Share of hidden cells of the rows held out, as they are."""
        masked = self.held.masked
        return np.zeros(self.held.labels.size) if masked is None else masked.hidden[:, 0]

    @property
    def kinds(self) -> Int[np.ndarray, " member"]:
        """The kind of every member, as a number; each member of another library is its own."""
        kinds = [MEMBERS[name].kind if name in MEMBERS else f"extra {name}" for name in self.names]
        return np.unique(kinds, return_inverse=True)[1]

    def pool_and_variance(
        self, values: Float[np.ndarray, "row member label"], hidden: Float[np.ndarray, " row"]
    ) -> tuple[Float[np.ndarray, "row label"], Float[np.ndarray, "row label"]]:
        """Class log probabilities of the fitted pool and the variance of the kinds about it.

        ``values`` are what members say before temperatures. Of a row without a cell all that is
        said is the class shares, about which kinds do not disagree.
        """
        log_posterior = self.pool_posterior
        theta = self.point(log_posterior)
        temperatures = log_posterior.of_rows(hidden, theta).member_temperatures
        members = np.log(tempered_members(values, temperatures))
        pool = log_posterior.pooled(values, hidden, theta)
        variance = variance_of_kinds(members, pool, self.kinds)
        if self.held.masked is not None:
            variance[hidden == 1] = 0
        return pool, variance

    @cached_property
    def knot_variances(self) -> Float[np.ndarray, " knot"]:
        """Mean variance of the kinds at every knot of the share of hidden cells.

        By least squares over the rows held out, as they are and with some cells hidden.
        """
        masked = self.held.masked
        assert masked is not None  # who has no copies has one variance
        values = np.concatenate([self.held.values[:, None], masked.values], axis=1)
        hidden = masked.hidden.reshape(-1)
        _, variance = self.pool_and_variance(values.reshape(-1, *values.shape[2:]), hidden)
        root = np.sqrt(np.repeat(self.held.weights, values.shape[1]) * (hidden < 1))
        found: Float[np.ndarray, " knot"] = nnls(
            root[:, None] * hats(hidden), root * variance.mean(axis=1)
        )[0]
        return found

    @property
    def calibration(self) -> Recalibration | None:
        """Temperatures and pulls of the pool at the knots; None where it has one for all rows."""
        masked, pools = self.held.masked, (self.pool, *self.emptier)
        if masked is None:
            return None
        temperatures, pulls = np.array([(one.temperature, one.pull) for one in pools]).T.copy()
        return Recalibration(temperatures, pulls, masked.log_shares)

    def log_density_at_point(self, log_posterior: LogPosterior) -> float:
        """Log posterior density of the fitted weights and temperatures, without Jacobian."""
        point = self.point(log_posterior)
        return log_posterior.value_and_gradient(point, jacobian=False)[0]

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> JointPredictor:
        """Prepare rows for predictions at any weights and temperatures, members as fitted."""
        fixed = self.members.log_probabilities(rows)
        log_density = self.companion.log_density(rows)
        return JointPredictor(log_posterior, fixed, hidden_share(rows), [], log_density)

    def member_table(self, rows: Observations, seed: int) -> pd.DataFrame:
        """Weights and their spread, temperatures and held-out losses in nats, member by member."""
        import pandas as pd

        from bayesrbf.inference.laplace import laplace

        pool, log_posterior = self.pool, self.log_posterior(rows)
        draws = laplace(log_posterior, self.point(log_posterior), draws=500, random_state=seed)
        weights = log_posterior.constrained(draws.theta)[names.WEIGHTS]
        n_members = len(self.names)
        weights = weights.reshape(-1, n_members * (1 + len(self.emptier)))[:, :n_members]
        return pd.DataFrame(
            {
                "weight": [*pool.weights, 1.0],
                "sd": [*weights.std(axis=0), np.nan],
                "lower": [*np.quantile(weights, 0.05, axis=0), np.nan],
                "upper": [*np.quantile(weights, 0.95, axis=0), np.nan],
                "temperature": [*pool.member_temperatures, pool.temperature],
                "log_loss": self._losses(log_posterior),
            },
            index=pd.Index([*self.names, "stack"], name=names.MEMBER),
        )

    def _losses(self, log_posterior: StackLogPosterior) -> list[float]:
        """Held-out log losses of every member alone and of the stack; NaN without rows."""
        held, theta = self.held, self.point(log_posterior)
        if held.labels.size == 0:
            return [np.nan] * (len(self.names) + 1)
        temperatures = log_posterior.of_rows(self.held_share, theta).member_temperatures
        members = tempered_members(held.values, temperatures)
        whole = np.exp(log_posterior.pooled(held.values, self.held_share, theta))
        said = [*np.moveaxis(members, 1, 0), whole]
        return [float(np.average(log_loss(p, held.labels), weights=held.weights)) for p in said]

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
            masked=self.held.masked,
            knots=KNOTS,
            pull_sd=PULL_SD,
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names, and the labels of the rows held out."""
        coords = {
            names.MEMBER: list(self.names),
            names.HIDDEN_SHARE: list(KNOTS),
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
    pools: tuple[Pool, ...],
    held: HeldOut,
    of_folds: Sequence[LearnedRates],
) -> FittedStack:
    """Fit the companion and all members to distinct rows, under pools that are known.

    Members have the digits of single precision: what they predict moves in its seventh digit, and
    the file is half as large.
    """
    levels, n_classes = settings.levels, settings.n_classes
    companion = fit_density(rows, levels, n_classes, settings.prior, settings.seed)
    members = settings.fit(rows, 0, of_folds).rounded
    pool, *emptier = pools
    return FittedStack(members, pool, held, companion, settings.names, tuple(emptier))


def packed(
    log_posterior: StackLogPosterior, pools: Sequence[Pool]
) -> Float[np.ndarray, " coordinate"]:
    """Coordinates of the pools at all knots, or of one for all rows."""
    every = (
        [pool.weights for pool in pools],
        [pool.member_temperatures for pool in pools],
        [pool.temperature for pool in pools],
        [pool.pull for pool in pools],
    )
    one = slice(None) if len(pools) > 1 else 0
    return log_posterior.pack(*(np.array(entries)[one] for entries in every))
