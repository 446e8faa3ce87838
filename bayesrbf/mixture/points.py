"""Points of a mixture in unconstrained coordinates, and its declared prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.log_posterior import Simplices, safe_log, slices
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Order,
    Variable,
    weighted_components,
)
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.statistics import Statistics

# Points of a mixture in the unconstrained coordinates of its declared graph.


@cache
def free_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """Free variables of the declared graph, in its order: classes, weights, then every law's.

    >>> [v.name for v in free_variables(MixtureSpecification(2, (), (0, 0, 1)))]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'precision_lower']
    """
    n_classes = specification.n_classes
    variables: list[Variable] = []
    if n_classes > 1:
        variables.append(
            Variable(names.CLASS_PROBABILITIES, (names.CLASS_LABEL,), (n_classes,), "simplex")
        )
    for index, components in enumerate(specification.class_slices):
        size = components.stop - components.start
        if size > 1:
            dim = names.class_components(index, n_classes)
            name = names.class_weights(index, n_classes)
            variables.append(Variable(name, (dim,), (size,), "simplex"))
    laws = laws_of(specification)
    return (*variables, *laws.reals.variables, *laws.levels.variables)


def deterministic_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """Deterministic variables of the graph: ``weights`` and ``covariances``.

    Weights are reported where several classes have simplices, covariances where there are real
    columns: their diagonals if all other entries are 0. Constants are left out, such as the weight
    of a class's only component.
    """
    variables: list[Variable] = []
    k, d = specification.n_components, specification.n_features
    if specification.n_classes > 1 and np.bincount(specification.component_class).min() > 1:
        variables.append(Variable(names.WEIGHTS, (names.COMPONENT,), (k,), "identity"))
    if d:
        axes = (names.FEATURE, names.FEATURE_BIS)[: 1 if specification.independent else 2]
        dims = (*specification.group_dims, *axes)
        shape = (*specification.group_shape, *[d] * len(axes))
        variables.append(Variable(names.COVARIANCES, dims, shape, "identity"))
    return tuple(variables)


def variables_of(
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> dict[str, np.ndarray]:
    """Values of the free variables (and ``weights`` of every class) at one point.

    Point and prior are in the same units.
    """
    values = {names.CLASS_PROBABILITIES: parameters.class_probabilities}
    for index, components in enumerate(specification.class_slices):
        values[names.class_weights(index, specification.n_classes)] = parameters.weights[components]
    laws = laws_of(specification)
    return values | laws.reals.values(parameters, hyperparameters) | laws.levels.values(parameters)


def parameters_of(
    values: Mapping[str, np.ndarray],
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> MixtureParameters:
    """Parameters from values of the free variables, in the units of the prior."""
    classes = values.get(names.CLASS_PROBABILITIES, np.ones(1))
    point = weighted_components(classes, joint_weights(values, specification))
    laws = laws_of(specification)
    return laws.levels.with_values(laws.reals.with_values(point, values, hyperparameters), values)


def reordered(
    parameters: MixtureParameters, order: Order, specification: MixtureSpecification
) -> MixtureParameters:
    """Parameters with columns and classes in another order than the specification's."""
    components = specification.components_in(order)
    groups = specification.covariance_group[components]
    groups = groups[np.sort(np.unique(groups, return_index=True)[1])]
    point = parameters.taken(components, groups)
    point = replace(point, class_probabilities=parameters.class_probabilities[order.classes])
    laws = laws_of(specification)
    return laws.levels.reordered(laws.reals.reordered(point, order), order)


def component_covariances(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "component feature feature"]:
    """Covariance matrix of every component, in the units of the point."""
    law = laws_of(specification).reals
    covariances = law.matrices.covariances(parameters.precisions_cholesky)
    return law.by_component(law.matrices.whole(covariances))


def joint_weights(
    values: Mapping[str, np.ndarray], specification: MixtureSpecification
) -> Float[np.ndarray, "*batch component"]:
    """Component weights of all classes in the flat order, at one point or many.

    They sum to one within each class.
    """
    first = free_variables(specification)[0]
    value = values[first.name]
    batch = value.shape[: value.ndim - len(first.shape)]
    weights = np.ones((*batch, specification.n_components))
    if specification.n_components > specification.n_classes:
        for index, components in enumerate(specification.class_slices):
            name = names.class_weights(index, specification.n_classes)
            weights[..., components] = values.get(name, 1.0)
    return weights


