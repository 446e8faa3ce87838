"""What inference asks of a model: a log density over unconstrained coordinates."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.specification import Variable


@runtime_checkable
class LogPosterior(Protocol):
    r"""A log posterior density over the graph's own unconstrained coordinates.

    A family plugs into every method by writing this and nothing else. With
    theta the unconstrained coordinates and v(theta) the constrained values,

    .. math:: \log p(\theta) = \log p(v(\theta), x, y) + \log |\det dv / d\theta|.
    """

    @property
    def dimension(self) -> int:
        """Number of unconstrained coordinates."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Variables that are functions of the free ones."""

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every component; those of one class are exchangeable."""

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Rough size of one unit of each coordinate."""

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density and its gradient.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether the log determinant of the transforms is in it.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            Its gradient in the coordinates.
        """

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of every row.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(x_n, y_n)`` in nats.
        """

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log joint of rows and components, by which components are told apart.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            ``log p(x_n, k)`` up to a constant per row, of the same rows at every call:
            all of the table or some hundreds of it.
        """

    def constrained(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the free variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            Values by name.
        """

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the deterministic variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            Values by name.
        """

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        order : ndarray of shape (n_components,)
            Component k of the result is component ``order[k]``.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates of the same density, components reordered.
        """


@runtime_checkable
class MarkovKernel(Protocol):
    """A Markov kernel that leaves a posterior as it is."""

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Move to the next point of a chain.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        rng : numpy.random.Generator
            Source of randomness; several threads may sweep at once.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates; distributed as the posterior if theta was.
        """

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> MarkovKernel:
        """Learn from draws, which are then thrown away.

        Parameters
        ----------
        thetas : ndarray of shape (n_draws, dimension)
            Unconstrained coordinates, of all chains.

        Returns
        -------
        MarkovKernel
            A kernel of the same posterior; this one, if there is nothing to learn.
        """


@runtime_checkable
class SweptPosterior(LogPosterior, Protocol):
    """A log posterior that brings a Markov kernel of its own, such as a Gibbs sweep."""

    def markov_kernel(self) -> MarkovKernel:
        """Prepare the kernel.

        Returns
        -------
        MarkovKernel
            The kernel, before any tuning.

        Raises
        ------
        ValueError
            If the rows cannot be swept, such as rows of fractional weight.
        """
