"""Any objective of a mixture: its log Gibbs posterior, and its fit from where EM ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import class_log_joint, log_sum_exp, one_blas_thread
from bayesrbf.base.priors import (
    SHARPNESS,
    SMOOTHING,
    Fit,
    MixtureHyperparameters,
    Objective,
    Status,
    Trace,
)
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.matrices import at_floor, lower_entries
from bayesrbf.mixture.points import MixturePoints, free_variables
from bayesrbf.mixture.posterior import MixtureOnRows
from bayesrbf.mixture.statistics import Statistics

# Log Gibbs posterior of a class-conditional mixture under any objective.
#
# The objectives differ only in :math:`G_{nc} = \partial J / \partial \log p(x_n, c)`; the
# gradient in the parameters follows from G by shared code.


class HybridLogPosterior(MixtureOnRows):
    r"""Log Gibbs posterior of a class-conditional mixture given a table.

    .. math:: \log q(\phi) = \sum_n v_n J_n(\phi) + \tau \log p(\phi) + \text{const}

    with row weights v, an objective J and the power :math:`\tau` of the prior
    (:class:`~bayesrbf.base.priors.Objective`). Under the likelihood it is the log posterior.

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

    def label_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """``log p(y_n | x_n)`` of every row at many points; None where J is no likelihood."""
        alpha, _, hinge = self.objective.coefficients
        return super().label_log_likelihoods(thetas) if alpha == 1 and not hinge else None

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
    alpha, beta, hinge = objective.coefficients
    labelled = labels >= 0
    rows, classes = np.flatnonzero(labelled), labels[labelled]
    density, probabilities = log_sum_exp(log_joint, axis=1)
    of_density = np.where(labelled, beta, objective.generative_weight)
    value = of_density * density
    gradient = of_density[:, None] * probabilities
    value[rows] += alpha * log_joint[rows, classes]
    gradient[rows, classes] += alpha
    if hinge and log_joint.shape[1] > 1:
        violation, pulls = margin_violation(objective.margin, log_joint[rows], classes)
        loss, derivative = soft_hinge(violation)
        value[rows] -= hinge * loss
        gradient[rows] -= hinge * derivative[:, None] * pulls
    return value, gradient