class MixturePoints:
    """Conversion between unconstrained coordinates and parameters of a mixture.

    Coordinates are in the user's units. The location and scale of the prior, which is in these
    units as well, are the change to standard units.
    """

    def __init__(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> None:
        self.specification = specification
        self.hyperparameters = hyperparameters
        self.units = hyperparameters.units
        self.variables: tuple[Variable, ...] = free_variables(specification)
        self._coordinates = coordinates.Coordinates.of(self.variables)
        self.component_class: Int[np.ndarray, " component"] = np.asarray(
            specification.component_class
        )

    @cached_property
    def standard(self) -> MixtureHyperparameters:
        """The prior in standard units."""
        return self.hyperparameters.standardised()

    @cached_property
    def dimension(self) -> int:
        """Number of coordinates."""
        return sum(variable.size for variable in self.variables)

    @cached_property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Joint weights and covariances."""
        return deterministic_variables(self.specification)

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Size of one unit of each coordinate: column scales for means, 1 elsewhere."""
        sizes = np.ones(self.dimension)
        for variable, positions in coordinates.slices(self.variables):
            if variable.name == names.MEANS:
                sizes[positions] = np.tile(self.hyperparameters.scale, variable.shape[0])
        return sizes

    def pack(self, parameters: MixtureParameters) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point in the user's units."""
        values = variables_of(parameters, self.hyperparameters, self.specification)
        return self._coordinates.to_unconstrained(values)

    def unpack(self, theta: Float[np.ndarray, " coordinate"]) -> MixtureParameters:
        """Parameters in the user's units at coordinates ``theta``."""
        values = self._coordinates.to_constrained(theta)
        return parameters_of(values, self.hyperparameters, self.specification)

    def pack_standard(self, parameters: MixtureParameters) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point in standard units."""
        values = variables_of(parameters, self.standard, self.specification)
        values[names.MEANS] = self.units.backward(values[names.MEANS])
        return self._coordinates.to_unconstrained(values)

    def unpack_standard(self, theta: Float[np.ndarray, " coordinate"]) -> MixtureParameters:
        """Parameters in standard units at coordinates ``theta``."""
        return self.at(theta)[1]

    def at(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> tuple[dict[str, np.ndarray], MixtureParameters]:
        """Values of the free variables, and the parameters in standard units."""
        values = self.standard_values(theta)
        return values, parameters_of(values, self.standard, self.specification)

    def standard_values(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Values of the mixture's free variables in standard units, at one point or many."""
        values = self._coordinates.to_constrained(thetas)
        if names.MEANS in values:
            values[names.MEANS] = self.units.forward(values[names.MEANS])
        return values

    def deterministic(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """``weights`` and ``covariances`` in the user's units, at one point or many."""
        values = self._coordinates.to_constrained(thetas)
        batch = thetas.shape[:-1]
        results = {}
        for variable in self.deterministic_variables:
            if variable.name == names.WEIGHTS:
                value = joint_weights(values, self.specification)
            else:
                law = laws_of(self.specification).reals
                value = law.matrices.covariances(law.factors(values, self.hyperparameters))
            results[variable.name] = value.reshape((*batch, *variable.shape))
        return results

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates with component ``order[k]`` in position k; classes keep their components."""
        values = self._coordinates.to_constrained(theta)
        within = {
            names.class_weights(index, self.specification.n_classes): order[components]
            - components.start
            for index, components in enumerate(self.specification.class_slices)
        }
        for variable in self.variables:
            if variable.name in within:
                values[variable.name] = values[variable.name][within[variable.name]]
            elif variable.dims[:1] == (names.COMPONENT,):
                values[variable.name] = values[variable.name][order]
        return self._coordinates.to_unconstrained(values)


# The declared prior of a mixture: log density, and gradient of log likelihood plus log prior.


class DeclaredPrior:
    r"""The declared prior of one mixture, prepared for many points.

    .. math::
       w, \pi, \theta &\sim \mathrm{Dirichlet}(\alpha), \quad
       \mu_k \sim N(m_0, (\kappa_0 P_{g(k)})^{-1}), \\
       \log p &= \mathrm{const} + \sum (\alpha - 1) \log (w, \pi, \theta) + \log p(A, \mu),

    with the prior of means and precision factors of
    :class:`~bayesrbf.mixture.real_columns.NormalPrior`. The log Jacobian of the coordinates raises
    the power of every probability, and of every :math:`A_{ii}^2`, by one.

    Hyper-parameters are in the units of the parameters. ``constant`` is the log normaliser without
    Jacobian; ``powers`` are the exponents of the probabilities, without and with Jacobian. All
    simplices are evaluated in one pass.
    """

    def __init__(
        self, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
    ) -> None:
        self._specification, self._laws = specification, laws_of(specification)
        self._reals = self._laws.reals.prior(hyperparameters)
        variables = free_variables(specification)
        self._simplices = Simplices.among(variables)
        # A class's only component has no weight among the variables.
        sizes = np.bincount(specification.component_class)
        self._weighted = np.flatnonzero(sizes[np.asarray(specification.component_class)] > 1)
        self._slots = {variable.name: positions for variable, positions in slices(variables)}
        self._dimension = sum(variable.size for variable in variables)
        alphas = _concentrations(hyperparameters, specification, variables)
        # With the log Jacobian every power is one higher: [without, with].
        self.powers = [self._simplices.entries(alphas) + step for step in (-1, 0)]
        self.constant = sum(
            float((gammaln(alpha.sum(axis=-1)) - gammaln(alpha).sum(axis=-1)).sum())
            for alpha in alphas.values()
        )
        if self._reals is not None:
            self.constant += self._reals.constant

    def log_density(self, parameters: MixtureParameters, jacobian: bool = False) -> float:
        """Log density at one point in nats, with the log determinant of the transforms or not."""
        total = self.constant + (self._simplices.log_sizes if jacobian else 0.0)
        total += float(self.powers[jacobian] @ safe_log(self._probabilities(parameters)))
        if self._reals is not None:
            total += self._reals.log_density(parameters, jacobian)
        return total

    def _probabilities(self, parameters: MixtureParameters) -> Float[np.ndarray, " entry"]:
        """Class probabilities, weights and level probabilities as one vector."""
        return self._side_by_side(
            parameters.class_probabilities, parameters.weights, parameters.category_probabilities
        )

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool = False,
    ) -> Float[np.ndarray, " coordinate"]:
        r"""Gradient of log likelihood plus log prior in unconstrained coordinates.

        The likelihood enters by Fisher's identity: its gradient is that of the
        expected complete-data log likelihood, so it needs only the E-step's
        statistics. For a factor L under n rows and G means,
        :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`.

        ``values`` and ``parameters`` are the same point, and the statistics those of the E-step
        there; the gradient of the log determinant of the transforms is added if ``jacobian``.
        """
        result = np.empty(self._dimension)
        counts = self._side_by_side(
            np.bincount(self._laws.classes, statistics.counts),
            statistics.counts,
            statistics.category_counts,
        )
        counts += self.powers[jacobian]
        probabilities = self._simplices.entries(values)
        result[self._simplices.indices] = self._simplices.gradient(counts, probabilities)
        if self._reals is not None:
            by_variable = self._reals.gradient(values, parameters, statistics, jacobian)
            for name, gradient in by_variable.items():
                result[self._slots[name]] = gradient.reshape(-1)
        return result

    def _side_by_side(
        self,
        classes: Float[np.ndarray, " label"],
        components: Float[np.ndarray, " component"],
        levels: tuple[Float[np.ndarray, "component _"], ...],
    ) -> Float[np.ndarray, " entry"]:
        """Entries of all simplices as one vector, without weights of single components."""
        entries = [components.take(self._weighted), *(level.reshape(-1) for level in levels)]
        if self._specification.n_classes > 1:
            entries.insert(0, classes)
        return np.concatenate(entries)


def _concentrations(
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
    variables: tuple[Variable, ...],
) -> dict[str, np.ndarray]:
    """Dirichlet parameters of every free simplex, in its variable's shape."""
    alphas = laws_of(specification).levels.by_name(hyperparameters.category_concentrations)
    alphas[names.CLASS_PROBABILITIES] = np.asarray(hyperparameters.class_concentration)
    weights = np.asarray(hyperparameters.weight_concentration)
    return {
        variable.name: np.broadcast_to(alphas.get(variable.name, weights), variable.shape)
        for variable in variables
        if variable.transform == "simplex"
    }
