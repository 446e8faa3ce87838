r"""Distances of pairs of rows in every column, expected where a cell is missing.

With difference d of the means and sum :math:`s^2` of the variances of two real cells, and
probability o that two levels agree,

.. math::
   E|x - x'| = s \sqrt{2 / \pi}\, e^{-d^2 / (2 s^2)} + d\, \mathrm{erf}(d / (s \sqrt 2)), \quad
   \tfrac12 E (x - x')^2 = \tfrac12 (d^2 + s^2), \quad
   P(\text{other level}) = 1 - o.

Each is a negative definite function of two rows, so :math:`\exp(-\sum_j a_j D_j)`, with ones on
its diagonal, is a kernel for any rates :math:`a_j \ge 0` (Schoenberg 1938).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import erf

from bayesrbf.numerics.categories import split_levels
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, KernelName


def expected_distances(
    cells: CellMoments, levels: tuple[int, ...], name: KernelName
) -> Float[np.ndarray, "column pair"]:
    """Distances of all pairs of rows, reals then categorical columns, in the order of pdist."""
    i, j = np.triu_indices(cells.n_rows, 1)
    means, variances = (np.ascontiguousarray(one.T) for one in (cells.mean, cells.variance))
    gap = np.abs(means.take(i, 1) - means.take(j, 1))
    if variances.any():
        variance = variances.take(i, 1) + variances.take(j, 1)
        reals = _absolute(gap, variance) if name == "laplace" else 0.5 * (gap**2 + variance)
    else:
        reals = gap if name == "laplace" else 0.5 * gap**2
    parts = split_levels(cells.probabilities, levels)
    agree = [one[:, i, j] for one in ((part @ part.T)[None] for part in parts)]
    return np.concatenate([reals, *(1 - one for one in agree)])


def _absolute(
    gap: Float[np.ndarray, "feature pair"], variance: Float[np.ndarray, "feature pair"]
) -> Float[np.ndarray, "feature pair"]:
    """Mean of the absolute value of normal differences; the gap itself where both are known."""
    result, holes = gap.copy(), variance > 0
    d, s = gap[holes], np.sqrt(variance[holes])
    z = d / (s * np.sqrt(2))
    result[holes] = s * np.sqrt(2 / np.pi) * np.exp(-(z**2)) + d * erf(z)
    return result
