"""Objectives other than the likelihood, as potentials of a graph."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Int
from pytensor.tensor import TensorVariable

from bayesrbf import names
from bayesrbf.objective import Objective
from bayesrbf.specification import MixtureSpecification

OBJECTIVE = "objective"
"""Potential (obs): the objective of every row less its log likelihood."""
PRIOR_POWER = "prior_power"
"""Potential: what the power of the prior adds to it."""


def declare_objective(
    objective: Objective,
    joint: TensorVariable,
    specification: MixtureSpecification,
    labels: Int[np.ndarray, " obs"],
    row_weight: TensorVariable,
) -> None:
    r"""Turn the posterior of the model on the stack into a Gibbs posterior.

    The potentials exchange the log likelihood of every row for its objective,

    .. math:: \sum_n v_n (J_n - \log p(x_n, y_n)) + (\tau - 1) \log p(\phi),

    and so belong beside the rows' own node.

    Parameters
    ----------
    objective : Objective
        What stands in the place of the log likelihood.
    joint : TensorVariable of shape (obs, component)
        ``log p(x, k)``.
    specification : MixtureSpecification
        Says which class each component belongs to.
    labels : ndarray of shape (obs,)
        Class codes, -1 where hidden.
    row_weight : TensorVariable of shape (obs,)
        Factor of a row.
    """
    own, every, hinge = objective.coefficients
    shown = labels >= 0
    parts = [pm.math.logsumexp(joint[:, part], axis=1) for part in specification.class_slices]
    by_class = pt.stack(parts, axis=1)
    indicator = np.eye(specification.n_classes)[np.maximum(labels, 0)]
    of_label = pt.sum(indicator * by_class, axis=1)
    density = pm.math.logsumexp(by_class, axis=1)
    value = pt.switch(shown, (own - 1) * of_label + every * density, (own + every - 1) * density)
    if hinge and specification.n_classes > 1:
        violation = margin_violation(objective, by_class - of_label[:, None], indicator)
        value -= hinge * pt.switch(shown, bounded_hinge(objective, violation), 0.0)
    pm.Potential(OBJECTIVE, row_weight * value, dims=names.OBS)
    if objective.prior_power != 1:
        free = pm.modelcontext(None).free_RVs
        prior = pt.sum([pt.sum(pm.logp(variable, variable)) for variable in free])
        pm.Potential(PRIOR_POWER, np.float64(objective.prior_power - 1) * prior)


def margin_violation(
    objective: Objective, rivals: TensorVariable, indicator: np.ndarray
) -> TensorVariable:
    """Soft maximum over the other classes of what a row lacks of the margin.

    Parameters
    ----------
    objective : Objective
        Has the margin and the sharpness.
    rivals : TensorVariable of shape (obs, label)
        ``log p(x, c) - log p(x, y)``.
    indicator : ndarray of shape (obs, label)
        1 at a row's own class.

    Returns
    -------
    TensorVariable of shape (obs,)
        The violation in nats.
    """
    sharpened = pt.switch(indicator > 0, -np.inf, np.float64(objective.sharpness) * rivals)
    most = pm.math.logsumexp(sharpened, axis=1) / np.float64(objective.sharpness)
    return np.float64(objective.margin) + most


def bounded_hinge(objective: Objective, violation: TensorVariable) -> TensorVariable:
    """Soft hinge, or soft ramp where there is a cap.

    Parameters
    ----------
    objective : Objective
        Has the smoothing and the cap.
    violation : TensorVariable
        Violation of the margin in nats.

    Returns
    -------
    TensorVariable
        Loss in nats.
    """
    loss = _soft_hinge(violation, objective.smoothing)
    if objective.ramp_cap is not None:
        loss -= _soft_hinge(violation - np.float64(objective.ramp_cap), objective.smoothing)
    return loss


def _soft_hinge(violation: TensorVariable, smoothing: float) -> TensorVariable:
    """0, a parabola, the identity."""
    width = np.float64(smoothing)
    parabola = (violation + width) ** 2 / (4 * width)
    beyond = pt.switch(violation > width, violation, 0.0)
    return pt.switch(pt.abs(violation) <= width, parabola, beyond)
