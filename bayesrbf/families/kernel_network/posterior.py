r"""The output layer of a kernel network: multinomial logistic under a Gaussian prior.

.. math::
   \log p(\theta | y) = \sum_n v_n \log \mathrm{softmax}(W f(x_n) + b)[y_n]
       + \sum \log N(W; 0, 1/\lambda) + \sum \log N(b; 0, \sigma_b^2)

with row weights v, hidden layer f and precision :math:`\lambda`. Two classes have one row of
weights, for the second class over the first. Everything is free of bounds: there is no
Jacobian. The only mode is found by L-BFGS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayesrbf.base import names
from bayesrbf.base.arrays import log_softmax, on_one_blas_thread
from bayesrbf.base.log_posterior import LogPosterior, log_normal
from bayesrbf.base.priors import Status
from bayesrbf.base.rows import Variable

INTERCEPT_SD = 10.0
"""Standard deviation of the normal prior of the intercepts: odds of e^10 to one are as good as
free."""
MEMORY = 10  # Pairs of steps and gradients that L-BFGS keeps.
PRECISIONS: Final = (1e-5, 1e5)
"""Bounds of a precision of the output weights that is found by its evidence."""
ROUNDS, NEAR = 12, 0.05
"""The search for it ends after so many rounds, or where the log changes by less."""


class KernelNetworkLogPosterior(LogPosterior):
    """Log posterior of the output weights given a hidden layer.

    Coordinates are the output weights, then the intercepts. Labels are class codes, -1 where
    hidden: such a row says nothing about the weights. ``weight_precision`` is that of the
    normal prior of the output weights.
    """

    def __init__(
        self,
        features: Float[np.ndarray, "obs basis"],
        labels: Int[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        n_classes: int,
        weight_precision: float,
    ) -> None:
        self.n_classes, self.weight_precision = n_classes, weight_precision
        self._features, self._labels = features, labels
        self._weights = weights
        labelled = np.flatnonzero(labels >= 0)
        self._rows = features if labelled.size == labels.size else features[labelled]
        self._row_weights = weights[labelled]
        self._target = np.eye(n_classes)[labels[labelled]] * self._row_weights[:, None]

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights of the rows; a row without a label has no term under any weight."""
        return self._weights

    def effective_weights(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        r"""Number of output weights that the labels determine.

        .. math:: \gamma = C \sum_k \frac{h_k}{h_k + \lambda}

        with the precision :math:`\lambda` and the eigenvalues h of the curvature of the log
        likelihood in the weights of one of the C outputs, of which this is the mean:
        :math:`F' \mathrm{diag}(v \, \overline{p_c (1 - p_c)}) F` (MacKay 1992).
        """
        p = np.exp(class_log_probabilities(self._rows, theta, self.n_classes))
        curvature = self._row_weights * (p * (1 - p)).mean(axis=1)
        h = np.linalg.eigvalsh((self._rows * curvature[:, None]).T @ self._rows)
        n_outputs = self.variables[0].shape[0]
        return float(n_outputs * (h / (h + self.weight_precision)).sum())

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Output weights and intercepts."""
        n_outputs = 1 if self.n_classes == 2 else self.n_classes
        shape = (n_outputs, self._features.shape[1])
        return (
            Variable(names.COEFFICIENTS, (names.OUTPUT, names.BASIS), shape, "identity"),
            Variable(names.INTERCEPTS, (names.OUTPUT,), shape[:1], "identity"),
        )

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Posterior standard deviation of each coordinate if predictions are class shares."""
        prevalences = self._target.sum(axis=0) / self._row_weights.sum()
        variances = (prevalences * (1 - prevalences))[-self.variables[0].shape[0] :]
        squares = self._row_weights @ self._rows**2
        weights = np.outer(variances, squares) + self.weight_precision
        intercepts = variances * self._row_weights.sum() + INTERCEPT_SD**-2
        return np.concatenate([weights.ravel(), intercepts]) ** -0.5

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's.

        Nothing is transformed, so ``jacobian`` has no effect.
        """
        weights, intercepts = output_layer(theta, self._rows.shape[1])
        log_p = class_log_probabilities(self._rows, theta, self.n_classes)
        value = float((self._target * log_p).sum()) + self.log_prior(theta)
        logit_gradient = self._target - self._row_weights[:, None] * np.exp(log_p)
        # Of two classes the first has the logit 0 and no weights.
        logit_gradient = logit_gradient[:, -intercepts.size :]
        by_weight = logit_gradient.T @ self._rows - self.weight_precision * weights
        by_intercept = logit_gradient.sum(axis=0) - intercepts / INTERCEPT_SD**2
        return value, np.concatenate([by_weight.ravel(), by_intercept])

    def log_prior(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        """Log prior density of the output weights and intercepts."""
        weights, intercepts = output_layer(theta, self._rows.shape[1])
        sd = self.weight_precision**-0.5
        return log_normal(weights, sd) + log_normal(intercepts, INTERCEPT_SD)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability of every row's label, in nats; 0 where it is hidden."""
        log_p = class_log_probabilities(self._features, theta, self.n_classes)
        label_log_p = log_p[np.arange(self._labels.size), self._labels]
        return np.where(self._labels >= 0, label_log_p, 0.0)


def class_log_probabilities(
    features: Float[np.ndarray, "row basis"],
    theta: Float[np.ndarray, " coordinate"],
    n_classes: int,
) -> Float[np.ndarray, "row label"]:
    """Log of ``softmax(W f + b)``; of two classes, the first has the logit 0.

    >>> class_log_probabilities(np.ones((1, 1)), np.log([3.0, 1.0]), 2)
    array([[-1.38629436, -0.28768207]])
    """
    weights, intercepts = output_layer(theta, features.shape[1])
    logits = features @ weights.T + intercepts
    if n_classes == 2:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    return log_softmax(logits, axis=1)


def attenuated(
    log_p: Float[np.ndarray, "row label"],
    variances: Float[np.ndarray, "row column"],
    slopes: Float[np.ndarray, "column output"],
) -> Float[np.ndarray, "row label"]:
    r"""Class log probabilities of a linear rule, averaged over its missing cells.

    Cells with ``variances`` give the log odds :math:`z_{ck}` of two classes the variance
    :math:`s_{ck}^2`. By MacKay (1992), for each pair of classes,

    .. math:: 1 / p_c \propto \sum_k \exp\bigl(-z_{ck} (1 + \pi s_{ck}^2 / 8)^{-1/2}\bigr) .

    >>> log_p = np.log([[0.2, 0.8]])
    >>> np.exp(attenuated(log_p, np.array([[4.0]]), np.array([[1.0]]))).round(3)
    array([[0.296, 0.704]])
    """
    if log_p.shape[1] == 2:
        slopes = np.column_stack([np.zeros(len(slopes)), slopes])
    result = np.empty_like(log_p)
    for label, of_label in enumerate(slopes.T):
        spread = variances @ np.square(of_label[:, None] - slopes)
        log_odds = log_p[:, [label]] - log_p
        result[:, label] = -logsumexp(-log_odds / np.sqrt(1 + np.pi / 8 * spread), axis=1)
    return log_softmax(result, axis=1)


def output_layer(
    theta: Float[np.ndarray, " coordinate"], n_basis: int
) -> tuple[Float[np.ndarray, "output basis"], Float[np.ndarray, " output"]]:
    """Output weights and intercepts at given coordinates."""
    n_outputs = theta.size // (n_basis + 1)
    return theta[:-n_outputs].reshape(n_outputs, n_basis), theta[-n_outputs:]


@dataclass(frozen=True)
class OutputFit:
    """The mode of the output weights, and the way there."""

    theta: Float[np.ndarray, " coordinate"]  # The mode.
    joint: Float[np.ndarray, " iteration"]
    """Log posterior at the start and after every iteration, in nats."""
    conditional: Float[np.ndarray, " iteration"]
    """``sum_n v_n log p(y_n | x_n)`` at the same points."""
    status: Status


@on_one_blas_thread
def fit_output(
    log_posterior: KernelNetworkLogPosterior,
    *,
    tol: float,
    max_iter: int,
    start: Float[np.ndarray, " coordinate"] | None = None,
) -> OutputFit:
    """Find the mode, which is the only one, by L-BFGS from ``start``, which is 0 unless given.

    The search runs in units of ``scales``. In them the curvature is close to a multiple of the
    identity, because the features of a kernel's eigenfunctions are orthogonal: some tens of
    iterations do. At the end no gradient exceeds ``tol`` nats per unit of ``scales``, which is
    about the distance from the mode in posterior standard deviations.
    """
    scales = log_posterior.scales
    path: list[tuple[float, float]] = []

    def watch(value: float, theta: np.ndarray) -> None:
        path.append((value, value - log_posterior.log_prior(theta)))

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(u * scales)
        return -value, -gradient * scales

    start = np.zeros(log_posterior.dimension) if start is None else start
    watch(log_posterior.value_and_gradient(start)[0], start)
    result = minimize(
        objective,
        start / scales,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: watch(
            -float(intermediate_result.fun), intermediate_result.x * scales
        ),
        # The gradient alone decides: a small gain says little about the distance from the mode.
        options={"maxiter": max_iter, "maxcor": MEMORY, "gtol": tol, "ftol": 0.0},
    )
    status = Status.MAX_ITER if result.nit >= max_iter else Status.CONVERGED
    joint, conditional = np.array(path).T
    return OutputFit(result.x * scales, joint, conditional, status)


@on_one_blas_thread
def fit_by_evidence(
    log_posterior: Callable[[float], KernelNetworkLogPosterior], *, tol: float, max_iter: int
) -> tuple[OutputFit, float]:
    r"""The mode under the precision of the weights of largest evidence, and this precision.

    ``log_posterior`` is that under a precision. By MacKay's fixed point (1992, section 3.2),
    :math:`\lambda \leftarrow \gamma / \lVert W \rVert^2`, from 1.
    """
    precision, start = 1.0, None
    for _ in range(ROUNDS):
        target = log_posterior(precision)
        fit = fit_output(target, tol=tol, max_iter=max_iter, start=start)
        start, used = fit.theta, precision
        weights, _ = output_layer(fit.theta, target.variables[0].shape[1])
        # All weights may be 0; the precision is clipped then.
        length = max(float(np.square(weights).sum()), np.finfo(float).tiny)
        precision = float(np.clip(target.effective_weights(fit.theta) / length, *PRECISIONS))
        if abs(np.log(precision / used)) < NEAR:
            break
    return fit, used
