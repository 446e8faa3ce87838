"""PyMC graphs of a kernel network: its output layer, and the rates of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int
from pytensor.tensor import TensorVariable
from scipy.linalg import helmert
from scipy.spatial.distance import squareform

from bayesrbf.base import names
from bayesrbf.families.kernel_network.records import (
    NUGGET,
    RATE_PRIORS,
    Normal,
    RateCriterion,
    RateRows,
)
from bayesrbf.models.densities import label_draw, label_logp

OBS_BIS, CONTRAST = "obs_bis", "contrast"


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


def declare_kernel_rates(
    rows: RateRows,
    fixed: Float[np.ndarray, " column"],
    criterion: RateCriterion,
    *,
    column_names: Sequence[object] | None = None,
) -> pm.Model:
    r"""Declare the rates of a kernel, judged by Gaussian processes on class indicators.

    .. math::
       a_j = a^0_j g_j h, \quad K = e^{-\sum_j a_j D_j} + \epsilon I, \quad
       \log g_j, \log h, \log \nu, \log s, \log t \sim N, \\
       \text{evidence: } R_c \sim N(0, s K + \nu V^{-1}), \\
       \text{leave-one-out: } \sum_n v_n \log \mathrm{softmax}(t F_n + \log \pi)[y_n], \quad
       F_n = R_n - (G^{-1} R)_n / c_n, \quad G = K + \nu V^{-1}

    with :math:`c_n = (G^{-1})_{nn}`; of a row of several independent subjects one alone is left
    out. R are the class indicators minus the shares :math:`\pi`; for the evidence their contrasts,
    in units of their root mean square. A row of weight two is the row twice. The evidence is a
    log density. The leave-one-out score is not: it is a potential, and the graph is a
    pseudo-posterior.

    Parameters
    ----------
    rows : RateRows
        Distances of labelled rows in every column, labels, weights v and shares of the classes.
    fixed : ndarray of shape (n_columns,)
        Rates that a factor of 1 leaves as they are.
    criterion : {"evidence", "leave-one-out"}
        What judges the rates.
    column_names : sequence of length n_columns, optional
        Names of the columns; numbers by default.

    Returns
    -------
    pymc.Model
        Free variables ``log_rate_factors``, ``log_common_factor``, ``log_noise`` and ``log_signal``
        or ``log_temperature``; deterministic ``rates``.

    Examples
    --------
    >>> distances = np.array([[1.0, 3.0, 2.0]])
    >>> rows = RateRows(
    ...     distances, np.array([0, 0, 1]), np.ones(3), np.ones(3), np.array([0.6, 0.4])
    ... )
    >>> model = declare_kernel_rates(rows, np.ones(1), "evidence", column_names=["height"])
    >>> [variable.name for variable in model.free_RVs]
    ['log_rate_factors', 'log_common_factor', 'log_noise', 'log_signal']
    """
    n_obs, n_contrasts = rows.labels.size, rows.shares.size - 1
    coords: dict[str, Any] = {
        names.COLUMN: range(fixed.size) if column_names is None else list(column_names),
        names.OBS: range(n_obs),
        OBS_BIS: range(n_obs),
        CONTRAST: range(n_contrasts),
    }
    priors = RATE_PRIORS[criterion]
    with pm.Model(coords=coords) as model:
        factors = _normal(names.LOG_RATE_FACTORS, priors.factors, dims=names.COLUMN)
        common = _normal(names.LOG_COMMON_FACTOR, priors.common)
        noise = pt.exp(_normal(names.LOG_NOISE, priors.noise))
        rates = pm.Deterministic(names.RATES, fixed * pt.exp(factors + common), dims=names.COLUMN)
        squares = np.array([squareform(condensed) for condensed in rows.distances])
        distances = pm.Data("distances", squares, dims=(names.COLUMN, names.OBS, OBS_BIS))
        kernel = pt.exp(-pt.tensordot(rates, distances, axes=1)) + NUGGET * np.eye(n_obs)
        noises = pt.diag(noise / pm.Data("row_weight", rows.weights, dims=names.OBS))
        if criterion == "evidence":
            signal = pt.exp(_normal(names.LOG_SIGNAL, priors.output_scale))
            _observe(rows, signal * kernel + noises, noise)
        else:
            temperature = pt.exp(_normal(names.LOG_TEMPERATURE, priors.output_scale))
            _score(rows, kernel + noises, noise, temperature)
    return model


def _normal(name: str, prior: Normal, **dims: Any) -> TensorVariable:
    """Normal variable ``name`` with the mean and standard deviation of ``prior``."""
    return pm.Normal(name, np.float64(prior.mean), np.float64(prior.sd), **dims)


def _observe(rows: RateRows, covariance: TensorVariable, noise: TensorVariable) -> None:
    """Contrasts of the indicators under the Gaussian process; a row of weight v is v rows."""
    contrasts = helmert(rows.shares.size) @ rows.residuals.T
    mean_squares = (contrasts**2 @ rows.weights) / rows.weights.sum()
    pm.MvNormal(
        names.OBSERVED_LABEL,
        np.zeros(rows.labels.size),
        cov=covariance,
        observed=contrasts / np.sqrt(mean_squares.mean()),
        dims=(CONTRAST, names.OBS),
    )
    of_copies = (rows.weights - 1) * pt.log(2 * np.pi * noise) + np.log(rows.weights)
    pm.Potential("copies", -0.5 * len(contrasts) * of_copies.sum())


def _score(
    rows: RateRows, gram: TensorVariable, noise: TensorVariable, temperature: TensorVariable
) -> None:
    """Log score of every label, one independent subject of its row left out, as a potential."""
    precision, left_out = pt.linalg.inv(gram), rows.left_out
    diagonal = left_out / rows.weights * pt.diag(precision) + (rows.weights - left_out) / noise
    predicted = rows.residuals - (precision @ rows.residuals) / diagonal[:, None]
    log_p = pm.math.log_softmax(temperature * predicted + np.log(rows.shares), axis=1)
    of_label = log_p[np.arange(rows.labels.size), rows.labels]
    pm.Potential("leave_one_out", (rows.weights * of_label).sum())
