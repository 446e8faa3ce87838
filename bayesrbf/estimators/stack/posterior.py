"""A fitted stack at work: its posterior joined with its members', and its density."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from bayesrbf import names
from bayesrbf.estimators.class_posterior import DIAGNOSED
from bayesrbf.estimators.companion import CompanionClassifier
from bayesrbf.estimators.out_of_fold import HeldOut
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.estimators.stack.drawing import draw_members, joint_predictor
from bayesrbf.estimators.stack.fitting import FittedMembers
from bayesrbf.estimators.warning import warn
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.numerics.pooling import LEAST, LOG_TEMPERATURE_SD, PSEUDO_ROWS, pooled
from bayesrbf.numerics.pooling_posterior import StackLogPosterior
from bayesrbf.parameters import Observations
from bayesrbf.posterior.temperature import draw_temperature, tempered

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.posterior.predictive import ClassPosterior, Predictor


MATCHED = 200
"""Draws whose mean is matched to the fit."""


class StackPosterior(CompanionClassifier):
    """Base of the stack: everything but its constructor and its fit."""

    members_: tuple[str, ...]
    member_temperatures_: Float[np.ndarray, " member"]
    pointwise_: tuple[str, ...]
    weights_: Float[np.ndarray, " member"]
    _fitted: FittedMembers
    _draw_temperature: float
    _held: HeldOut
    _member_draws: tuple[Draws | None, ...]

    _STATE: ClassVar[dict[str, type | UnionType]] = CompanionClassifier._STATE | {
        "_draw_temperature": float,
        "_fitted": FittedMembers,
        "_held": HeldOut,
        "_member_draws": tuple,
        "member_temperatures_": np.ndarray,
        "members_": tuple,
        "pointwise_": tuple,
        "weights_": np.ndarray,
    }

    # ---- the hooks of a posterior

    def _log_posterior(self) -> StackLogPosterior:
        """The log posterior of weights and temperatures given the rows held out."""
        return StackLogPosterior(self._held.values, self._held.labels, self._held.weights)

    def _map(self, log_posterior: StackLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights and temperatures."""
        return log_posterior.pack(self.weights_, self.member_temperatures_, self.temperature_)

    def _predictor(self, log_posterior: StackLogPosterior) -> Callable[[Observations], Predictor]:
        """Prepares rows: coordinates of the stack, then of the drawn members."""
        prepare = joint_predictor(log_posterior, self._fitted, self._rows, self._member_draws)

        return lambda rows: prepare(rows, self._log_density(rows))

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Log of the pool at the fitted point, before its temperature."""
        values = self._fitted.log_probabilities(rows)
        return pooled(values, self.weights_, self.member_temperatures_)

    def _class_posterior(self) -> ClassPosterior:
        """Draws of the stack and of its members, joined; each has its own temperatures."""
        from bayesrbf.posterior.predictive import ClassPosterior

        log_posterior = self._log_posterior()
        if self._draws is None:
            theta = self._map(log_posterior)[None, None]
        else:
            drawn = [draws.theta for draws in self._member_draws if draws is not None]
            theta = np.concatenate([self._draws.theta, *drawn], axis=2)
        return ClassPosterior(
            predictor=self._predictor(log_posterior),
            theta=theta,
            log_ratio=self._log_ratio(),
            temperature=1.0 if self._draws is None else self._draw_temperature,
        )

    def _description(self) -> Description:
        """Names, and the labels of the rows held out."""
        rows = np.arange(self._held.labels.size)
        coords = {names.MEMBER: list(self.members_), names.OBS: rows, names.LABEL: self.classes_}
        observed = {names.OBSERVED_LABEL: ((names.OBS,), self._held.labels)}
        return Description(coords, observed, {"row_weight": ((names.OBS,), self._held.weights)})

    def _infer(self) -> Self:
        """Draw what ``inference`` asks for; nothing for a point estimate."""
        self._member_draws, self.pointwise_ = (None,) * len(self._fitted.own), self.members_
        self._draw_temperature = 1.0
        return super()._infer()

    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw weights and temperatures, and with them the parameters of the members.

        Members are drawn from their Laplace approximations. Those of other libraries,
        and those with more than 2,000 coordinates, stay at their fitted point:
        ``pointwise_`` names them, and a warning does.

        Temperatures were fitted to members at their points, and an average over draws is
        less sure than those: all draws have one more temperature, with which their mean says
        on training rows what the calibrated fit says.

        Parameters
        ----------
        method : {"laplace", "nuts"}
            How weights and temperatures are drawn.
        **options : object
            Passed on: ``draws`` (250 by default), ``chains`` and more.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.
        """
        return super().refine(method, **{"draws": 250, **options})

    def _keep(self, log_posterior: LogPosterior, raw: Draws) -> Self:
        """Hold draws of the stack, and as many of every member that can be drawn."""
        chains, draws, _ = raw.theta.shape
        members = draw_members(self._fitted, self._rows, (chains, draws), self._seed)
        # An interrupt leaves one of them fewer draws, and the others follow it.
        made = min((drawn.theta.shape[1] for drawn in members if drawn), default=draws)
        self._member_draws = tuple(drawn and drawn.first(made) for drawn in members)
        super()._keep(log_posterior, raw.first(made))
        self._draw_temperature = self._match_fit()
        own = zip(self._fitted.own, self._member_draws, strict=True)
        fixed = [member.name for member, drawn in own if drawn is None]
        self.pointwise_ = (*fixed, *(member.name for member in self._fitted.extra))
        if self.pointwise_:
            warn(
                f"{type(self).__name__}: left at the fitted point: {', '.join(self.pointwise_)}; "
                "so the draws understate what is not known."
            )
        return self

    def _match_fit(self) -> float:
        """Temperature of the draws, from some training rows and some draws."""
        from bayesrbf.posterior.predictive import class_predictions

        n_obs = self._rows.n_obs
        spread = np.unique(np.linspace(0, n_obs - 1, min(n_obs, DIAGNOSED)).astype(int))
        rows = self._rows.take(spread)
        posterior = self._class_posterior()
        thetas = posterior.theta.reshape(posterior.n_draws, -1)
        predict = posterior.predictor(rows)
        drawn = class_predictions(predict, thetas[:: max(1, len(thetas) // MATCHED)])
        fitted = np.exp(tempered(self._class_log_joint(rows), self.temperature_))
        return draw_temperature(drawn.log_probabilities, fitted)

    def declare(self) -> pm.Model:
        """Declare the graph of weights and temperatures on the rows held out.

        ``class_prior`` is not part of the graph.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``.
        """
        from bayesrbf.models import declare_stack

        check_is_fitted(self)
        return declare_stack(
            self._held.values,
            self._held.labels,
            self._held.weights,
            member_names=self.members_,
            class_names=self.classes_.tolist(),
            concentration=1 + PSEUDO_ROWS,
            log_temperature_sd=LOG_TEMPERATURE_SD,
            least=LEAST,
        )
