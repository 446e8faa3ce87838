"""Log posterior of the weights, in the unconstrained coordinates of the declared graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayesrbf import names
from bayesrbf.numerics import coordinates
from bayesrbf.numerics.sdgm.basis import features, standard_points
from bayesrbf.numerics.sdgm.curvature import complete_curvature, hidden_information
from bayesrbf.numerics.sdgm.likelihood import (
    Designs,
    Expectation,
    Labels,
    expect,
    gradient,
    to_logits,
)
from bayesrbf.numerics.sdgm.prediction import class_log_probabilities
from bayesrbf.numerics.sdgm.prior import (
    deterministic_variables,
    free_variables,
    log_prior,
    starting_values,
    weights_of,
)
from bayesrbf.parameters import Standardisation
from bayesrbf.results import ClassPrediction
from bayesrbf.sdgm_parameters import Basis, CompletedRows, SDGMSpecification
from bayesrbf.specification import Variable


class SDGMLogPosterior:
    r"""Log posterior of the weights given labelled rows.

    .. math:: \log p(w, \alpha | y, x) = \sum_n v_n \log p(y_n | x_n, w)
        + \log p(w | \alpha) + \log p(\alpha) + \text{const}

    Component probabilities are constants; so are the precisions, unless the
    specification has a prior for them.

    Parameters
    ----------
    rows : CompletedRows
        Labelled rows.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    specification : SDGMSpecification
        Components, weights, precisions.
    """

    def __init__(
        self,
        rows: CompletedRows,
        basis: Basis,
        units: Standardisation,
        specification: SDGMSpecification,
    ) -> None:
        self.specification = specification
        self.variables: tuple[Variable, ...] = free_variables(specification)
        self.deterministic_variables: tuple[Variable, ...] = deterministic_variables(specification)
        self.dimension = sum(variable.size for variable in self.variables)
        self.scales: Float[np.ndarray, " coordinate"] = np.ones(self.dimension)
        self._basis, self._units = basis, units
        self._log_proportions = np.log(specification.proportions)
        self._designs = self._features(rows.points)
        self._labels = Labels(
            np.repeat(rows.allowed[:, specification.component_class], rows.sizes, axis=0),
            rows.starts,
            rows.weights,
        )

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Components of one number are exchangeable: those of a class, if nothing tells them apart.

        Constant precisions do, and every component has a number of its own.
        """
        if isinstance(self.specification.precisions, np.ndarray):
            return np.arange(self.specification.n_components)
        return self.specification.component_class

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            Its gradient in the coordinates.
        """
        values = self.constrained(theta)
        expectation = self._expect(weights_of(self.specification, values))
        pull = gradient(self._designs, expectation.slope)
        prior, slopes = log_prior(self.specification, values, pull)
        value = expectation.log_likelihood + prior
        slope = np.concatenate([slopes[v.name].reshape(-1) for v in self.variables])
        if jacobian:
            extra, extra_slope = coordinates.log_jacobian(self.variables, values)
            value, slope = value + extra, slope + extra_slope
        return value, slope

    def negative_hessian(
        self, weights: Float[np.ndarray, " weight"]
    ) -> Float[np.ndarray, "weight weight"]:
        """Negative Hessian of the log likelihood in the weights.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            w.

        Returns
        -------
        ndarray of shape (n_weights, n_weights)
            Symmetric, not always positive definite.
        """
        expectation = self._expect(weights)
        complete = complete_curvature(self._designs, self._labels, expectation)
        return complete - hidden_information(self._designs, self._labels, expectation)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of every row.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_rows,)
            Log probability of what is known of the label, in nats.
        """
        return self._expect(self._weights(theta)).pointwise

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Logits of the components at the first point of every row.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            ``log p(c, m | x_n)`` up to a constant per row.
        """
        weights = self._weights(theta)
        logits = to_logits(self._designs, weights, self._log_proportions)
        return logits[self._labels.starts]

    def predictor(
        self,
        points: Float[np.ndarray, "point coordinate"],
        starts: Int[np.ndarray, " obs"],
        log_density: Float[np.ndarray, " obs"],
        temperature: float = 1.0,
    ) -> Callable[[Float[np.ndarray, " coordinate"]], ClassPrediction]:
        """Prepare new rows for predictions at many points of the posterior.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_coordinates)
            Completions of the rows, in the user's units.
        starts : ndarray of shape (n_obs,)
            First point of every row.
        log_density : ndarray of shape (n_obs,)
            ``log p(x_o)`` of the rows.
        temperature : float
            What log probabilities will be multiplied by: completions are calibrated one by one.

        Returns
        -------
        callable
            Maps coordinates to class probabilities of shape (n_obs, n_classes), of which
            the temperature makes the mean of calibrated ones, and the density.
        """
        designs = self._features(points)

        def predict(theta: np.ndarray) -> ClassPrediction:
            weights = self._weights(theta)
            logits = to_logits(designs, weights, self._log_proportions)
            by_class = class_log_probabilities(logits, self.specification.component_class)
            calibrated = log_softmax(temperature * by_class, axis=1)
            summed = np.logaddexp.reduceat(calibrated, starts, axis=0)
            return ClassPrediction(log_softmax(summed / temperature, axis=1), log_density)

        return predict

    def constrained(self, thetas: Float[np.ndarray, "*batch coordinate"]) -> dict[str, np.ndarray]:
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
        return coordinates.to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of what is reported beside the free variables.

        Parameters
        ----------
        thetas : ndarray of shape (..., dimension)
            Unconstrained coordinates.

        Returns
        -------
        dict of str to ndarray of shape (..., *variable.shape)
            The weights, where they are not free themselves.
        """
        if not self.deterministic_variables:
            return {}
        return {names.COEFFICIENTS: weights_of(self.specification, self.constrained(thetas))}

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
        members = [np.flatnonzero(self.specification.component == k) for k in order]
        moved = np.concatenate(members)
        result = theta.copy()
        for variable, place in coordinates.slices(self.variables):
            if variable.dims:
                result[place] = theta[place][moved]
        return result

    def _features(self, points: np.ndarray) -> Designs:
        """Features of every component's weights."""
        phi = features(self._basis, standard_points(points, self._units))
        component, feature = self.specification.component, self.specification.feature
        return tuple(
            phi[:, feature[component == k]] for k in range(self.specification.n_components)
        )

    def _weights(self, theta: np.ndarray) -> np.ndarray:
        """Weights at a point."""
        return weights_of(self.specification, self.constrained(theta))

    def _expect(self, weights: np.ndarray) -> Expectation:
        """E-step at given weights."""
        logits = to_logits(self._designs, weights, self._log_proportions)
        return expect(self._labels, logits)

    def pack(self, weights: Float[np.ndarray, " weight"]) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of given weights, precisions at what the weights suggest.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            w.

        Returns
        -------
        ndarray of shape (dimension,)
            Where precisions are learned: their mean given the weights under a
            Gamma prior; scales as large as the weights under a horseshoe.
        """
        prior = self.specification.precisions
        if isinstance(prior, np.ndarray):
            return weights
        return coordinates.to_unconstrained(self.variables, starting_values(prior, weights))
