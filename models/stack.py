"""The declared graph of a stack: weights and temperatures on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int

from bayesrbf.base import names
from bayesrbf.base.priors import PoolPrior
from bayesrbf.models.densities import label_draw, label_logp


def declare_stack(
    log_probabilities: Float[np.ndarray, "obs member label"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    *,
    member_names: Sequence[str],
    class_names: Sequence[object],
    prior: PoolPrior,
    masked: Float[np.ndarray, "obs copy member label"] | None = None,
    missing_fractions: Float[np.ndarray, "obs version"] | None = None,
    log_shares: Float[np.ndarray, " label"] | None = None,
) -> pm.Model:
    r"""Declare a pool of classifiers on rows that they were not fitted to.

    .. math::
       w \sim \mathrm{Dirichlet}, \quad \log t, \log t_j, b \sim N(0, s^2), \quad
       p_{nj} = (1 - C \epsilon)\, \mathrm{softmax}(t_j l_{nj}) + \epsilon, \\
       y_n \sim \mathrm{Categorical}\Bigl(\mathrm{softmax}
           \bigl(t \log \sum_j w_j p_{nj} + b \log \pi\bigr)\Bigr)^{v_n}

    Without masked copies of the rows, b is 0. With them, w, log t, log t_j and b are variables at
    every knot, and a row has what lies on the straight lines between those at its missing fraction;
    a row without a cell has t = 0 and b = 1.

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
    prior : PoolPrior
        Rows behind every weight, whose Dirichlet parameter is one more; standard deviation s;
        probability epsilon that every member gives every class at least; knots.
    masked : ndarray of shape (n_obs, n_copies, n_members, n_classes), optional
        The same log probabilities of copies of the rows with more of their cells masked.
    missing_fractions : ndarray of shape (n_obs, 1 + n_copies), optional
        Missing fraction of every row as it is, then of its copies.
    log_shares : ndarray of shape (n_classes,), optional
        Log class shares of training, log pi.

    Returns
    -------
    pymc.Model
        Free variables ``weights``, ``member_log_temperatures`` and ``log_temperature``, and with
        masked copies ``prior_exponent``; observed ``y``; the potential ``copies``.

    Raises
    ------
    ValueError
        If some of ``masked``, ``missing_fractions`` and ``log_shares`` are missing.

    Examples
    --------
    >>> from bayesrbf.base.priors import PoolPrior
    >>> model = declare_stack(
    ...     np.log([[[0.9, 0.1], [0.6, 0.4]]]), np.array([0]), np.ones(1),
    ...     member_names=["laplace", "mixture"], class_names=["a", "b"],
    ...     prior=PoolPrior())
    >>> [variable.name for variable in model.free_RVs]
    ['weights', 'member_log_temperatures', 'log_temperature']
    """
    together = (masked, missing_fractions, log_shares)
    if len({argument is None for argument in together}) > 1:
        received = [argument is not None for argument in together]
        raise ValueError(
            "declare_stack takes masked, missing_fractions and log_shares together, or none of "
            f"them; received {received}."
        )
    coords: dict[str, Any] = {
        names.OBS: range(len(labels)),
        names.MEMBER: list(member_names),
        names.LABEL: list(class_names),
    }
    lead: tuple[str, ...] = ()
    knots = prior.knots
    if masked is not None:
        lead = (names.MISSING_FRACTION,)
        coords |= {names.MISSING_FRACTION: list(knots)}
    with pm.Model(coords=coords) as model:
        sd = np.float64(prior.sd)
        parameters = np.full(
            (len(knots),) * len(lead) + (len(member_names),), 1 + prior.pseudo_rows
        )
        pool = pm.Dirichlet(names.WEIGHTS, parameters, dims=(*lead, names.MEMBER))
        inner = pm.Normal(
            names.MEMBER_LOG_TEMPERATURES, np.float64(0), sd, dims=(*lead, names.MEMBER)
        )
        outer = pm.Normal(names.LOG_TEMPERATURE, np.float64(0), sd, dims=lead or None)
        dims = (names.OBS, names.MEMBER, names.LABEL)
        held_out = pm.Data("log_probabilities", log_probabilities, dims=dims)
        row_weight = pm.Data("row_weight", weights, dims=names.OBS)
        floor = np.float64(1 - len(class_names) * prior.least)

        def log_pool(values: Any, weight: Any, log_temperature: Any) -> Any:
            members = pm.math.softmax(pt.exp(log_temperature)[..., None] * values, axis=-1)
            return pt.log(
                (weight[..., None] * (floor * members + np.float64(prior.least))).sum(axis=-2)
            )

        if masked is None or missing_fractions is None:
            as_they_are, *copies = [pt.exp(outer) * log_pool(held_out, pool, inner)]
        else:
            prior_exponent = pm.Normal(names.PRIOR_EXPONENT, np.float64(0), sd, dims=lead)
            shares = pm.Data("log_shares", log_shares, dims=names.LABEL)

            def at_share(values: Any, share: Float[np.ndarray, " obs"]) -> Any:
                basis = np.stack([np.interp(share, knots, unit) for unit in np.eye(len(knots))], 1)
                has_cells = share < 1
                temperature = pt.exp(basis @ outer) * has_cells
                shrinkage = pt.where(has_cells, basis @ prior_exponent, 1.0)[:, None] * shares
                return (
                    temperature[:, None] * log_pool(values, basis @ pool, basis @ inner) + shrinkage
                )

            versions = [held_out, *np.moveaxis(masked, 1, 0)]
            as_they_are, *copies = map(at_share, versions, missing_fractions.T)
        pm.CustomDist(
            names.OBSERVED_LABEL,
            as_they_are,
            row_weight,
            logp=label_logp,
            dist=label_draw,
            observed=labels,
            dims=names.OBS,
        )
        if copies:  # they have no data of their own, so no variable is observed
            log_likelihoods = [
                label_logp(pt.as_tensor(labels), logits, row_weight).sum() for logits in copies
            ]
            pm.Potential(names.COPIES, pt.stack(log_likelihoods).sum())
    return model
