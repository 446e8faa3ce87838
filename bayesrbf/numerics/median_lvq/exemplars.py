"""What exemplars say about rows: kernels, shares and margins."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Real
from scipy.special import softmax

from bayesrbf.exemplars import Prototypes

LOWEST: Final = -1e300
"""Log kernels are held above this, so that their differences stay finite."""


def log_kernel(values: Real[np.ndarray, "*shape"], sigma: float) -> Float[np.ndarray, "*shape"]:
    r"""Log of the kernel, :math:`-d / \sigma^2`.

    Parameters
    ----------
    values : ndarray
        Dissimilarities d.
    sigma : float
        Width.

    Returns
    -------
    ndarray of the same shape
        Float64, at least ``LOWEST``.

    Examples
    --------
    >>> log_kernel(np.array([0.0, 2.0]), 2.0)
    array([-0. , -0.5])
    """
    logs = np.multiply(values, -(sigma**-2.0), dtype=np.float64)
    return np.maximum(logs, LOWEST, out=logs)


def kernel(values: Real[np.ndarray, "*shape"], sigma: float) -> Float[np.ndarray, "*shape"]:
    r"""Kernel, :math:`e^{-d / \sigma^2}`.

    Parameters
    ----------
    values : ndarray
        Dissimilarities d.
    sigma : float
        Width.

    Returns
    -------
    ndarray of the same shape
        Float64, from 0 to 1.

    Examples
    --------
    >>> kernel(np.array([0.0, np.log(2.0)]), 1.0)
    array([1. , 0.5])
    """
    logs = log_kernel(values, sigma)
    return np.exp(logs, out=logs)


def class_log_joint(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes, sigma: float
) -> Float[np.ndarray, "obs label"]:
    r"""Log of the summed kernels of each class.

    .. math:: \log \sum_{j \in c} e^{-d(x, \theta_j) / \sigma^2}

    Parameters
    ----------
    columns : ndarray of shape (n_obs, n_prototypes)
        Dissimilarities of rows to the exemplars.
    prototypes : Prototypes
        Class of every prototype.
    sigma : float
        Width.

    Returns
    -------
    ndarray of shape (n_obs, n_classes)
        Its softmax over the classes is p(c | x).

    References
    ----------
    Seo, Obermayer (2003), Soft learning vector quantization, Neural Computation 15,
    section 3.
    """
    starts = [part.start for part in prototypes.class_slices]
    return np.logaddexp.reduceat(log_kernel(columns, sigma), starts, axis=1)


def responsibilities(
    columns: Real[np.ndarray, "obs prototype"], sigma: float
) -> Float[np.ndarray, "obs prototype"]:
    r"""Share of each exemplar in what a row's probabilities rest on.

    .. math:: p(j | x) = e^{-d(x, \theta_j) / \sigma^2} / \sum_k e^{-d(x, \theta_k) / \sigma^2}

    Parameters
    ----------
    columns : ndarray of shape (n_obs, n_prototypes)
        Dissimilarities of rows to the exemplars.
    sigma : float
        Width.

    Returns
    -------
    ndarray of shape (n_obs, n_prototypes)
        Rows sum to one; the sum over a class's prototypes is p(c | x).

    Examples
    --------
    >>> responsibilities(np.array([[0.0, np.log(3.0)]]), 1.0)
    array([[0.75, 0.25]])
    """
    return softmax(log_kernel(columns, sigma), axis=1)


def class_margins(
    columns: Real[np.ndarray, "obs prototype"], prototypes: Prototypes
) -> Float[np.ndarray, "obs label"]:
    r"""Sato-Yamada margin of each class, were it the label.

    .. math:: \frac{d_{\neg c}(x) - d_c(x)}{d_{\neg c}(x) + d_c(x)}

    with :math:`d_c` the dissimilarity to the nearest exemplar of class c and
    :math:`d_{\neg c}` that to the nearest of any other class.

    Parameters
    ----------
    columns : ndarray of shape (n_obs, n_prototypes)
        Dissimilarities of rows to the exemplars.
    prototypes : Prototypes
        Class of every prototype.

    Returns
    -------
    ndarray of shape (n_obs, n_classes)
        From -1 to 1; 0 where both are 0, or where there is no other class.
    """
    columns = columns.astype(np.float64)
    margins = np.empty((len(columns), len(prototypes.class_slices)))
    for c, part in enumerate(prototypes.class_slices):
        near = columns[:, part].min(axis=1)
        far = np.delete(columns, part, axis=1).min(axis=1, initial=np.inf)
        margins[:, c] = 2 * far_share(near, far) - 1
    return margins


def far_share(
    near: Float[np.ndarray, "*shape"], far: Float[np.ndarray, "*#shape"]
) -> Float[np.ndarray, "*shape"]:
    r"""Share of the other classes' dissimilarity, :math:`d_- / (d_+ + d_-)`.

    Parameters
    ----------
    near : ndarray
        Dissimilarity to the nearest exemplar of the own class.
    far : ndarray
        Dissimilarity to the nearest exemplar of any other class; infinite where
        there is no other.

    Returns
    -------
    ndarray
        From 0 to 1; 1/2 where both are 0, or where there is no other class.

    Examples
    --------
    >>> far_share(np.array([1.0, 0.0, 2.0]), np.array([3.0, 0.0, np.inf]))
    array([0.75, 0.5 , 0.5 ])
    """
    with np.errstate(invalid="ignore"):
        share = far / (near + far)
    return np.where(np.isnan(share), 0.5, share)
