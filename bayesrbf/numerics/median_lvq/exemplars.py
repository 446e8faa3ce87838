r"""What exemplars say about rows, and what a search for exemplars asks of an objective.

Every candidate of a prototype is judged in one matrix expression: with the prototype taken
out, a row keeps what the others give it, and each candidate adds its own term. Rows go
through in blocks, so that beside the matrix of dissimilarities only some ``BLOCK`` numbers
are held at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Float, Int, Real
from scipy.special import softmax

from bayesrbf.exemplars import Dissimilarities, Prototypes

BLOCK: Final = 2**15
"""Entries of a block: what stays in a core's own cache."""

LOWEST: Final = -1e300
"""Log kernels are held above this, so that their differences stay finite."""

Exemplars = Int[np.ndarray, " prototype"]
Scores = Callable[[Exemplars, int], Float[np.ndarray, " candidate"]]
"""Exemplars and a prototype -> value if that prototype were each candidate of its class."""


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


def blocks(
    rows: Dissimilarities, label: int
) -> Iterator[tuple[slice, Int[np.ndarray, " row"], Real[np.ndarray, "row candidate"]]]:
    """Labelled rows and their dissimilarities to the candidates of a class.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    label : int
        The class.

    Yields
    ------
    at : slice
        Where the block lies among the labelled rows.
    part : ndarray of shape (n_block,)
        Its rows.
    columns : ndarray of shape (n_block, n_candidates)
        Their dissimilarities to the candidates.
    """
    candidates = rows.candidates[label]
    height = max(1, BLOCK // candidates.size)
    for start in range(0, rows.labelled.size, height):
        at = slice(start, start + height)
        part = rows.labelled[at]
        yield at, part, rows.values[part[:, None], candidates]


@runtime_checkable
class Objective(Protocol):
    """What a search for exemplars maximises."""

    @property
    def rows(self) -> Dissimilarities:
        """Training rows."""

    @property
    def prototypes(self) -> Prototypes:
        """Class of every prototype."""

    @property
    def sigma(self) -> float | None:
        """Width of the kernel, where there is one."""

    def value(self, exemplars: Exemplars) -> float:
        """The objective.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        float
            Its value.
        """

    def scores(self, exemplars: Exemplars, prototype: int) -> Float[np.ndarray, " candidate"]:
        """The objective, were a prototype each of the candidates of its class.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.
        prototype : int
            The prototype that would move.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Values of the objective.
        """

    def bound(self, exemplars: Exemplars) -> Scores:
        """Scores of the bound that the generalised EM raises in place of the objective.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is: where the bound is taken.

        Returns
        -------
        callable
            Exemplars and a prototype -> bound for each candidate, up to a constant.
            Where it rises, the objective rises.
        """

    def refit(self, exemplars: Exemplars) -> Self:
        """The same objective at the best width for these exemplars, where it is free.

        Parameters
        ----------
        exemplars : ndarray of shape (n_prototypes,)
            Training row that each prototype is.

        Returns
        -------
        Objective
            Its value is no lower.
        """
