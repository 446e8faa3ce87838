"""The calibration slope: the factor of the log probabilities that fits the labels best."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.posterior.scores import LEAST, Labels, Probabilities, Weights, one_hot


def calibration_slope(
    probabilities: Probabilities,
    labels: Labels,
    weights: Weights | None = None,
) -> tuple[float, float]:
    """Slope b of the recalibration ``y ~ softmax(a_c + b log p_c)`` and its standard error.

    1 for calibrated probabilities, below 1 where they are too extreme, above 1 where they
    are too timid. For two classes it is the slope of the usual logistic recalibration on
    ``logit p``. Weak priors ``b - 1 ~ Normal(0, 10)``, ``a_c ~ Normal(0, 10)`` keep it
    finite where the classes are told apart without error. The error is from the curvature at
    the mode.

    References
    ----------
    .. [1] Cox (1958), Two further applications of a model for binary regression,
       Biometrika 45.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0], size=2000)
    >>> labels = (p.cumsum(1) < rng.random((2000, 1))).sum(1)
    >>> sharp = p**2 / (p**2).sum(1, keepdims=True)
    >>> slope, error = calibration_slope(sharp, labels)
    >>> abs(slope - 0.5) < 2 * error < 0.1
    True
    """
    weights = np.ones(labels.size) if weights is None else weights
    n_classes = probabilities.shape[1]
    log_p = np.log(np.clip(probabilities, LEAST, 1.0))
    design = np.zeros((*log_p.shape, n_classes + 1))
    design[..., :n_classes] = np.eye(n_classes)
    design[..., n_classes] = log_p
    prior_mean = np.append(np.zeros(n_classes), 1.0)
    mode, covariance = _newton(design, one_hot(probabilities, labels), weights, prior_mean)
    return float(mode[-1]), float(np.sqrt(covariance[-1, -1]))


def _newton(
    design: Float[np.ndarray, "obs label coefficient"],
    target: Float[np.ndarray, "obs label"],
    weights: Weights,
    prior_mean: Float[np.ndarray, " coefficient"],
) -> tuple[Float[np.ndarray, " coefficient"], Float[np.ndarray, "coefficient coefficient"]]:
    """Mode and inverse curvature of a softmax regression under Normal(prior_mean, 10)."""
    ridge = 0.01

    def objective(coefficients: np.ndarray) -> float:
        logits = design @ coefficients
        peak = logits.max(1)
        log_norm = peak + np.log(np.exp(logits - peak[:, None]).sum(1))
        loss = weights @ (log_norm - (target * logits).sum(1))
        return float(loss + ridge / 2 * ((coefficients - prior_mean) ** 2).sum())

    mode = prior_mean.copy()
    for _ in range(100):
        p = softmax(design @ mode, axis=1)
        centred = design - np.einsum("nc,ncj->nj", p, design)[:, None]
        slope = np.einsum("n,nc,ncj->j", weights, p - target, design) + ridge * (mode - prior_mean)
        curvature = np.einsum("n,nc,nci,ncj->ij", weights, p, centred, centred, optimize=True)
        curvature += ridge * np.eye(mode.size)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while size > 1e-6 and objective(mode - size * step) > objective(mode):
            size /= 2
        mode = mode - size * step
        if np.abs(size * step).max() < 1e-10:
            break
    return mode, np.linalg.inv(curvature)
