"""A fitted mixture, and the steps from weighted rows to it, in memory and over blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import softmax

from bayesrbf import table
from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import (
    at_prevalence,
    class_log_joint,
    log_sum_exp,
    one_blas_thread,
    single_digits,
)
from bayesrbf.base.blocks import Blocks
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import (
    SHARPNESS,
    SMOOTHING,
    Fit,
    MixtureHyperparameters,
    MixturePrior,
    Objective,
    PowerMaps,
    Status,
    Trace,
)
from bayesrbf.base.records import Requirements, by_class, scales, stored
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Order,
    Standardisation,
)
from bayesrbf.fit.model import Axes, Description, FittedModel, observed_rows, row_weights
from bayesrbf.mixture.em import BegunFit, begin_fit
from bayesrbf.mixture.expectation import BlockExpectation, prepare
from bayesrbf.mixture.laws import laws_of, order_for
from bayesrbf.mixture.maps import fit_power
from bayesrbf.mixture.matrices import at_floor, lower_entries
from bayesrbf.mixture.points import MixturePoints, free_variables, reordered
from bayesrbf.mixture.posterior import MixtureLogPosterior, MixtureOnRows
from bayesrbf.mixture.statistics import Statistics

if TYPE_CHECKING:
    import pymc as pm


# Log Gibbs posterior of a class-conditional mixture under any objective.
#
# .. math:: \log q(\phi) = \sum_n v_n J_n(\phi) + \tau \log p(\phi)
#
# with row weights v, an objective J and the power :math:`\tau` of the prior
# (:class:`bayesrbf.base.priors.Objective`). For ``objective="likelihood"`` it is the
# log posterior itself.
#
# The objectives differ in nothing but :math:`G_{nc} = \partial J / \partial \log p(x_n, c)`;
# what carries G on to the parameters is shared.


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

    def label_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """``log p(y_n | x_n)`` of every row, which a label adds to J unless J has a hinge."""
        own, _, hinge = self.objective.coefficients
        return super().label_log_likelihoods(thetas) if own == 1 and not hinge else None

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


# Coordinates in units of a mixture's own spread: what an optimiser takes its steps in.
#
# Under a generative term the curvature of every component's mean and precision factor is
# that of its Gaussian: n times the identity once means are counted in standard deviations
# and factors relative to the factor itself,
#
# .. math:: \mu_k = \mu^0_k + L_k^{-\top} \delta_k, \qquad A_g = A^0_g B_g,
#
# with :math:`\delta = 0` and :math:`B = I` at the start. L-BFGS then needs a fifth to a tenth
# of the steps (digits, K = 1, blend: 14 in the place of 59; MNIST in 50 dimensions, hinge: ten
# reach what 100 did not). All other coordinates are differences to the start.


class RelativeCoordinates:
    """Coordinates z around a point of a mixture, at which z = 0.

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
        self._places = {v.name: p for v, p in coordinates.slices(free_variables(specification))}
        self._matrices = laws_of(specification).reals.matrices
        inverse = self._matrices.inverse(parameters.precisions_cholesky)
        self._inverse = inverse[specification.covariance_group]
        self._factors = self._unit_factors(theta) if names.PRECISION_LOWER in self._places else None

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self._start.size

    def theta(self, z: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of a point z, in standard units."""
        theta = self._start + z
        if names.MEANS in self._places:
            place = self._places[names.MEANS]
            steps = z[place].reshape(-1, self._d)
            moved = self._matrices.times(self._inverse, steps, transposed=True)
            theta[place] = self._start[place] + moved.reshape(-1)
        if self._factors is not None:
            product = self._factors @ self._unit_factors(z)
            theta[self._places[names.PRECISION_LOWER]] = self._lower(product)
        return theta

    def gradient(
        self, z: Float[np.ndarray, " coordinate"], by_theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Gradient in z from the gradient in unconstrained coordinates at that point."""
        by_z = by_theta.copy()
        if names.MEANS in self._places:
            place = self._places[names.MEANS]
            pulls = by_theta[place].reshape(-1, self._d)
            turned = self._matrices.times(self._inverse, pulls, transposed=False)
            by_z[place] = turned.reshape(-1)
        if self._factors is not None:
            rows, columns = lower_entries(self._d)
            by_product = np.zeros_like(self._factors)
            lower = by_theta[self._places[names.PRECISION_LOWER]]
            by_product[:, rows, columns] = lower.reshape(len(by_product), -1)
            # A = A0 B: the gradient in B is A0' times that in A.
            by_relative = self._factors.swapaxes(1, 2) @ by_product
            by_z[self._places[names.PRECISION_LOWER]] = self._lower(by_relative)
            # The diagonal of B scales the columns of A below the diagonal, too.
            diagonal = np.einsum("gii,gii->gi", by_relative, self._unit_factors(z))
            by_z[self._places[names.PRECISION_DIAGONAL]] += 0.5 * diagonal.reshape(-1)
        return by_z

    def _unit_factors(self, theta: np.ndarray) -> np.ndarray:
        """Lower factors A of all groups from ``log d`` and the strict lower part."""
        rows, columns = lower_entries(self._d)
        roots = np.exp(0.5 * theta[self._places[names.PRECISION_DIAGONAL]].reshape(-1, self._d))
        factors = np.zeros((len(roots), self._d, self._d))
        factors[:, range(self._d), range(self._d)] = roots
        lower = theta[self._places[names.PRECISION_LOWER]]
        factors[:, rows, columns] = lower.reshape(len(roots), -1)
        return factors

    def _lower(self, factors: np.ndarray) -> np.ndarray:
        """Strictly lower entries of all groups, in one row."""
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
    """The last point, the values of the start and of every iteration, and how it ended."""
    origin = np.zeros(relative.dimension)
    with np.errstate(all="ignore"):
        first, _ = log_posterior.value_and_gradient(relative.theta(origin), jacobian=False)
    trace = [first]
    if not np.isfinite(first):
        return start, trace, Status.DEGENERATE
    parameters, ended = start, Status.STOPPED

    def accepted(intermediate_result: object) -> None:
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
        callback=accepted,
        options={"maxiter": max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    # A line search that finds nothing higher is at a maximum, as far as rounding can tell.
    status = Status.CONVERGED if result.status in NOTHING_HIGHER else ended
    return parameters, trace, status


def _descent(
    log_posterior: HybridLogPosterior, relative: RelativeCoordinates, first: float
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The function that L-BFGS minimises, and its gradient.

    Where a far step overflows it is a value above the start's, which turns the line search back.
    """
    barrier = 2 * (1 + abs(first)) - first

    def descent(z: np.ndarray) -> tuple[float, np.ndarray]:
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


# A fitted mixture, and the steps from weighted rows to it that every fit and fold shares.


LIKELIHOOD = Objective()

FARTHEST = 1e8
"""Standardised cells are held within this. Beyond it a square is rounded by more than one nat, and
what rows far out say of their class, which lies in the linear term, would be lost."""


@stored
class FittedMixture(FittedModel):
    """A fitted mixture; with one class, a density."""

    doubtable = True

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    """The resolved prior, in the user's units; its centre is the standardisation."""
    parameters: MixtureParameters
    """The fitted point, in standard units."""
    order: Order
    """The canonical order of columns and classes, in which it was fitted."""
    objective: Objective = LIKELIHOOD
    """Objective of the fit, which replaces the likelihood in its posterior."""
    maps: PowerMaps | None = None
    """Maps in front of the real columns; prior and parameters are those of mapped columns."""

    @property
    def density(self) -> FittedMixture:
        """The mixture itself."""
        return self

    def at_prevalence(
        self, parameters: MixtureParameters, log_ratio: Float[np.ndarray, " label"]
    ) -> MixtureParameters:
        """Parameters whose class probabilities are moved to other class shares."""
        moved = at_prevalence(np.log(parameters.class_probabilities), log_ratio)
        return replace(parameters, class_probabilities=np.exp(moved))

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for a density."""
        return self.specification.n_classes

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return self.hyperparameters.units

    @property
    def start(self) -> MixtureParameters:
        """The fitted point in the units of the mapped columns, from where another fit may start."""
        return self.parameters.in_units(self.units)

    @property
    def condensed(self) -> FittedMixture:
        """The mixture itself: it keeps nothing that predictions do not need."""
        return self

    @property
    def rounded(self) -> FittedMixture:
        """A copy whose precision factors, which are large, have the digits of single precision."""
        factors = single_digits(self.parameters.precisions_cholesky)
        return replace(self, parameters=replace(self.parameters, precisions_cholesky=factors))

    def reordered(self, order: Order) -> FittedMixture:
        """Put columns and classes in another order."""
        return FittedMixture(
            self.specification.reordered(order),
            self.hyperparameters.reordered(order),
            reordered(self.parameters, order, self.specification),
            order.inverse.then(self.order),
            self.objective,
            None if self.maps is None else self.maps.reordered(order),
        )

    def mapped(self, rows: Observations) -> Observations:
        """Rows behind the maps, with what these do to their log densities."""
        return rows if self.maps is None else self.maps.applied(rows)

    def standardise(self, rows: Observations) -> Observations:
        """Rows behind the maps, in standard units, held within ``FARTHEST`` scales."""
        rows = self.mapped(rows)
        with np.errstate(over="ignore"):
            real = self.hyperparameters.units.forward(rows.real)
        return replace(rows, real=np.clip(real, -FARTHEST, FARTHEST))

    def in_users_units(
        self, standard: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Cells that a model made, from standard units and through the maps to the user's units."""
        mapped = self.units.backward(standard)
        return mapped if self.maps is None else self.maps.within_range(self.maps.backward(mapped))

    def component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in standard units; labels are not used."""
        log_joint = np.empty((rows.n_obs, self.specification.n_components))
        for part, some in rows.in_blocks():
            log_joint[part] = self._component_log_joint(some)
        return log_joint

    def _component_log_joint(self, block: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of one block of rows; labels are not used."""
        prepared = prepare(self.standardise(block), self.specification)
        return prepared.component_log_joint(self.parameters)

    def responsibilities(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``p(k | x_o)`` of every component; labels are not used."""
        shares = np.empty((rows.n_obs, self.specification.n_components))
        for part, some in rows.in_blocks():
            shares[part] = softmax(self._component_log_joint(some), axis=1)
        return shares

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """``log pi_c + log p(x_o | c)`` in standard units; labels are not used."""
        slices = self.specification.class_slices
        log_joint = np.empty((rows.n_obs, len(slices)))
        for part, some in rows.in_blocks():
            log_joint[part] = class_log_joint(self._component_log_joint(some), slices)[0]
        return log_joint

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density in the user's units less that in standard units."""
        return self.units.log_unit(self.mapped(rows))

    def log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """``log p(x_o)`` in the user's units."""
        log_density = np.empty(rows.n_obs)
        for part, some in rows.in_blocks():
            in_standard_units = np.logaddexp.reduce(self._component_log_joint(some), axis=1)
            log_density[part] = in_standard_units + self.log_unit(some)
        return log_density

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for.

        Under the likelihood rows without a label teach the class probabilities, too: they
        are shared out as the M-step did. Other objectives bend these, and stand for the
        labelled rows.
        """
        labelled, hidden = super().class_shares(rows, n_classes), rows.labels < 0
        if self.objective.coefficients != LIKELIHOOD.coefficients or not hidden.any():
            return labelled
        extra = self.hyperparameters.class_concentration - 1
        smoothed = self.parameters.class_probabilities
        counts = smoothed * (rows.weights.sum() + extra * smoothed.size) - extra
        counts = np.maximum(counts, labelled * rows.weights[~hidden].sum())
        return counts / counts.sum()

    def log_posterior(self, rows: Observations) -> MixtureOnRows:
        """The log posterior, or the log Gibbs posterior of another objective."""
        data_and_prior = self.standardise(rows), self.specification, self.hyperparameters
        if self.objective.name == "likelihood":
            return MixtureLogPosterior(*data_and_prior)
        return HybridLogPosterior(*data_and_prior, self.objective)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the coordinates of its log posterior."""
        return log_posterior.pack(self.start)

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The mixture under a posterior draw, in standard units."""
        return log_posterior.unpack(theta).standardised(self.units)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: classes and density apart."""
        return log_posterior.predictor(self.standardise(rows))

    def declare(
        self,
        rows: Observations,
        axes: Axes,
        latent: Literal["marginal", "explicit"] = "marginal",
    ) -> pm.Model:
        """The graph of the density, or of the classes and their objective."""
        from bayesrbf.models.mixture import declare_hybrid_mixture, declare_mixture

        data_and_prior = rows, self.specification, self.hyperparameters
        asked = axes.of_graph | {"latent": latent, "column_maps": self.maps}
        if axes.classes is None:
            return declare_mixture(*data_and_prior, **asked)
        return declare_hybrid_mixture(*data_and_prior, **asked, objective=self.objective)

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names along every dim of the graph, and the training rows."""
        coords = mixture_coords(self.specification, axes)
        constant = row_weights(rows)
        if axes.classes is not None:
            of_component = axes.classes[list(self.specification.component_class)]
            constant |= {names.COMPONENT_LABEL: ((names.COMPONENT,), of_component)}
        return Description(coords, observed_rows(rows), constant, self._scored(axes))

    def _scored(self, axes: Axes) -> str:
        """Subject of the log likelihood: rows, rows with labels, labels, or an objective's own."""
        if axes.classes is None:
            return names.OBSERVED
        alpha, beta, hinge = self.objective.coefficients
        named = {(1.0, 0.0, 0.0): names.JOINT, (1.0, -1.0, 0.0): names.OBSERVED_LABEL}
        return named.get((alpha, beta, hinge), names.OBJECTIVE)

    def __laws__(self) -> Requirements:
        structure, point, prior = self.specification, self.parameters, self.hyperparameters
        k, d, levels = structure.n_components, structure.n_features, structure.levels
        yield point.class_probabilities.size == structure.n_classes, "a probability of every class"
        yield point.means.shape == (k, d), "a mean of every component and column"
        yield point.weights.size == k, "a weight of every component"
        yield by_class(point.weights, structure.component_class), "weights that sum to one by class"
        reals, factors = laws_of(structure).reals, point.precisions_cholesky
        shape = reals.n_groups, *reals.matrices.shape
        yield factors.shape == shape, "a factor of every covariance"
        yield scales(reals.matrices.diagonal(factors)), "factors of positive diagonal"
        shapes = [array.shape for array in point.category_probabilities]
        yield shapes == [(k, n) for n in levels], "probabilities of all levels"
        yield all((array > 0).all() for array in point.category_probabilities), "levels that can be"
        yield prior.location.size == d, "a centre of every column"
        sizes = [array.size for array in prior.category_concentrations]
        yield sizes == list(levels), "concentrations of all levels"
        order = self.order.features.size, self.order.categories.size, self.order.classes.size
        ordered = order == (d, len(levels), structure.n_classes)
        yield ordered, "an order of its columns and classes"
        yield self.maps is None or self.maps.scale.size == d, "a map of every column"


def mixture_coords(specification: MixtureSpecification, axes: Axes) -> dict[str, Any]:
    """Names along every dim of a mixture's posterior, as the declared graph has them."""
    columns = axes.columns
    assert columns is not None  # a mixture is one of columns
    features = columns.real_names
    entries = range(specification.n_features)
    coords: dict[str, Any] = {
        names.OBS: axes.obs,
        names.COLUMN: [names.LABEL, *features, *columns.categorical_names],
        names.COMPONENT: np.arange(specification.n_components),
        names.FEATURE: list(features),
        names.FEATURE_BIS: list(features),
        names.PRECISION_ENTRY: [f"{features[i]},{features[j]}" for i in entries for j in range(i)],
    }
    for index, code in enumerate(columns.codes):
        coords[names.category_level(index)] = [str(level) for level in code.levels]
    if axes.classes is not None:
        coords[names.CLASS_LABEL] = axes.classes
    return coords


# From weighted rows to a fitted mixture: in memory, and over blocks of rows.


ColumnMaps = Literal["power"] | None
"""Kind of the maps in front of the real columns."""

STEPS = {"blend": 60}
"""Iterations by objective: a blend that is followed further overfits."""
DEFAULT_STEPS = 200
ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""


@stored
class Solver:
    """How a mixture is fitted."""

    n_init: int
    max_iter: int
    tol: float
    """Smallest rise of the log posterior per unit of row weight that counts."""
    seed: int
    """Of the restarts."""
    objective: Objective = LIKELIHOOD
    """Objective; any but the likelihood starts at the fit by EM."""
    steps: int | None = None
    """Most iterations that the objective is followed; None: ``STEPS``."""

    @property
    def most_steps(self) -> int:
        """Most iterations that the objective is followed."""
        return STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps


def component_class(rows: Observations, n_classes: int, most: int) -> tuple[int, ...]:
    """Class of every component; small classes have fewer.

    >>> labels = np.repeat([0, 1], [20, 5])
    >>> rows = Observations(np.zeros((25, 1)), np.zeros((25, 0), int), labels, np.ones(25))
    >>> component_class(rows, 2, 3)
    (0, 0, 1)
    """
    labelled = rows.labels >= 0
    counts = np.bincount(rows.labels[labelled], rows.weights[labelled], minlength=n_classes)
    sizes = np.clip(counts // ROWS_PER_COMPONENT, 1, most).astype(int)
    return tuple(np.repeat(np.arange(n_classes), sizes).tolist())


def fit_mixture_rows(
    rows: Observations,
    specification: MixtureSpecification,
    prior: MixturePrior,
    solver: Solver,
    start: MixtureParameters | None = None,
    column_maps: ColumnMaps = None,
) -> tuple[FittedMixture, Fit]:
    """Map and standardise distinct weighted rows, in the user's units, and fit a mixture to them.

    Rows that the caller does not hold are forgotten on the way, so that no copy of a large table
    stands beside its standardised cells.

    A start, in the units of the mapped columns, takes the place of restarts. All of it happens in
    the canonical order of columns and classes: what is found does not depend on the order in
    which they are given.
    """
    order = order_for(table.canonical_order(rows, specification.n_classes), specification)
    structure, rows = specification.reordered(order), rows.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    maps = None
    if column_maps == "power" and rows.real.shape[1]:
        maps = fit_power(units, rows.real, rows.weights)
        rows = maps.applied(rows)
        units = table.standardisation(rows.real, rows.weights)
    marginals = table.marginals(rows.codes, structure.levels, rows.weights)
    hyperparameters = prior.resolve(structure, units, marginals)
    rows = replace(rows, real=units.forward(rows.real))
    model = structure, hyperparameters.standardised()
    begin = None
    if start is not None:
        begin = reordered(start, order, specification).standardised(units)
    by_em = solver.objective.name == "likelihood"
    if by_em or begin is None:
        rng = np.random.default_rng(solver.seed)
        begun = begin_fit(rows, *model, rng=rng, n_init=solver.n_init, start=begin)
        if by_em:
            del rows  # EM has its own copy of them
        fit = begun.climb(tol=solver.tol, max_iter=solver.max_iter)
        begin = fit.parameters
    if not by_em:
        fit = climb_objective(
            HybridLogPosterior(rows, *model, solver.objective),
            MixturePoints(*model),
            begin,
            max_iter=solver.most_steps,
            tolerance=solver.tol * float(rows.weights.sum()),
        )
    unchanged = order.inverse.then(order)
    mixture = FittedMixture(
        structure, hyperparameters, fit.parameters, unchanged, solver.objective, maps
    )
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


def fit_mixture_blocks(
    rows: Blocks[Observations],
    mixture: FittedMixture,
    some: Observations,
    *,
    prior: MixturePrior,
    solver: Solver,
) -> tuple[FittedMixture, Fit, int]:
    """Refit a mixture to weighted rows in the user's units by EM; the passes are counted.

    Structure, maps and start are those of the mixture; units and prior are those of all rows.
    ``some`` of the rows are together as heavy as all.
    """
    rows = rows.map(mixture.mapped)
    form = mixture.specification
    count = partial(table.RowSums.of, n_levels=form.levels, n_classes=form.n_classes)
    sums = rows.map(count).reduce(table.RowSums.joined)
    units = sums.units
    hyperparameters = prior.resolve(form, units, sums.marginals)
    standard = rows.map(partial(_standardised, units=units))
    expectation = BlockExpectation(standard, form)
    starts, weight = [mixture.start.standardised(units)], float(some.weights.sum())
    begun = BegunFit(form, hyperparameters.standardised(), expectation, starts, weight)
    fit = begun.climb(tol=solver.tol, max_iter=solver.max_iter)
    refitted = replace(mixture, hyperparameters=hyperparameters, parameters=fit.parameters)
    return refitted, fit, expectation.passes + 2  # to prepare the rows, and for their units


def _standardised(rows: Observations, units: Standardisation) -> Observations:
    """Rows in standard units."""
    return replace(rows, real=units.forward(rows.real))
