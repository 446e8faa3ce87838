"""A part of the rows is not fitted to; its score tells when to stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

from bayesrbf.fitted.holding_out import HeldOut
from bayesrbf.numerics.log_sums import class_log_joint
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.posterior.scores import mean_and_error
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification


def apart(
    labels: Int[np.ndarray, " obs"], share: float, seed: int
) -> tuple[Int[np.ndarray, " inside"], Int[np.ndarray, " outside"]]:
    """Put a share of every class's rows apart; one row of a class at least stays.

    >>> inside, outside = apart(np.array([0, 0, 0, 0, 1, -1]), 0.5, seed=0)
    >>> inside.size, outside.size
    (4, 2)
    """
    rng = np.random.default_rng(seed)
    chosen = np.zeros(labels.size, dtype=bool)
    for label in range(labels.max(initial=-1) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        chosen[members[: int(np.round(share * members.size))]] = True
        if members.size:
            chosen[members[-1]] = False
    if not chosen.any():
        raise ValueError(
            f"early_stopping holds {share:g} of the rows of every class out, and no class has "
            "rows enough for that; raise validation_fraction, or do without early_stopping."
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def held_out_score(
    rows: Observations, specification: MixtureSpecification
) -> Callable[[MixtureParameters], float]:
    """The calibrated log score of rows that were put apart, at any point; all in standard units."""
    prepared = prepare(rows, specification)

    def score(parameters: MixtureParameters) -> float:
        log_joint = prepared.component_log_joint(parameters)
        joint, _ = class_log_joint(log_joint, specification.class_slices)
        held_out = HeldOut(joint, rows.labels, rows.weights)
        return mean_and_error(held_out.log_scores(held_out.temperature), rows.weights)[0]

    return score
