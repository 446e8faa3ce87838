"""The declared graph of a stack: weights and temperatures on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int

from bayesrbf.models.densities import label_draw, label_logp
from bayesrbf.records import names


def declare_stack(
    log_probabilities: Float[np.ndarray, "obs member label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    *,
    member_names: Sequence[str],
    class_names: Sequence[object],
    concentration: float,
    log_temperature_sd: float,
    least: float,
) -> pm.Model:
    r"""Declare a pool of classifiers on rows that they were not fitted to.

    .. math::
       w \sim \mathrm{Dirichlet}, \quad \log t, \log t_j \sim N(0, s^2), \quad
       p_{nj} = (1 - C \epsilon)\, \mathrm{softmax}(t_j l_{nj}) + \epsilon, \\
       y_n \sim \mathrm{Categorical}\Bigl(\mathrm{softmax}
           \bigl(t \log \sum_j w_j p_{nj}\bigr)\Bigr)^{v_n}

    Parameters
    ----------
    log_probabilities : ndarray of shape (n_obs, n_members, n_classes)
        Held-out class log probabilities l of every member in nats.
    labels : ndarray of shape (n_obs,)
        True class codes.
    weights : ndarray of shape (n_obs,)
        Factors v of the rows' log likelihoods.
    member_names, class_names : sequence
        Names of the members and of the classes.
    concentration : float
        Dirichlet parameter of every weight.
    log_temperature_sd : float
        Standard deviation s of the log temperatures.
    least : float
        Probability epsilon that every member gives every class at least.

    Returns
    -------
    pymc.Model
        Free variables ``weights``, ``member_log_temperatures`` and
        ``log_temperature``; observed ``y``.

    Examples
    --------
    >>> model = declare_stack(
    ...     np.log([[[0.9, 0.1], [0.6, 0.4]]]), np.array([0]), np.ones(1),
    ...     member_names=["K1", "G2"], class_names=["a", "b"],
    ...     concentration=1.3, log_temperature_sd=0.5, least=1e-6)
    >>> [variable.name for variable in model.free_RVs]
    ['weights', 'member_log_temperatures', 'log_temperature']
    """
    coords: dict[str, Any] = {
        names.OBS: range(len(labels)),
        names.MEMBER: list(member_names),
        names.LABEL: list(class_names),
    }
    with pm.Model(coords=coords) as model:
        sd = np.float64(log_temperature_sd)
        parameters = np.full(len(member_names), concentration)
        pool = pm.Dirichlet(names.WEIGHTS, parameters, dims=names.MEMBER)
        inner = pm.Normal(names.MEMBER_LOG_TEMPERATURES, np.float64(0), sd, dims=names.MEMBER)
        outer = pm.Normal(names.LOG_TEMPERATURE, np.float64(0), sd)
        dims = (names.OBS, names.MEMBER, names.LABEL)
        held_out = pm.Data("log_probabilities", log_probabilities, dims=dims)
        row_weight = pm.Data("row_weight", weights, dims=names.OBS)
        members = pm.math.softmax(pt.exp(inner)[:, None] * held_out, axis=2)
        floor = np.float64(1 - len(class_names) * least)
        mixed = (pool[:, None] * (floor * members + np.float64(least))).sum(axis=1)
        pm.CustomDist(
            names.OBSERVED_LABEL,
            pt.exp(outer) * pt.log(mixed),
            row_weight,
            logp=label_logp,
            dist=label_draw,
            observed=labels,
            dims=names.OBS,
        )
    return model
