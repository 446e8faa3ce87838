r"""Log Gibbs posterior of a class-conditional mixture under any objective.

.. math:: \log q(\phi) = \sum_n v_n J_n(\phi) + \tau \log p(\phi)

with row weights v, an objective J and the power :math:`\tau` of the prior
(:class:`bayesrbf.records.objective.Objective`). For ``objective="likelihood"`` it is the
log posterior itself.

The objectives differ in nothing but :math:`G_{nc} = \partial J / \partial \log p(x_n, c)`;
what carries G on to the parameters is shared.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.log_sums import class_log_joint, log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import Observations
from bayesrbf.records.objective import SHARPNESS, SMOOTHING, Objective
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


class HybridLogPosterior(MixtureOnRows):
    """Log Gibbs posterior of a class-conditional mixture given a table.

    Rows are in standard units. The prior is in the user's units: its location and scale are the
    change of units between the rows and the coordinates.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
        objective: Objective,
    ) -> None:
        super().__init__(observations, specification, hyperparameters)
        self.objective = objective
        self._shift = float(observations.weights @ self._objective_shift())
        self._shift += objective.prior_power * self._prior_shift

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density and its gradient, equal to the declared graph's with its potentials.

        In nats, up to the constant that normalises it; with the log determinant of the transforms
        if ``jacobian``.
        """
        values, parameters = self.points.at(theta)
        rows = self._expectation.at(parameters)
        by_class, responsibilities = class_log_joint(
            rows.log_joint, self.specification.class_slices
        )
        pointwise, by_component = objective_and_gradient(
            self.objective, by_class, self._observations.labels
        )
        weights = self._observations.weights
        by_component = (weights[:, None] * by_component)[:, self.component_class] * responsibilities
        value = float(weights @ pointwise) + self._shift
        value += self.objective.prior_power * self._prior.log_density(parameters)
        gradient = self._prior.gradient(values, parameters, rows.statistics(by_component))
        # The gradient above has the prior once: the rest of its power is added.
        if self.objective.prior_power != 1:
            alone = self._prior.gradient(values, parameters, self._no_rows)
            gradient += (self.objective.prior_power - 1) * alone
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(self.variables, values)
            value, gradient = value + extra, gradient + extra_gradient
        return value, gradient / self.scales

    @cached_property
    def _no_rows(self) -> Statistics:
        """Statistics of an empty table, which no point changes."""
        empty = prepare(self._observations.take(slice(0)), self.specification)
        return empty.statistics(self.points.unpack_standard(np.zeros(self.points.dimension)))

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Objective J of every row in nats, not weighted. Leaving a row out removes its term.

        It is ``log p(y_n | x_n)`` for the conditional objective.
        """
        log_joint = self._expectation.component_log_joint(self.points.unpack_standard(theta))
        by_class, _ = class_log_joint(log_joint, self.specification.class_slices)
        value, _ = objective_and_gradient(self.objective, by_class, self._observations.labels)
        return value + self._objective_shift()

    def _objective_shift(self) -> Float[np.ndarray, " obs"]:
        """Change of J with the units of the columns: of densities, not of ratios of densities."""
        return self.objective.generative_weight * self._row_shift


def objective_and_gradient(
    objective: Objective, log_joint: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs label"]]:
    """Objective J of every row in nats, not weighted, and its derivatives in ``log_joint``.

    ``log_joint`` has ``log p(x_n, c)`` in nats; labels are -1 where hidden.

    >>> joint = np.log([[0.1, 0.3], [0.2, 0.2]])
    >>> value, gradient = objective_and_gradient(
    ...     Objective("conditional"), joint, np.array([1, -1])
    ... )
    >>> float(np.exp(value[0]).round(6))
    0.75
    >>> gradient
    array([[-0.25,  0.25],
           [ 0.  ,  0.  ]])
    """
    own, every, hinge = objective.coefficients
    labelled = labels >= 0
    rows, classes = np.flatnonzero(labelled), labels[labelled]
    density, probabilities = log_sum_exp(log_joint, axis=1)
    of_density = np.where(labelled, every, objective.generative_weight)
    value = of_density * density
    gradient = of_density[:, None] * probabilities
    value[rows] += own * log_joint[rows, classes]
    gradient[rows, classes] += own
    if hinge and log_joint.shape[1] > 1:
        violation, pulls = margin_violation(objective.margin, log_joint[rows], classes)
        loss, derivative = soft_hinge(violation)
        value[rows] -= hinge * loss
        gradient[rows] -= hinge * derivative[:, None] * pulls
    return value, gradient


def margin_violation(
    margin: float, log_joint: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs label"]]:
    r"""How far every labelled row falls short of the margin, by a soft maximum, and the gradient.

    .. math:: m = \tfrac1\eta \log \sum_{c \neq y} e^{\eta (\gamma - b_y + b_c)}

    with :math:`b_c` the log joint, in nats, of at least two classes. m is negative where the margin
    is kept.
    """
    rows = np.arange(labels.size)
    own = log_joint[rows, labels]
    rivals = log_joint - own[:, None]
    # The true class is no rival of its own.
    rivals[rows, labels] = -np.inf
    most, gradient = log_sum_exp(SHARPNESS * rivals, axis=1)
    # The shares of the rivals sum to one, and m falls as fast as b_y rises.
    gradient[rows, labels] = -1.0
    return margin + most / SHARPNESS, gradient


def soft_hinge(
    violation: Float[np.ndarray, " obs"],
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
    r"""Soft hinge of a violation m in nats, and its derivative.

    .. math:: h(m) = \begin{cases} 0 & m < -\varepsilon \\
        (m + \varepsilon)^2 / 4\varepsilon & |m| \le \varepsilon \\
        m & m > \varepsilon \end{cases}
    """
    lift = np.clip(violation + SMOOTHING, 0.0, 2 * SMOOTHING)
    above = np.maximum(violation - SMOOTHING, 0.0)
    return lift**2 / (4 * SMOOTHING) + above, lift / (2 * SMOOTHING)
