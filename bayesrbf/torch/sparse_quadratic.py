r"""Quadratic features and the noise that makes their weights sparse.

**Monomials** of degree at most two of a feature vector,

.. math::
    \phi(x) = [1,\; x_1, \dots, x_D,\; x_i x_j \,(i \le j)]

of size 1 + D (D + 3) / 2, or with the squares :math:`x_i^2` alone, of size 1 + 2 D. The
one-half of a quadratic form is not in the monomials but in the weights: a normal
component with mean mu and precision P has, up to a constant,
:math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} = -P_{ij}`.

**Variational Gaussian dropout** gives every weight a noise of its own. The approximate
posterior of a weight is :math:`q(w) = N(\theta, \sigma^2)`, the prior is log-uniform, and the
divergence between them depends on the ratio :math:`\alpha = \sigma^2 / \theta^2` alone. It
falls as alpha grows: a weight that the data do not need loses its mean, and at
log alpha > 3, where the noise is four and a half times the weight, it can be set to zero.

See Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR, section
2.1; and Molchanov, Ashukha and Vetrov (2017), Variational dropout sparsifies deep neural networks,
ICML, sections 4.1 (additive noise) and 4.2 (equation 14).
"""

from __future__ import annotations

from typing import Final, Literal

import torch
from jaxtyping import Float, Int
from torch.nn import functional

Covariance = Literal["diag", "full"]
COVARIANCES: Final = ("diag", "full")

K1: Final = 0.63576
K2: Final = 1.87320
K3: Final = 1.48695
LOG_ALPHA_LIMIT: Final = 10.0
PRUNING_THRESHOLD: Final = 3.0
"""log alpha above which a weight is noise: it would be dropped 19 times in 20."""


def factors(in_features: int, covariance: Covariance) -> Int[torch.Tensor, "2 product"]:
    """First and second factor of every product: the squares alone ("diag"), or all products.

    >>> factors(2, "full").tolist()
    [[0, 0, 1], [0, 1, 1]]
    >>> factors(2, "diag").tolist()
    [[0, 1], [0, 1]]
    """
    places = {"diag": torch.arange, "full": lambda n: torch.triu_indices(n, n)}[covariance]
    return places(in_features).expand(2, -1).clone()


def monomials(
    points: Float[torch.Tensor, "*batch coordinate"], factors: Int[torch.Tensor, "2 product"]
) -> Float[torch.Tensor, "*batch monomial"]:
    """Evaluate 1, every coordinate and the products of the chosen pairs, in this order.

    >>> monomials(torch.tensor([2.0, 3.0]), factors(2, "full")).tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    """
    first, second = factors
    ones = torch.ones_like(points[..., :1])
    return torch.cat([ones, points, points[..., first] * points[..., second]], dim=-1)


def log_alpha(
    mean: Float[torch.Tensor, "*weight"], log_variance: Float[torch.Tensor, "*weight"]
) -> Float[torch.Tensor, "*weight"]:
    r"""Ratio of noise to signal, :math:`\log \sigma^2 - 2 \log |\theta|`, within +-10.

    A weight with mean 0 has the largest.

    >>> log_alpha(torch.tensor([1.0, 0.0]), torch.tensor([-4.0, -4.0])).tolist()
    [-4.0, 10.0]
    """
    # Below the floor the limit is long reached; without it a zero has no finite gradient.
    square = mean.square().clamp_min(torch.finfo(mean.dtype).tiny)
    return (log_variance - square.log()).clamp(-LOG_ALPHA_LIMIT, LOG_ALPHA_LIMIT)


def divergence(log_alpha: Float[torch.Tensor, "*weight"]) -> Float[torch.Tensor, "*weight"]:
    r"""Kullback-Leibler divergence of each weight's posterior from the log-uniform prior, in nats.

    .. math:: -\mathrm{KL} \approx k_1 s(k_2 + k_3 \log \alpha)
        - \tfrac12 \log (1 + \alpha^{-1}) - k_1

    with s the logistic function; the additive constant is chosen so that it vanishes
    as alpha grows.

    >>> divergence(torch.tensor([-4.0, 0.0, 10.0])).numpy().round(3)
    array([2.634, 0.431, 0.   ], dtype=float32)
    """
    negative = K1 * torch.sigmoid(K2 + K3 * log_alpha) - 0.5 * functional.softplus(-log_alpha) - K1
    return -negative
