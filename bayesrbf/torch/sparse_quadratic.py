r"""Monomials of degree at most two of a feature vector.

.. math::
    \phi(x) = [1,\; x_1, \dots, x_D,\; x_i x_j \,(i \le j)]

of size 1 + D (D + 3) / 2, or with the squares :math:`x_i^2` alone, of size 1 + 2 D. The
one-half of a quadratic form is not in the monomials but in the weights: a normal
component with mean mu and precision P has, up to a constant,
:math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} = -P_{ij}`.

References
----------
Hayashi and Uchida (2021), A discriminative Gaussian mixture model with sparsity, ICLR,
section 2.1.
"""

from __future__ import annotations

from typing import Final, Literal

import torch
from jaxtyping import Float, Int

Covariance = Literal["diag", "full"]
COVARIANCES: Final = ("diag", "full")


def factors(in_features: int, covariance: Covariance) -> Int[torch.Tensor, "2 product"]:
    """Which pairs of coordinates are multiplied.

    Parameters
    ----------
    in_features : int
        Number D of coordinates.
    covariance : {"diag", "full"}
        The squares alone, or all products.

    Returns
    -------
    Tensor of shape (2, n_products)
        First and second factor of every product.

    Examples
    --------
    >>> factors(2, "full").tolist()
    [[0, 0, 1], [0, 1, 1]]
    >>> factors(2, "diag").tolist()
    [[0, 1], [0, 1]]
    """
    if covariance == "diag":
        return torch.arange(in_features).expand(2, -1).clone()
    return torch.triu_indices(in_features, in_features)


def monomials(
    points: Float[torch.Tensor, "*batch coordinate"], factors: Int[torch.Tensor, "2 product"]
) -> Float[torch.Tensor, "*batch monomial"]:
    """Evaluate 1, every coordinate and the products of the chosen pairs.

    Parameters
    ----------
    points : Tensor of shape (..., n_coordinates)
        Feature vectors.
    factors : Tensor of shape (2, n_products)
        Pairs of coordinates, from :func:`factors`.

    Returns
    -------
    Tensor of shape (..., 1 + n_coordinates + n_products)
        Values; column 0 is the intercept.

    Examples
    --------
    >>> monomials(torch.tensor([2.0, 3.0]), factors(2, "full")).tolist()
    [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]
    """
    first, second = factors
    ones = torch.ones_like(points[..., :1])
    return torch.cat([ones, points, points[..., first] * points[..., second]], dim=-1)
