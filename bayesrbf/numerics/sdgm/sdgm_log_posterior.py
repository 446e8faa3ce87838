"""Log posterior of the weights, in the unconstrained coordinates of the declared graph."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.log_posterior import LogPosterior, OneByOne, Predictor
from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.numerics.sdgm.label_likelihood import (
    Designs,
    LabelExpectation,
    Labels,
    class_log_probabilities,
    expect,
    to_logits,
    weight_gradient,
)
from bayesrbf.numerics.sdgm.sdgm_features import standard_points
from bayesrbf.numerics.sdgm.sdgm_prior import weight_prior
from bayesrbf.records import names
from bayesrbf.records.mixture import Standardisation
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.sdgm import Basis, CompletedRows, SDGMSpecification
from bayesrbf.records.specification import Variable


class SDGMLogPosterior(LogPosterior):
    r"""Log posterior of the weights given labelled rows.

    .. math:: \log p(w, \alpha | y, x) = \sum_n v_n \log p(y_n | x_n, w)
        + \log p(w | \alpha) + \log p(\alpha) + \text{const}

    Component probabilities are constants; so are the precisions, unless the specification has a
    prior for them.
    """

    def __init__(
        self,
        rows: CompletedRows,
        basis: Basis,
        units: Standardisation,
        specification: SDGMSpecification,
    ) -> None:
        self.specification = specification
        self._prior = weight_prior(specification)
        self._basis, self._units = basis, units
        self._log_proportions = np.log(specification.proportions)
        self._designs = self._features(rows.points)
        self._labels = Labels(
            np.repeat(rows.allowed[:, specification.component_class], rows.sizes, axis=0),
            rows.starts,
            rows.weights,
        )

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Weights, and what their precisions come from where these are learned."""
        return self._prior.variables

    @cached_property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """The weights, where they are a function of the free variables."""
        return self._prior.deterministic_variables

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Components with the same number are exchangeable.

        Those of a class are, unless constant precisions distinguish them: then every component has
        a number of its own.
        """
        if isinstance(self.specification.precisions, np.ndarray):
            return np.arange(self.specification.n_components)
        return self.specification.component_class

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density in nats and its gradient, equal to the declared graph's.

        ``jacobian`` adds the log determinant of the transforms.
        """
        values = self.constrained(theta)
        expectation = self._expect(self._prior.weights(values))
        likelihood_gradient = weight_gradient(self._designs, expectation.logit_gradient)
        prior, gradients = self._prior.log_density(values, likelihood_gradient)
        value = expectation.log_likelihood + prior
        gradient = np.concatenate([gradients[v.name].reshape(-1) for v in self.variables])
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            value, gradient = value + extra, gradient + extra_gradient
        return value, gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability of every row's known label, in nats."""
        return self._expect(self._weights(theta)).pointwise

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Logits of the components at the first point of every row.

        They are ``log p(c, m | x_n)`` up to a constant per row.
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
    ) -> Predictor:
        """Prepare new rows for predictions at many points of the posterior.

        ``points`` are completions of the rows in the user's units, ``starts`` the first of
        every row, ``log_density`` is ``log p(x_o)``. Class log probabilities will be multiplied
        by ``temperature`` later: that gives the mean of the completions' calibrated ones.
        """
        designs = self._features(points)

        def predict(theta: np.ndarray) -> ClassPrediction:
            weights = self._weights(theta)
            logits = to_logits(designs, weights, self._log_proportions)
            by_class = class_log_probabilities(logits, self.specification.component_class)
            calibrated = log_softmax(temperature * by_class, axis=1)
            summed = np.logaddexp.reduceat(calibrated, starts, axis=0)
            return ClassPrediction(log_softmax(summed / temperature, axis=1), log_density)

        return OneByOne(predict)

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of the deterministic variables by name, at one point or many."""
        if not self.deterministic_variables:
            return {}
        return {names.COEFFICIENTS: self._prior.weights(self.constrained(thetas))}

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: component k of the result is ``order[k]``."""
        members = [np.flatnonzero(self.specification.component == k) for k in order]
        moved = np.concatenate(members)
        result = theta.copy()
        for variable, place in coordinates.slices(self.variables):
            if variable.dims:
                result[place] = theta[place][moved]
        return result

    def _features(self, points: np.ndarray) -> Designs:
        """Features of every component's weights."""
        phi = self._basis.at(standard_points(points, self._units))
        component, feature = self.specification.component, self.specification.feature
        return tuple(
            phi[:, feature[component == k]] for k in range(self.specification.n_components)
        )

    def _weights(self, theta: np.ndarray) -> np.ndarray:
        """Weights at a point."""
        return self._prior.weights(self.constrained(theta))

    def _expect(self, weights: np.ndarray) -> LabelExpectation:
        """E-step at given weights."""
        logits = to_logits(self._designs, weights, self._log_proportions)
        return expect(self._labels, logits)

    def pack(self, weights: Float[np.ndarray, " weight"]) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of given weights, with precisions that suit them.

        Where precisions are learned, they are at their mean given the weights under a Gamma
        prior, and scales are as large as the weights under a horseshoe.
        """
        return coordinates.to_unconstrained(self.variables, self._prior.start(weights))
