"""What a log posterior may offer beyond the protocol: the same numbers sooner."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.draws import one_after_another
from bayesrbf.inference.protocol import LogPosterior


@runtime_checkable
class PreparablePosterior(LogPosterior, Protocol):
    """A log posterior that is quicker once it is told that many points will be asked for."""

    def prepared_for_many(self) -> LogPosterior:
        """Prepare for thousands of points.

        Returns
        -------
        LogPosterior
            The same density but for rounding.
        """


@runtime_checkable
class BatchedPosterior(LogPosterior, Protocol):
    """A log posterior that evaluates many points in one call."""

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log densities with Jacobian, and their gradients.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates, anywhere.

        Returns
        -------
        values : ndarray of shape (n_points,)
            What ``value_and_gradient`` gives, NaN or infinite where there is no density.
        gradients : ndarray of shape (n_points, dimension)
            Their gradients.
        """

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """The same log densities alone.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates, anywhere.

        Returns
        -------
        ndarray of shape (n_points,)
            Equal to the values of ``values_and_gradients`` but for rounding.
        """


@runtime_checkable
class ComparedPosterior(LogPosterior, Protocol):
    """A log posterior that tells components apart at many points in one call."""

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """What ``component_log_joint`` gives at every point.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_points, n_rows, n_components)
            ``log p(x_n, k)`` up to a constant per row.
        """


@runtime_checkable
class ManyLikelihoods(LogPosterior, Protocol):
    """A log posterior that gives the rows' log likelihood at many points in one call."""

    def log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """What ``pointwise`` gives at every point.

        Parameters
        ----------
        thetas : ndarray of shape (n_points, dimension)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_points, n_obs)
            ``log p(x_n, y_n)`` in nats, not weighted.
        """


def log_likelihoods(
    log_posterior: LogPosterior, thetas: Float[np.ndarray, "*draws coordinate"]
) -> Float[np.ndarray, "*draws obs"]:
    """Unweighted log likelihood of every row under every draw.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density of the rows; in one call where it can.
    thetas : ndarray of shape (..., dimension)
        Unconstrained coordinates, of one draw or more.

    Returns
    -------
    ndarray of shape (..., n_obs)
        ``log p(x_n, y_n)`` in nats.
    """
    flat = one_after_another(thetas)
    if isinstance(log_posterior, ManyLikelihoods):
        found = log_posterior.log_likelihoods(flat)
    else:
        found = np.stack([log_posterior.pointwise(theta) for theta in flat])
    return found.reshape(*thetas.shape[:-1], -1)


def for_many(log_posterior: LogPosterior) -> LogPosterior:
    """Prepare a density for thousands of points, where it knows how.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density.

    Returns
    -------
    LogPosterior
        The same density but for rounding.
    """
    if isinstance(log_posterior, PreparablePosterior):
        return log_posterior.prepared_for_many()
    return log_posterior
