"""The declared graph of a kernel network's output layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int

from bayesrbf.models.densities import label_draw, label_logp
from bayesrbf.records import names


def declare_kernel_network(
    features: Float[np.ndarray, "obs basis"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    *,
    class_names: Sequence[object],
    weight_precision: float,
    intercept_sd: float,
    obs_names: Sequence[object] | None = None,
) -> pm.Model:
    r"""Declare multinomial logistic regression on a hidden layer.

    .. math::
       W \sim N(0, 1/\lambda), \quad b \sim N(0, \sigma_b^2), \quad
       y_n \sim \mathrm{Categorical}(\mathrm{softmax}(W f_n + b))^{v_n}

    Two classes have one row of output weights: the first class is the reference.

    Parameters
    ----------
    features : ndarray of shape (n_obs, n_basis)
        Hidden layer of the rows.
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden: such a row has likelihood one.
    weights : ndarray of shape (n_obs,)
        Factors v of the rows' log likelihoods.
    class_names : sequence of length n_classes
        Class labels.
    weight_precision : float
        Precision of the output weights.
    intercept_sd : float
        Standard deviation of the intercepts.
    obs_names : sequence of length n_obs, optional
        Names of the rows; numbers by default.

    Returns
    -------
    pymc.Model
        Free variables ``coefficients`` over output and basis, and ``intercepts``; observed ``y``.

    Examples
    --------
    >>> model = declare_kernel_network(
    ...     np.eye(3), np.array([0, 1, -1]), np.ones(3), class_names=["a", "b"],
    ...     weight_precision=0.1, intercept_sd=10.0)
    >>> [variable.name for variable in model.free_RVs]
    ['coefficients', 'intercepts']
    """
    outputs = list(class_names)[1:] if len(class_names) == 2 else list(class_names)
    coords: dict[str, Any] = {
        names.OBS: list(range(len(labels))) if obs_names is None else list(obs_names),
        names.BASIS: range(features.shape[1]),
        names.OUTPUT: outputs,
    }
    with pm.Model(coords=coords) as model:
        sd = np.float64(weight_precision) ** -0.5
        coefficients = pm.Normal(
            names.COEFFICIENTS, np.float64(0), sd, dims=(names.OUTPUT, names.BASIS)
        )
        intercepts = pm.Normal(
            names.INTERCEPTS, np.float64(0), np.float64(intercept_sd), dims=names.OUTPUT
        )
        hidden_layer = pm.Data("features", features, dims=(names.OBS, names.BASIS))
        row_weight = pm.Data("row_weight", weights, dims=names.OBS)
        logits = hidden_layer @ coefficients.T + intercepts
        if len(class_names) == 2:
            logits = pt.concatenate([pt.zeros_like(logits), logits], axis=1)
        pm.CustomDist(
            names.OBSERVED_LABEL,
            logits,
            row_weight,
            logp=label_logp,
            dist=label_draw,
            observed=labels,
            dims=names.OBS,
        )
    return model
