"""The elastic net's density: Laplace times normal, whole and in halves."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

FAR_EDGE = np.float64(30)
"""Standard deviations from which a normal's tail is taken for exponential."""


def elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    r"""Independent variables under the elastic net's density, not yet in a model.

    .. math:: p(w) = \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2) / Z, \quad
        Z = \sqrt{2 \pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2})

    Parameters
    ----------
    l1 : float
        Rate of the Laplace factor, at least 0.
    l2 : float
        Precision of the normal factor, at least 0; one of the two is positive.
    shape : tuple of int
        Shape of the variables.

    Returns
    -------
    TensorVariable
        The variables; Laplace or normal where one factor is absent.
    """
    if l2 == 0:
        return pm.Laplace.dist(np.float64(0), 1 / l1, shape=shape)
    if l1 == 0:
        return pm.Normal.dist(np.float64(0), l2**-0.5, shape=shape)
    return pm.CustomDist.dist(
        l1, l2, logp=_logp, dist=_draw, class_name="ElasticNet", shape=shape, ndim_supp=0
    )


def half_elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    """Independent halves of such variables: the same density, from 0 upwards.

    Parameters
    ----------
    l1 : float
        Rate, positive.
    l2 : float
        Precision, at least 0.
    shape : tuple of int
        Shape of the variables.

    Returns
    -------
    TensorVariable
        Exponential where ``l2`` is 0, else a truncated normal.
    """
    if l2 == 0:
        return pm.Exponential.dist(lam=l1, shape=shape)
    return pm.TruncatedNormal.dist(-l1 / l2, l2**-0.5, lower=np.float64(0), shape=shape)


def _logp(value: TensorVariable, l1: TensorVariable, l2: TensorVariable) -> TensorVariable:
    """Log density of every variable."""
    constant = 0.5 * pt.log(2 * np.pi / l2) + pt.log(pt.erfcx(l1 / pt.sqrt(2 * l2)))
    return -l1 * abs(value) - 0.5 * l2 * value**2 - constant


def _draw(l1: TensorVariable, l2: TensorVariable, size: Variable) -> TensorVariable:
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