def margin_violation(
    margin: float, log_joint: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> tuple[Float[np.ndarray, " obs"], Float[np.ndarray, "obs label"]]:
    r"""Soft maximum of the margin violation of every labelled row, and the gradient.

    .. math:: m = \tfrac1\eta \log \sum_{c \neq y} e^{\eta (\gamma - b_y + b_c)}

    with :math:`b_c` the log joint, in nats, of at least two classes. m is negative where the row
    has the margin. The gradient is in ``log_joint``.
    """
    rows = np.arange(labels.size)
    of_label = log_joint[rows, labels]
    rivals = log_joint - of_label[:, None]
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


# Coordinates relative to the spread of the components, preconditioned for an optimiser.
#
# Under a generative term the curvature of every component's mean and precision factor is
# that of its Gaussian: n times the identity once means are counted in standard deviations
# and factors relative to the factor itself. L-BFGS then needs a fifth to a tenth of the steps
# (digits, K = 1, blend: 14 instead of 59; MNIST in 50 dimensions, hinge: 10 steps end
# above the value of 100).


class RelativeCoordinates:
    r"""Coordinates z around a point of a mixture, at which z = 0.

    .. math:: \mu_k = \mu^0_k + L_k^{-\top} \delta_k, \qquad A_g = A^0_g B_g,

    with :math:`\delta = 0` and :math:`B = I` at the point; all others are differences to it.
    The point is given twice, in standard units: as unconstrained coordinates and as parameters.
    """

    def __init__(
        self,
        theta: Float[np.ndarray, " coordinate"],
        parameters: MixtureParameters,
        specification: MixtureSpecification,
    ) -> None:
        self._start = theta
        self._d = specification.n_features
        self._slots = {v.name: p for v, p in coordinates.slices(free_variables(specification))}
        self._matrices = laws_of(specification).reals.matrices
        inverse = self._matrices.inverse(parameters.precisions_cholesky)
        self._inverse = inverse[specification.covariance_group]
        self._factors = self._unit_factors(theta) if names.PRECISION_LOWER in self._slots else None

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self._start.size

    def theta(self, z: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of the relative coordinates z, in standard units."""
        theta = self._start + z
        if names.MEANS in self._slots:
            positions = self._slots[names.MEANS]
            steps = z[positions].reshape(-1, self._d)
            shifts = self._matrices.times(self._inverse, steps, transposed=True)
            theta[positions] = self._start[positions] + shifts.reshape(-1)
        if self._factors is not None:
            product = self._factors @ self._unit_factors(z)
            theta[self._slots[names.PRECISION_LOWER]] = self._lower(product)
        return theta

    def gradient(
        self, z: Float[np.ndarray, " coordinate"], by_theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Gradient in z from the gradient in unconstrained coordinates at that point."""
        by_z = by_theta.copy()
        if names.MEANS in self._slots:
            positions = self._slots[names.MEANS]
            pulls = by_theta[positions].reshape(-1, self._d)
            turned = self._matrices.times(self._inverse, pulls, transposed=False)
            by_z[positions] = turned.reshape(-1)
        if self._factors is not None:
            rows, columns = lower_entries(self._d)
            by_product = np.zeros_like(self._factors)
            lower = by_theta[self._slots[names.PRECISION_LOWER]]
            by_product[:, rows, columns] = lower.reshape(len(by_product), -1)
            # A = A0 B: the gradient in B is A0' times that in A.
            by_relative = self._factors.swapaxes(1, 2) @ by_product
            by_z[self._slots[names.PRECISION_LOWER]] = self._lower(by_relative)
            # The diagonal of B scales the columns of A below the diagonal, too.
            diagonal = np.einsum("gii,gii->gi", by_relative, self._unit_factors(z))
            by_z[self._slots[names.PRECISION_DIAGONAL]] += 0.5 * diagonal.reshape(-1)
        return by_z

    def _unit_factors(self, theta: np.ndarray) -> np.ndarray:
        """Lower factors A of all groups from ``log d`` and the strict lower part."""
        rows, columns = lower_entries(self._d)
        roots = np.exp(0.5 * theta[self._slots[names.PRECISION_DIAGONAL]].reshape(-1, self._d))
        factors = np.zeros((len(roots), self._d, self._d))
        factors[:, range(self._d), range(self._d)] = roots
        lower = theta[self._slots[names.PRECISION_LOWER]]
        factors[:, rows, columns] = lower.reshape(len(roots), -1)
        return factors

    def _lower(self, factors: np.ndarray) -> np.ndarray:
        """Strictly lower entries of all groups as one vector."""
        rows, columns = lower_entries(self._d)
        return factors[:, rows, columns].reshape(-1)


# The fit of any objective by L-BFGS, from where EM ended.


MEMORY = 10  # Pairs of steps and gradients that L-BFGS remembers.

NOTHING_HIGHER = (0, 2)
"""SciPy's codes of an L-BFGS run that ended at a flat point or after a futile line search."""


def climb_objective(
    log_posterior: HybridLogPosterior,
    points: MixturePoints,
    start: MixtureParameters,
    *,
    max_iter: int,
    tolerance: float,
) -> Fit:
    """Climb from a start to a mode of the log Gibbs posterior (without Jacobian).

    All is in standard units; the start is the fit by EM, as a rule. The
    fit has converged when an iteration gains at most ``tolerance`` nats.
    """
    relative = RelativeCoordinates(points.pack(start), start, points.specification)
    with one_blas_thread():
        parameters, trace, status = _climb(
            log_posterior, points, relative, start, max_iter, tolerance
        )
    floored = at_floor(parameters.precisions_cholesky)
    return Fit(parameters, Trace(np.array(trace)), status, np.array(trace[-1:]), floored)


def _climb(
    log_posterior: HybridLogPosterior,
    points: MixturePoints,
    relative: RelativeCoordinates,
    start: MixtureParameters,
    max_iter: int,
    tolerance: float,
) -> tuple[MixtureParameters, list[float], Status]:
    """Last point, objective at the start and after every iteration, and end status of L-BFGS."""
    origin = np.zeros(relative.dimension)
    # A start may lie where the objective overflows: the search then ends at once.
    with np.errstate(all="ignore"):
        first, _ = log_posterior.value_and_gradient(relative.theta(origin), jacobian=False)
    trace = [first]
    if not np.isfinite(first):
        return start, trace, Status.DEGENERATE
    parameters = start
    ended = Status.STOPPED

    def accepted(intermediate_result: object) -> None:
        """Record the point of an iteration that rose; end at a rise of at most ``tolerance``."""
        nonlocal parameters, ended
        value = -float(intermediate_result.fun)  # type: ignore[attr-defined]
        rise = value - trace[-1]
        if rise >= 0:  # a gradient of denormals makes a first step that overflows
            trace.append(value)
            z = intermediate_result.x  # type: ignore[attr-defined]
            parameters = points.unpack(relative.theta(z))
        if rise <= tolerance:
            ended = Status.CONVERGED
            raise StopIteration

    result = minimize(
        _descent(log_posterior, relative, first),
        origin,
        jac=True,
        method="L-BFGS-B",
        callback=accepted,  # which ends the search by the nats gained, whatever the units
        options={"maxiter": max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    # A line search that finds nothing higher is at a maximum, as far as rounding can tell.
    status = Status.CONVERGED if result.status in NOTHING_HIGHER else ended
    return parameters, trace, status


def _descent(
    log_posterior: HybridLogPosterior, relative: RelativeCoordinates, first: float
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Negative log Gibbs posterior in relative coordinates and its gradient, for L-BFGS.

    Where a long step overflows, the value is above the value at the start, so that the line search
    steps back.
    """
    barrier = 2 * (1 + abs(first)) - first

    def descent(z: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at z; the barrier and zeros where one of them is not finite."""
        try:
            with np.errstate(all="ignore"):
                theta = relative.theta(z)
                value, by_theta = log_posterior.value_and_gradient(theta, jacobian=False)
                gradient = relative.gradient(z, by_theta)
        except np.linalg.LinAlgError:
            return barrier, np.zeros_like(z)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return barrier, np.zeros_like(z)
        return -value, -gradient

    return descent
