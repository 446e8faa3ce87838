r"""Variational Gaussian dropout: every weight carries its own noise, and useless ones drown.

The approximate posterior of a weight is :math:`q(w) = N(\theta, \sigma^2)`, the prior
is log-uniform, and the divergence between them depends on the ratio
:math:`\alpha = \sigma^2 / \theta^2` alone. It falls as alpha grows: a weight that the data
do not need loses its mean, and at log alpha > 3, where the noise is four and a half times
the weight, it can be set to zero.

References
----------
Molchanov, Ashukha and Vetrov (2017), Variational dropout sparsifies deep neural networks,
ICML, sections 4.1 (additive noise) and 4.2 (equation 14).
"""

from __future__ import annotations

from typing import Final

import torch
from jaxtyping import Float
from torch.nn import functional

K1: Final = 0.63576
K2: Final = 1.87320
K3: Final = 1.48695
LOG_ALPHA_LIMIT: Final = 10.0
PRUNING_THRESHOLD: Final = 3.0
"""log alpha above which a weight is noise: it would be dropped 19 times in 20."""


def log_alpha(
    mean: Float[torch.Tensor, "*weight"], log_variance: Float[torch.Tensor, "*weight"]
) -> Float[torch.Tensor, "*weight"]:
    r"""Ratio of noise to signal, :math:`\log \sigma^2 - 2 \log |\theta|`, within +-10.

    Parameters
    ----------
    mean, log_variance : Tensor of any shape
        Mean theta and log variance of every weight's posterior.

    Returns
    -------
    Tensor of that shape
        log alpha; a weight with mean 0 has the largest.

    Examples
    --------
    >>> log_alpha(torch.tensor([1.0, 0.0]), torch.tensor([-4.0, -4.0])).tolist()
    [-4.0, 10.0]
    """
    # Below the floor the limit is long reached; without it a zero has no finite gradient.
    square = mean.square().clamp_min(torch.finfo(mean.dtype).tiny)
    return (log_variance - square.log()).clamp(-LOG_ALPHA_LIMIT, LOG_ALPHA_LIMIT)


def divergence(log_alpha: Float[torch.Tensor, "*weight"]) -> Float[torch.Tensor, "*weight"]:
    r"""Kullback-Leibler divergence of each weight's posterior from the log-uniform prior.

    .. math:: -\mathrm{KL} \approx k_1 s(k_2 + k_3 \log \alpha)
        - \tfrac12 \log (1 + \alpha^{-1}) - k_1

    with s the logistic function; the additive constant is chosen so that it vanishes
    as alpha grows.

    Parameters
    ----------
    log_alpha : Tensor of any shape
        Ratio of noise to signal of every weight.

    Returns
    -------
    Tensor of that shape
        Divergences in nats, positive and falling.

    Examples
    --------
    >>> divergence(torch.tensor([-4.0, 0.0, 10.0])).numpy().round(3)
    array([2.634, 0.431, 0.   ], dtype=float32)
    """
    negative = K1 * torch.sigmoid(K2 + K3 * log_alpha) - 0.5 * functional.softplus(-log_alpha) - K1
    return -negative
