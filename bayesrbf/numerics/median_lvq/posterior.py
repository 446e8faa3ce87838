"""The posterior of exemplars and width, over the coordinates of the declared graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf import names
from bayesrbf.exemplars import Dissimilarities, MedianLVQParameters, Prototypes, Sigma, SigmaPrior
from bayesrbf.numerics.median_lvq.exemplars import log_kernel
from bayesrbf.numerics.median_lvq.likelihood import ConditionalLikelihood
from bayesrbf.numerics.median_lvq.objective import Exemplars
from bayesrbf.numerics.median_lvq.sampling import ExemplarSweep
from bayesrbf.specification import Variable

COMPARED: Final = 200
"""Training rows, evenly spread, by which prototypes are told apart."""


@dataclass(frozen=True)
class MedianLVQLogPosterior:
    r"""Log posterior of exemplars and width given the labels.

    .. math:: \log p(\theta, \sigma \mid y, d) = \sum_n v_n \log p(y_n \mid x_n)
        - \sum_j \log N_{c_j} + \log p(\sigma) + \text{const}

    Coordinates are the rows of the exemplars, which are integers, and log sigma
    where it is free. The density is 0 where an exemplar is no candidate of its class.

    Attributes
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior or float
        The width: its prior where it is free, or its value.

    References
    ----------
    Nebel, Hammer, Villmann (2014), Supervised generative models for learning
    dissimilarity data, ESANN, section 3, for the likelihood.
    """

    rows: Dissimilarities
    prototypes: Prototypes
    sigma: Sigma

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""
        exemplars = Variable(
            names.EXEMPLARS, (names.PROTOTYPE,), (self.prototypes.number,), "identity"
        )
        free = isinstance(self.sigma, SigmaPrior)
        return (exemplars, Variable(names.SIGMA, (), (), "log")) if free else (exemplars,)

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """There are none."""
        return ()

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return sum(variable.size for variable in self.variables)

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every prototype; those of one class are exchangeable."""
        return np.asarray(self.prototypes.classes)

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Rough size of one unit of log sigma; a row has no neighbours to step to."""
        scales = np.zeros(self.dimension)
        if isinstance(self.sigma, SigmaPrior):
            scales[-1] = self.sigma.spread
        return scales

    def markov_kernel(self) -> ExemplarSweep:
        """Prepare Gibbs sweeps, flattened at first so that chains start far apart.

        Returns
        -------
        ExemplarSweep
            The kernel, before any tuning.
        """
        return ExemplarSweep(self.rows, self.prototypes, self.sigma).flattened()

    def pack(self, parameters: MedianLVQParameters) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point.

        Parameters
        ----------
        parameters : MedianLVQParameters
            Exemplars and width.

        Returns
        -------
        ndarray of shape (dimension,)
            Rows of the exemplars, and log sigma where it is free.
        """
        theta = parameters.exemplars.astype(np.float64)
        if not isinstance(self.sigma, SigmaPrior) or parameters.sigma is None:
            return theta
        return np.append(theta, np.log(parameters.sigma))

    def unpack(self, theta: Float[np.ndarray, " coordinate"]) -> MedianLVQParameters:
        """The inverse of :meth:`pack`.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.

        Returns
        -------
        MedianLVQParameters
            Exemplars and width.
        """
        return MedianLVQParameters(self.exemplars(theta), self.width(theta))

    def exemplars(self, theta: Float[np.ndarray, " coordinate"]) -> Exemplars:
        """Rows of the exemplars at a point.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_prototypes,)
            Training row that each prototype is.
        """
        return np.rint(theta[: self.prototypes.number]).astype(np.intp)

    def width(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        """Width of the kernel at a point.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.

        Returns
        -------
        float
            sigma.
        """
        return float(np.exp(theta[-1])) if isinstance(self.sigma, SigmaPrior) else self.sigma

    def likelihood(self, sigma: float) -> ConditionalLikelihood:
        """The likelihood (and prior of sigma) as an objective.

        Parameters
        ----------
        sigma : float
            Width.

        Returns
        -------
        ConditionalLikelihood
            Its scores are the log full conditionals of exemplars.
        """
        prior = self.sigma if isinstance(self.sigma, SigmaPrior) else None
        return ConditionalLikelihood(self.rows, self.prototypes, sigma, prior)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density, and its gradient along what is continuous.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.
        jacobian : bool
            Whether sigma's density is that of log sigma.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            0 along exemplars, which have no neighbours; the slope along log sigma.
        """
        exemplars, gradient = self.exemplars(theta), np.zeros(self.dimension)
        objective = self.likelihood(self.width(theta))
        value = objective.value(exemplars) + self._log_uniform(exemplars)
        if isinstance(self.sigma, SigmaPrior):
            gradient[-1] = objective.slope(exemplars) + jacobian
            value += jacobian * theta[-1]
        return float(value), gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of every row's label.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(y_n | x_n)`` in nats; 0 where the label is hidden.
        """
        result = np.zeros(self.rows.n_obs)
        objective = self.likelihood(self.width(theta))
        result[self.rows.labelled] = objective.pointwise(self.exemplars(theta))
        return result

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log kernel of some training rows and every prototype.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_rows, n_prototypes)
            ``-d(x_n, theta_j) / sigma**2``, of the same rows at every call.
        """
        n_obs = self.rows.n_obs
        some = np.unique(np.linspace(0, n_obs - 1, min(n_obs, COMPARED)).astype(int))
        columns = self.rows.values[some[:, None], self.exemplars(theta)]
        return log_kernel(columns, self.width(theta))

    def constrained(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Real[np.ndarray, "*_"]]:
        """Values of the free variables at one point or many.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            ``exemplars``, integers, and ``sigma`` where it is free.
        """
        exemplars = np.rint(thetas[..., : self.prototypes.number]).astype(np.int64)
        values: dict[str, np.ndarray] = {names.EXEMPLARS: exemplars}
        if isinstance(self.sigma, SigmaPrior):
            values[names.SIGMA] = np.exp(thetas[..., -1])
        return values

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the deterministic variables: there are none.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Coordinates.

        Returns
        -------
        dict
            Empty.
        """
        return {}

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder prototypes within their classes.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates.
        order : ndarray of shape (n_prototypes,)
            Prototype k of the result is prototype ``order[k]``.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates of the same density.
        """
        return np.concatenate([theta[order], theta[order.size :]])

    def _log_uniform(self, exemplars: Exemplars) -> float:
        """Log prior of exemplars: uniform over the candidates of their classes."""
        total = 0.0
        for exemplar, label in zip(exemplars, self.prototypes.classes, strict=True):
            candidates = self.rows.candidates[label]
            total -= np.log(candidates.size) if exemplar in candidates else np.inf
        return total
