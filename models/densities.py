"""Log densities and draws that the graphs share, in PyTensor.

Nothing here knows priors or names: symbolic arrays in, symbolic arrays out. Leading axes broadcast,
so that one function serves a row given its component and a row against all components. A missing
cell is zero-filled and its entry of the mask is 0; it is integrated out exactly, never imputed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import solve_triangular

LOG_TWO_PI = np.log(2 * np.pi)

FAR_EDGE = np.float64(30)
"""Standard deviations from which a normal's tail is taken for exponential."""


def observed_cholesky(covariances: TensorVariable, observed: TensorVariable) -> TensorVariable:
    r"""Cholesky factor of the covariance of the observed cells, padded by the identity.

    .. math:: S = \Sigma \circ m m^\top + \mathrm{diag}(1 - m), \qquad S = C C^\top

    Observed and missing cells are uncorrelated in S and missing ones have
    variance one, so :math:`|S| = |\Sigma_{oo}|`.
    """
    missing = pt.eye(observed.shape[-1]) * (1 - observed)[..., None, :]
    return pt.linalg.cholesky(
        covariances * observed[..., :, None] * observed[..., None, :] + missing
    )


def normal_logp(
    real: TensorVariable, observed: TensorVariable, means: TensorVariable, cholesky: TensorVariable
) -> TensorVariable:
    r"""Log density of the observed cells of a multivariate normal; ``cholesky`` is C.

    .. math:: \log N(x_o; \mu_o, \Sigma_{oo})
        = -\tfrac12 |C^{-1} e|^2 - \sum_i \log C_{ii} - \tfrac{|o|}{2} \log 2\pi,
        \qquad e = (x - \mu) \circ m
    """
    whitened = solve_triangular(cholesky, (real - means) * observed, lower=True, b_ndim=1)
    log_determinant = pt.log(pt.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * ((whitened**2).sum(-1) + observed.sum(-1) * LOG_TWO_PI) - log_determinant


def independent_normal_logp(
    real: TensorVariable, observed: TensorVariable, means: TensorVariable, variances: TensorVariable
) -> TensorVariable:
    r"""Log density of the observed cells of independent normals.

    .. math:: \sum_i m_i \log N(x_i; \mu_i, \sigma_i^2)
    """
    log_density = (real - means) ** 2 / variances + pt.log(variances) + LOG_TWO_PI
    return -0.5 * (observed * log_density).sum(-1)


def category_logp(
    code: TensorVariable, observed: TensorVariable, probabilities: TensorVariable
) -> TensorVariable:
    r"""Log probability of a category, 0 where it is missing.

    .. math:: m \log \theta_{x}
    """
    level = pt.arange(probabilities.shape[-1])
    chosen = pt.eq(level, code[..., None]) * observed[..., None] > 0
    return pt.log(pt.switch(chosen, probabilities, 0).sum(-1) + (1 - observed))


def normal_draw(means: TensorVariable, covariances: TensorVariable) -> TensorVariable:
    r"""One draw a row of multivariate normals.

    .. math:: x = \mu + C z, \qquad z_i \sim N(0, 1), \qquad C C^\top = \Sigma
    """
    noise = pm.Normal.dist(shape=means.shape)
    return means + (pt.linalg.cholesky(covariances) * noise[:, None, :]).sum(-1)


def masked_category_draw(
    probabilities: TensorVariable, observed: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw categories given the rows' components; missing ones come out as 0."""
    return pm.Categorical.dist(p=probabilities) * pt.cast(observed, "int64")


def label_logp(
    value: TensorVariable, logits: TensorVariable, row_weight: TensorVariable
) -> TensorVariable:
    """Weighted log probability of every label in nats; 0 where it is hidden (code -1).

    The logits are log probabilities up to a constant a row.
    """
    log_p = logits - pm.math.logsumexp(logits, axis=1, keepdims=True)
    own = log_p[pt.arange(log_p.shape[0]), value]
    return pt.switch(pt.ge(value, 0), row_weight * own, 0.0)


def label_draw(logits: TensorVariable, row_weight: TensorVariable, size: Any) -> TensorVariable:
    """A label for every row; a weight has no generative story, and PyMC's size is not needed."""
    return pm.Categorical.dist(logit_p=logits)


def elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    r"""Independent variables under the elastic net's density, not yet in a model.

    .. math:: p(w) = \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2) / Z, \quad
        Z = \sqrt{2 \pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2})

    They are Laplace or normal where one factor is absent; one of the two must be there.
    """
    if l2 == 0:
        return pm.Laplace.dist(np.float64(0), 1 / l1, shape=shape)
    if l1 == 0:
        return pm.Normal.dist(np.float64(0), l2**-0.5, shape=shape)
    return pm.CustomDist.dist(
        l1,
        l2,
        logp=_elastic_net_logp,
        dist=_elastic_net_draw,
        class_name="ElasticNet",
        shape=shape,
        ndim_supp=0,
    )


def half_elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    """Independent halves of such variables: the same density, from 0 upwards; ``l1`` is positive.

    They are exponential where ``l2`` is 0, else a truncated normal.
    """
    if l2 == 0:
        return pm.Exponential.dist(lam=l1, shape=shape)
    return pm.TruncatedNormal.dist(-l1 / l2, l2**-0.5, lower=np.float64(0), shape=shape)


def _elastic_net_logp(
    value: TensorVariable, l1: TensorVariable, l2: TensorVariable
) -> TensorVariable:
    """Log density of every variable."""
    constant = 0.5 * pt.log(2 * np.pi / l2) + pt.log(pt.erfcx(l1 / pt.sqrt(2 * l2)))
    return -l1 * abs(value) - 0.5 * l2 * value**2 - constant


def _elastic_net_draw(l1: TensorVariable, l2: TensorVariable, size: Variable) -> TensorVariable:
    """A size by inverting its distribution, and a sign.

    The size is a normal beyond ``edge``, moved there to 0; far out, where its tail leaves
    the range of floats, it is exponential.
    """
    uniform = pm.Uniform.dist(np.float64(0), np.float64(1), size=size)
    sign = 2 * pm.Bernoulli.dist(p=np.float64(0.5), size=size) - 1
    edge = l1 / pt.sqrt(l2)
    near = pt.minimum(edge, FAR_EDGE)
    beyond = np.sqrt(2) * pt.erfcinv(uniform * pt.erfc(near / np.sqrt(2))) - near
    return sign * pt.switch(edge < FAR_EDGE, beyond / pt.sqrt(l2), -pt.log(uniform) / l1)
