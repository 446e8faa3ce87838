"""A fitted stack: members, the pool of what they say, and a density of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.folds import HeldOut
from bayesrbf.estimators.stack.drawing import JointPredictor
from bayesrbf.estimators.stack.fitting import FittedMembers, Pool
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_model import Axes, Description, FittedModel
from bayesrbf.numerics.stack.pooling import LEAST, LOG_TEMPERATURE_SD, PSEUDO_ROWS, pooled
from bayesrbf.numerics.stack.pooling_posterior import StackLogPosterior
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations

if TYPE_CHECKING:
    import pymc as pm


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
        """Log of the pool at the fitted point, before its temperature."""
        values = self.members.log_probabilities(rows)
        return pooled(values, self.pool.weights, self.pool.member_temperatures)

    def log_posterior(self, rows: Observations) -> StackLogPosterior:
        """The log posterior of weights and temperatures, given the rows held out."""
        return StackLogPosterior(self.held.values, self.held.labels, self.held.weights)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        pool = self.pool
        return log_posterior.pack(pool.weights, pool.member_temperatures, pool.temperature)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> JointPredictor:
        """Prepare rows for predictions at any weights and temperatures, members as fitted."""
        fixed = self.members.log_probabilities(rows)
        return JointPredictor(log_posterior, fixed, [], self.companion.log_density(rows))

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
