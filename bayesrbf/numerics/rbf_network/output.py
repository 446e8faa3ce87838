r"""The output layer: log likelihood of the responses given the linear output.

- classes: :math:`\log p(y | \eta) = \eta_y - \log \sum_c e^{\eta_c}`;
- numbers: :math:`\log p(y | \eta) = -\tfrac{\tau}{2} (y - \eta)^2
  + \tfrac12 \log \tau - \tfrac12 \log 2\pi`.

A hidden response says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.gaussian import LOG_2PI
from bayesrbf.numerics.log_sums import log_sum_exp


@dataclass(frozen=True)
class Classes:
    """Softmax over classes.

    Attributes
    ----------
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden.
    """

    labels: Int[np.ndarray, " obs"]

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Log likelihood and its slopes, not weighted.

        Parameters
        ----------
        linear : ndarray of shape (n_obs, n_outputs)
            Linear output eta.
        noise_precision : float
            Not used: a class has no noise beside its probability.

        Returns
        -------
        log_likelihood : ndarray of shape (n_obs,)
            ``log p(y_n | eta_n)`` in nats, 0 where hidden.
        slopes : ndarray of shape (n_obs, n_outputs)
            Derivative of each row's log likelihood in its linear output.
        by_row : ndarray of shape (n_obs,)
            Derivative in the noise precision: zero.
        """
        known = self.labels >= 0
        log_sums, probabilities = log_sum_exp(linear, axis=1)
        target = np.maximum(self.labels, 0)
        rows = np.arange(len(linear))
        log_likelihood = np.where(known, linear[rows, target] - log_sums, 0.0)
        slopes = -probabilities
        slopes[rows, target] += 1.0
        slopes[~known] = 0.0
        return log_likelihood, slopes, np.zeros(len(linear))


@dataclass(frozen=True)
class Numbers:
    """Gaussian noise about one linear output.

    Attributes
    ----------
    targets : ndarray of shape (n_obs,)
        Responses in standard units, NaN where hidden.
    scale : float
        Size of one standard unit in the user's: log densities are per unit of the user's.
    """

    targets: Float[np.ndarray, " obs"]
    scale: float = 1.0

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Log likelihood and its slopes, not weighted.

        Parameters
        ----------
        linear : ndarray of shape (n_obs, 1)
            Linear output eta, the mean of the response.
        noise_precision : float
            tau, one over the noise variance, positive.

        Returns
        -------
        log_likelihood : ndarray of shape (n_obs,)
            ``log p(y_n | eta_n)`` in nats, 0 where hidden.
        slopes : ndarray of shape (n_obs, 1)
            Derivative of each row's log likelihood in its linear output.
        by_row : ndarray of shape (n_obs,)
            Derivative of each row's log likelihood in the noise precision.
        """
        known = ~np.isnan(self.targets)
        residuals = np.where(known, self.targets - linear[:, 0], 0.0)
        constant = 0.5 * (np.log(noise_precision) - LOG_2PI) - np.log(self.scale)
        log_likelihood = constant * known
        log_likelihood -= 0.5 * noise_precision * residuals**2
        by_row = known * 0.5 / noise_precision - 0.5 * residuals**2
        return log_likelihood, noise_precision * residuals[:, None], by_row


Output = Classes | Numbers
"""Responses that know their likelihood."""
