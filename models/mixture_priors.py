"""Priors of a mixture as named nodes; their mode is the fixed point of EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayesrbf.records import names
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


@dataclass(frozen=True)
class MixtureNodes:
    """Nodes of the graph on which the rows of a mixture depend."""

    component_probabilities: TensorVariable  # (component,): p(class) p(component | class).
    component_class: TensorVariable  # (component,), as constant data.
    means: TensorVariable  # (component, feature), in the user's units.
    covariances: TensorVariable  # (group, feature, feature), in the user's units squared.
    # (component, level) of each categorical column.
    category_probabilities: tuple[TensorVariable, ...]


def declare_priors(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> MixtureNodes:
    r"""Declare every free variable of a mixture in the model on the stack.

    .. math::
        \pi &\sim \mathrm{Dirichlet}, \quad w_c \sim \mathrm{Dirichlet}, \quad
        \theta_{kj} \sim \mathrm{Dirichlet} \\
        P_g &= L_g L_g^\top, \quad L_g = L_{0g} A_g, \quad
        L_{0g} = ((\nu_0 + G_g) S_0)^{-1/2} \\
        \mu_k &\sim N(m_0, (\kappa_0 P_{g(k)})^{-1})

    Without the Jacobian of the coordinates the mode of the covariances is
    :math:`(S + (\nu_0 + G) S_0 + \kappa_0 \sum (\mu - m_0)(\mu - m_0)^\top)
    / (n + \nu_0 + G)`. The prior is in the user's units.
    """
    class_probabilities = _declare_class_probabilities(specification, hyperparameters)
    weights = _declare_weights(specification, hyperparameters)
    component_class = pm.Data(
        names.COMPONENT_CLASS, np.asarray(specification.component_class), dims=names.COMPONENT
    )
    means, covariances = declare_normals(specification, hyperparameters)
    return MixtureNodes(
        component_probabilities=class_probabilities[component_class] * weights,
        component_class=component_class,
        means=means,
        covariances=covariances,
        category_probabilities=declare_categories(specification, hyperparameters),
    )


def _declare_class_probabilities(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> TensorVariable:
    """p(c); the constant 1 for a density, whose one class has no prevalence."""
    if specification.n_classes == 1:
        return pt.ones(1)
    concentration = np.full(specification.n_classes, hyperparameters.class_concentration)
    return pm.Dirichlet(names.CLASS_PROBABILITIES, a=concentration, dims=names.CLASS_LABEL)


def _declare_weights(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> TensorVariable:
    """p(component | class), one simplex a class, concatenated over the classes."""
    n_classes, parts = specification.n_classes, []
    for c, components in enumerate(specification.class_slices):
        size = components.stop - components.start
        if size == 1:
            parts.append(pt.ones(1))
            continue
        parts.append(
            pm.Dirichlet(
                names.class_weights(c, n_classes),
                a=np.full(size, hyperparameters.weight_concentration),
                dims=names.class_components(c, n_classes),
            )
        )
    if n_classes == 1 and specification.n_components > 1:
        return parts[0]
    return pm.Deterministic(names.WEIGHTS, pt.concatenate(parts), dims=names.COMPONENT)


def declare_normals(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> tuple[TensorVariable, TensorVariable]:
    """Declare means and covariances; nothing for a table without real columns."""
    k, d = specification.n_components, specification.n_features
    if d == 0:
        return pt.zeros((k, 0)), pt.zeros((1, 0, 0))
    dims, shape = specification.group_dims, specification.group_shape
    declared = SHAPES[specification.shape](d, shape, hyperparameters.degrees_of_freedom)
    counts = hyperparameters.degrees_of_freedom + specification.group_sizes
    base = np.sqrt(np.reshape(counts, (*shape, 1, 1))) * hyperparameters.scale[:, None]
    root = pt.linalg.inv(declared.factor / base).mT
    covariances = pm.Deterministic(
        names.COVARIANCES, root @ root.mT, dims=(*dims, names.FEATURE, names.FEATURE_BIS)
    )
    grouped = covariances if dims else covariances[None]
    # As cov, not as tau: PyMC's density of a precision takes no batch of matrices.
    means = pm.MvNormal.dist(
        mu=hyperparameters.location,
        cov=grouped[specification.covariance_group] / np.float64(hyperparameters.mean_precision),
        shape=(k, d),
    )
    # Means lead the coordinates although their prior depends on the precisions.
    model = pm.modelcontext(None)
    means = model.register_rv(means, names.MEANS, dims=(names.COMPONENT, names.FEATURE))
    for name, (variable, axis) in declared.variables.items():
        model.register_rv(variable, name, dims=(*dims, *axis))
    return means, grouped


@dataclass(frozen=True)
class Precisions:
    """Variables of a shape that are not yet in a model, and the factor A that they make up."""

    variables: dict[str, tuple[TensorVariable, tuple[str, ...]]]  # With the dims after the groups'.
    factor: TensorVariable  # (*group, feature, feature).


def full_precisions(d: int, groups: tuple[int, ...], freedom: float) -> Precisions:
    r"""Full covariances.

    .. math:: A_{ii}^2 \sim \mathrm{Gamma}(\nu_0 / 2 + 1, 1/2), \quad A_{ij} \sim N(0, 1), \; i > j
    """
    diagonal = diagonal_precisions(d, groups, freedom)
    if d == 1:
        return diagonal
    rows, columns = np.tril_indices(d, -1)
    lower = pm.Normal.dist(np.float64(0), np.float64(1), shape=(*groups, rows.size))
    variables = {**diagonal.variables, names.PRECISION_LOWER: (lower, (names.PRECISION_ENTRY,))}
    return Precisions(variables, diagonal.factor[..., rows, columns].set(lower))


def diagonal_precisions(d: int, groups: tuple[int, ...], freedom: float) -> Precisions:
    r"""Diagonal covariances: :math:`A_{ii}^2 \sim \mathrm{Gamma}(\nu_0 / 2 + 1, 1/2)`."""
    squares = pm.Gamma.dist(
        alpha=np.float64(freedom) / 2 + 1, beta=np.float64(1) / 2, shape=(*groups, d)
    )
    factor = pt.sqrt(squares)[..., None] * np.eye(d)
    return Precisions({names.PRECISION_DIAGONAL: (squares, (names.FEATURE,))}, factor)


def spherical_precisions(d: int, groups: tuple[int, ...], freedom: float) -> Precisions:
    r"""Spherical: :math:`A = \sqrt a I`, :math:`a \sim \mathrm{Gamma}(D \nu_0 / 2 + 1, D/2)`."""
    size = np.float64(d)
    square = pm.Gamma.dist(alpha=size * np.float64(freedom) / 2 + 1, beta=size / 2, shape=groups)
    factor = pt.sqrt(square)[..., None, None] * np.eye(d)
    return Precisions({names.PRECISION_DIAGONAL: (square, ())}, factor)


SHAPES: Final[dict[str, Callable[[int, tuple[int, ...], float], Precisions]]] = {
    "full": full_precisions,
    "diag": diagonal_precisions,
    "spherical": spherical_precisions,
}


def declare_categories(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> tuple[TensorVariable, ...]:
    """Declare the level probabilities of every categorical column."""
    shape = (specification.n_components, 1)
    return tuple(
        pm.Dirichlet(
            names.category_probability(j),
            a=np.tile(concentration, shape),
            dims=(names.COMPONENT, names.category_level(j)),
        )
        for j, concentration in enumerate(hyperparameters.category_concentrations)
    )
