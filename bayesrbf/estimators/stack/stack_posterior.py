"""Class probabilities under the draws of a stack: its own, its members', or its refits'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.stack.bootstrap import (
    StackRefits,
    bootstrap_predictor,
    bootstrap_stretch,
)
from bayesrbf.estimators.stack.drawing import MemberDraws, joint_predictor
from bayesrbf.estimators.stack.fitted_stack import FittedStack
from bayesrbf.inference.draws import Draws
from bayesrbf.numerics.hidden_share import hidden_share
from bayesrbf.numerics.log_posterior import Predictor
from bayesrbf.posterior.predictive import ClassPosterior
from bayesrbf.records.mixture import Observations


def stack_posterior(
    model: FittedStack,
    rows: Observations,
    draws: Draws | None,
    member_draws: MemberDraws,
    refits: StackRefits | None,
    log_ratio: Float[np.ndarray, " label"],
    seed: int,
) -> ClassPosterior:
    """Join draws of the stack and of its members, each with its own temperatures.

    ``rows`` are those of training, ``seed`` that of what doubts their class shares. Without draws,
    the fitted point is the only one.
    """
    log_posterior = model.log_posterior(rows)
    if draws is None:
        theta = model.point(log_posterior)[None, None]
    else:
        drawn = [of_member.theta for of_member in member_draws if of_member is not None]
        if refits is not None:
            drawn = [refits.coordinates[None]]
        theta = np.concatenate([draws.theta, *drawn], axis=2)
    prepare: Callable[..., Predictor]
    if refits is None:
        prepare = joint_predictor(log_posterior, model.members, rows, member_draws)
    else:
        prepare = bootstrap_predictor(model, log_posterior, refits)
    posterior = ClassPosterior(
        predictor=lambda new: prepare(new, model.companion.log_density(new)),
        theta=theta,
        log_ratio=log_ratio,
    )
    if (calibration := model.calibration) is not None:
        posterior = posterior.with_shares_in_doubt(calibration, hidden_share, rows, seed)
    if refits is None:
        return posterior
    return replace(
        posterior,
        stretch=lambda new: bootstrap_stretch(model, refits, new),
        n_labelled=float(rows.weights[rows.labels >= 0].sum()),
    )
