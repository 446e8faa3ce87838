"""Marginal log densities and draws of rows with holes, in PyTensor.

Nothing here knows priors or names: symbolic arrays in, symbolic arrays out.
Leading axes broadcast, so that one function serves a row given its component
and a row against all components. A missing cell is zero-filled and its entry of
the mask is 0; it is integrated out exactly, never imputed.
"""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import solve_triangular

LOG_TWO_PI = np.log(2 * np.pi)


def observed_cholesky(covariances: TensorVariable, observed: TensorVariable) -> TensorVariable:
    r"""Cholesky factor of the covariance of the observed cells, padded by the identity.

    .. math:: S = \Sigma \circ m m^\top + \mathrm{diag}(1 - m), \qquad S = C C^\top

    Observed and missing cells are uncorrelated in S and missing ones have
    variance one, so :math:`|S| = |\Sigma_{oo}|`.

    Parameters
    ----------
    covariances : TensorVariable of shape (..., feature, feature)
        Covariances, in the user's units.
    observed : TensorVariable of shape (..., feature)
        Mask m: 1 where a cell is observed, else 0.

    Returns
    -------
    TensorVariable of shape (..., feature, feature)
        The lower-triangular factor C.
    """
    missing = pt.eye(observed.shape[-1]) * (1 - observed)[..., None, :]
    return pt.linalg.cholesky(
        covariances * observed[..., :, None] * observed[..., None, :] + missing
    )


def normal_logp(
    real: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    cholesky: TensorVariable,
) -> TensorVariable:
    r"""Log density of the observed cells of a multivariate normal.

    .. math:: \log N(x_o; \mu_o, \Sigma_{oo})
        = -\tfrac12 |C^{-1} e|^2 - \sum_i \log C_{ii} - \tfrac{|o|}{2} \log 2\pi,
        \qquad e = (x - \mu) \circ m

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    observed : TensorVariable of shape (..., feature)
        Mask m.
    means : TensorVariable of shape (..., feature)
        Means, in the user's units.
    cholesky : TensorVariable of shape (..., feature, feature)
        C of :func:`observed_cholesky`.

    Returns
    -------
    TensorVariable of shape (...)
        Log density; 0 for a row without an observed cell.
    """
    whitened = solve_triangular(cholesky, (real - means) * observed, lower=True, b_ndim=1)
    log_determinant = pt.log(pt.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * ((whitened**2).sum(-1) + observed.sum(-1) * LOG_TWO_PI) - log_determinant


def independent_normal_logp(
    real: TensorVariable,
    observed: TensorVariable,
    means: TensorVariable,
    variances: TensorVariable,
) -> TensorVariable:
    r"""Log density of the observed cells of independent normals.

    .. math:: \sum_i m_i \log N(x_i; \mu_i, \sigma_i^2)

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    observed : TensorVariable of shape (..., feature)
        Mask m.
    means : TensorVariable of shape (..., feature)
        Means, in the user's units.
    variances : TensorVariable of shape (..., feature)
        Variances, in the user's units squared.

    Returns
    -------
    TensorVariable of shape (...)
        Log density; 0 for a row without an observed cell.
    """
    log_density = (real - means) ** 2 / variances + pt.log(variances) + LOG_TWO_PI
    return -0.5 * (observed * log_density).sum(-1)


def category_logp(
    code: TensorVariable, observed: TensorVariable, probabilities: TensorVariable
) -> TensorVariable:
    r"""Log probability of a category, 0 where it is missing.

    .. math:: m \log \theta_{x}

    Parameters
    ----------
    code : TensorVariable of shape (...)
        Level code, 0 where missing.
    observed : TensorVariable of shape (...)
        Mask m.
    probabilities : TensorVariable of shape (..., level)
        Level probabilities theta.

    Returns
    -------
    TensorVariable of shape (...)
        Log probability of the observed level.
    """
    level = pt.arange(probabilities.shape[-1])
    chosen = pt.eq(level, code[..., None]) * observed[..., None] > 0
    return pt.log(pt.switch(chosen, probabilities, 0).sum(-1) + (1 - observed))


def normal_draw(means: TensorVariable, covariances: TensorVariable) -> TensorVariable:
    r"""Draws of multivariate normals.

    .. math:: x = \mu + C z, \qquad z_i \sim N(0, 1), \qquad C C^\top = \Sigma

    Parameters
    ----------
    means : TensorVariable of shape (obs, feature)
        Mean of every row, in the user's units.
    covariances : TensorVariable of shape (obs, feature, feature)
        Covariance of every row.

    Returns
    -------
    TensorVariable of shape (obs, feature)
        One draw a row.
    """
    noise = pm.Normal.dist(shape=means.shape)
    return means + (pt.linalg.cholesky(covariances) * noise[:, None, :]).sum(-1)


def masked_normal_logp(
    real: TensorVariable,
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
) -> TensorVariable:
    r"""Log density :math:`\log N(x_o; \mu_o, \Sigma_{oo})` of rows given their components.

    Parameters
    ----------
    real : TensorVariable of shape (..., feature)
        Real cells in the user's units, 0 where missing.
    means : TensorVariable of shape (..., feature)
        Mean of every row.
    covariances : TensorVariable of shape (..., feature, feature)
        Covariance of every row.
    observed : TensorVariable of shape (..., feature)
        1 where a cell is observed, else 0.

    Returns
    -------
    TensorVariable of shape (...)
        Log densities.
    """
    return normal_logp(real, observed, means, observed_cholesky(covariances, observed))


def masked_normal_draw(
    means: TensorVariable,
    covariances: TensorVariable,
    observed: TensorVariable,
    size: Variable,
) -> TensorVariable:
    """Draw rows given their components; missing cells come out as 0.

    Parameters
    ----------
    means, covariances, observed : TensorVariable
        As in :func:`masked_normal_logp`.
    size : Variable
        Appended by PyMC; the masks fix the number of rows.

    Returns
    -------
    TensorVariable of shape (obs, feature)
        One draw a row.
    """
    return normal_draw(means, covariances) * observed


def masked_category_draw(
    probabilities: TensorVariable, observed: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw categories given the rows' components; missing ones come out as 0.

    Parameters
    ----------
    probabilities : TensorVariable of shape (obs, level)
        Level probabilities of every row.
    observed : TensorVariable of shape (obs,)
        1 where the category is observed, else 0.
    size : Variable
        Appended by PyMC; the mask fixes the number of rows.

    Returns
    -------
    TensorVariable of shape (obs,)
        Level codes.
    """
    return pm.Categorical.dist(p=probabilities) * pt.cast(observed, "int64")
