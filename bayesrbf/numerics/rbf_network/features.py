r"""What the hidden layer tells the output layer, and the way back.

With :math:`\ell_{nk} = \log \pi_k + \log p(x_{n,o} \mid k)` in standard units:

- ``responsibility``: :math:`f_{nk} = e^{\ell_{nk}} / \sum_j e^{\ell_{nj}}`, over the
  mixture that k belongs to;
- ``density``: :math:`f_{nk} = (2\pi)^{|o|/2} p(x_{n,o} \mid k)`, so that a standard
  normal peaks at 1 whatever the number of observed cells;
- ``log_density``: the logarithm of that, divided by the number of real columns.

Missing cells are marginalised in all of them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.gaussian import LOG_2PI
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.parameters import Observations
from bayesrbf.rbf_parameters import RBFNetworkSpecification

LARGEST_LOG_DENSITY = 300.0
"""A density in many columns leaves the range of floats: beyond this it is held, and flat."""


class FeatureMap:
    """Features of the rows of one table.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    specification : RBFNetworkSpecification
        Structure of the network.
    """

    def __init__(self, observations: Observations, specification: RBFNetworkSpecification) -> None:
        self._kind = specification.features
        self._slices = specification.mixture.class_slices
        observed = (~np.isnan(observations.real)).sum(axis=1)
        self._constants = 0.5 * LOG_2PI * observed[:, None]
        cells = specification.mixture.n_features + len(specification.mixture.levels)
        self._per_cell = 1.0 / cells

    @property
    def uses_weights(self) -> bool:
        """Whether the mixture weights are part of the features."""
        return self._kind == "responsibility"

    def forward(
        self,
        log_joint: Float[np.ndarray, "obs component"],
        log_weights: Float[np.ndarray, " component"],
    ) -> Float[np.ndarray, "obs component"]:
        """Compute the features.

        Parameters
        ----------
        log_joint : ndarray of shape (n_obs, n_components)
            ``log pi_k + log p(x_o | k)`` in nats.
        log_weights : ndarray of shape (n_components,)
            ``log pi_k``.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Features f.
        """
        if self._kind == "responsibility":
            parts = [log_sum_exp(log_joint[:, part], axis=1)[1] for part in self._slices]
            return np.concatenate(parts, axis=1)
        log_density = log_joint - log_weights + self._constants
        if self._kind == "log_density":
            return log_density * self._per_cell
        return np.exp(np.minimum(log_density, LARGEST_LOG_DENSITY))

    def backward(
        self,
        features: Float[np.ndarray, "obs component"],
        slopes: Float[np.ndarray, "obs component"],
    ) -> Float[np.ndarray, "obs component"]:
        """Carry slopes in the features to slopes in the log joints.

        Parameters
        ----------
        features : ndarray of shape (n_obs, n_components)
            What :meth:`forward` returned.
        slopes : ndarray of shape (n_obs, n_components)
            Derivative of the objective in the features.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Derivative in ``log_joint``, at fixed ``log_weights``.
        """
        if self._kind == "log_density":
            return slopes * self._per_cell
        result = slopes * features
        if self._kind == "density":
            result[features >= np.exp(LARGEST_LOG_DENSITY)] = 0.0
        if self._kind == "responsibility":
            for part in self._slices:
                total = result[:, part].sum(axis=1, keepdims=True)
                result[:, part] -= features[:, part] * total
        return result
