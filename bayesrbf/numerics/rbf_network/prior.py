r"""Priors of the output layer, and the link to the mixture weights.

.. math::
   \log p(w) &= -\lambda_1 |w| - \lambda_2 w^2 / 2 - \log Z, \quad
   Z = \sqrt{2\pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2}), \\
   \log p(\pi \mid w) &= \log \mathrm{Dirichlet}(\pi; a + \gamma s(w))

The mixture's own prior holds the part :math:`\mathrm{Dirichlet}(a)`; what the link adds to
it stands here. Where it depends on :math:`|w|`, the slope in :math:`|w|` is kept apart from
the slope in w: the one has a kink at zero, which exact zeros come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, erfcx, gammaln

from bayesrbf.numerics.coordinates import SMALLEST_PROBABILITY
from bayesrbf.rbf_parameters import RBFNetworkHyperparameters, RBFNetworkSpecification

SMALLEST_SHARE = 1e-6
"""epsilon: keeps the shares of output weights defined where all of them are zero."""


def log_elastic_net_constant(l1: float, l2: float) -> float:
    """Log of the elastic net's normalising constant.

    Parameters
    ----------
    l1 : float
        Rate of the Laplace factor.
    l2 : float
        Precision of the normal factor.

    Returns
    -------
    float
        ``log of the integral of exp(-l1 |w| - l2 w^2 / 2)``.

    Examples
    --------
    >>> round(log_elastic_net_constant(2.0, 0.0), 6)  # Laplace: 2 / l1
    0.0
    """
    if l2 == 0:
        return float(np.log(2 / l1))
    return float(0.5 * np.log(2 * np.pi / l2) + np.log(erfcx(l1 / np.sqrt(2 * l2))))


def log_output_prior(
    coefficients: Float[np.ndarray, "*shape"],
    intercepts: Float[np.ndarray, " output"],
    hyperparameters: RBFNetworkHyperparameters,
) -> float:
    """Log density of output weights and intercepts.

    Parameters
    ----------
    coefficients : ndarray
        Output weights w, those that are free.
    intercepts : ndarray of shape (n_outputs,)
        Biases b.
    hyperparameters : RBFNetworkHyperparameters
        Resolved prior.

    Returns
    -------
    float
        Log density in nats; flat in the intercepts where their scale is infinite.
    """
    l1, l2, scale = hyperparameters.l1, hyperparameters.l2, hyperparameters.intercept_scale
    elastic = -l1 * np.abs(coefficients).sum() - 0.5 * l2 * (coefficients**2).sum()
    elastic -= coefficients.size * log_elastic_net_constant(l1, l2)
    if np.isinf(scale):
        return float(elastic)
    wide = -0.5 * ((intercepts / scale) ** 2).sum()
    wide -= intercepts.size * np.log(scale * np.sqrt(2 * np.pi))
    return float(elastic + wide)


def shares(
    coefficients: Float[np.ndarray, "output component"], specification: RBFNetworkSpecification
) -> Float[np.ndarray, " component"]:
    """Shares of the output weights that the mixture weights are linked to.

    Parameters
    ----------
    coefficients : ndarray of shape (n_outputs, n_components)
        Output weights w; zero where an output does not see a component.
    specification : RBFNetworkSpecification
        Structure of the network.

    Returns
    -------
    ndarray of shape (n_components,)
        s(w), positive, summing to one within each mixture.
    """
    sizes = np.abs(coefficients).sum(axis=0) + SMALLEST_SHARE
    parts = [sizes[part] / sizes[part].sum() for part in specification.mixture.class_slices]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Link:
    """What the link adds at one point, and its slopes.

    Attributes
    ----------
    value : float
        ``log Dirichlet(pi; a + gamma s) - log Dirichlet(pi; a)`` in nats.
    counts : ndarray of shape (n_components,)
        ``gamma s``: counts that it adds to the mixture weights.
    by_size : ndarray of shape (n_components,)
        Derivative in ``sum_c |w_ck|``.
    """

    value: float
    counts: Float[np.ndarray, " component"]
    by_size: Float[np.ndarray, " component"]

    @classmethod
    def at(
        cls,
        weights: Float[np.ndarray, " component"],
        coefficients: Float[np.ndarray, "output component"],
        concentration: float,
        link: float,
        specification: RBFNetworkSpecification,
    ) -> Link:
        """Evaluate the link.

        Parameters
        ----------
        weights : ndarray of shape (n_components,)
            Mixture weights pi.
        coefficients : ndarray of shape (n_outputs, n_components)
            Output weights w.
        concentration : float
            a, the parameter of the weights' own Dirichlet prior.
        link : float
            gamma, finite.
        specification : RBFNetworkSpecification
            Structure of the network.

        Returns
        -------
        Link
            Value and slopes; nothing for a mixture of one component.
        """
        counts = link * shares(coefficients, specification)
        by_size = np.zeros_like(counts)
        value = 0.0
        sizes = np.abs(coefficients).sum(axis=0) + SMALLEST_SHARE
        for part in specification.mixture.class_slices:
            if part.stop - part.start == 1:
                counts[part] = 0.0
                continue
            alpha = concentration + counts[part]
            k = alpha.size
            value += gammaln(alpha.sum()) - gammaln(alpha).sum()
            value -= gammaln(k * concentration) - k * gammaln(concentration)
            log_weights = np.log(np.maximum(weights[part], SMALLEST_PROBABILITY))
            value += counts[part] @ log_weights
            # The counts sum to gamma: only differences between their slopes matter.
            by_count = log_weights - digamma(alpha)
            mean = (counts[part] @ by_count) / link if link else 0.0
            by_size[part] = link * (by_count - mean) / sizes[part].sum()
        return cls(float(value), counts, by_size)
