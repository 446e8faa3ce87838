"""Priors of a mixture as named nodes; their mode is the fixed point of EM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayesrbf.records import names
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


@dataclass(frozen=True)
class MixtureNodes:
    """What the rows of a mixture depend on."""

    component_probabilities: TensorVariable  # (component,): p(class) p(component | class).
    component_class: TensorVariable  # (component,), as constant data.
    means: TensorVariable  # (component, feature), in the user's units.
    covariances: TensorVariable  # (group, feature, feature), in the user's units squared.
    # (component, level) of each categorical column.
    category_probabilities: tuple[TensorVariable, ...]


def group_dims(specification: MixtureSpecification) -> tuple[str, ...]:
    """Dims of the covariances' groups: of components, of classes, or none for a single one.

    Examples
    --------
    >>> group_dims(MixtureSpecification(2, (), (0, 1), "tied"))
    ('label',)
    """
    if specification.covariance_type == "tied" or specification.tied:
        per_class = not specification.tied and specification.n_classes > 1
        return (names.LABEL,) if per_class else ()
    return (names.COMPONENT,)


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
    return pm.Dirichlet(names.CLASS_PROBABILITIES, a=concentration, dims=names.LABEL)


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
    dims = group_dims(specification)
    diagonal, lower, factor = _precision_factor(specification, hyperparameters)
    inverse = pt.linalg.inv(factor)
    covariances = pm.Deterministic(
        names.COVARIANCES,
        inverse.mT @ inverse,
        dims=(*dims, names.FEATURE, names.FEATURE_BIS),
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
    axes = (names.FEATURE,) if specification.shape != "spherical" else ()
    model.register_rv(diagonal, names.PRECISION_DIAGONAL, dims=(*dims, *axes))
    if lower is not None:
        model.register_rv(lower, names.PRECISION_LOWER, dims=(*dims, names.PRECISION_ENTRY))
    return means, grouped


def _precision_factor(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> tuple[TensorVariable, TensorVariable | None, TensorVariable]:
    r"""Free part of A, and L = L0 A.

    .. math:: A_{ii}^2 \sim \mathrm{Gamma}(\nu_0 / 2 + 1, 1/2), \quad
        A_{ij} \sim N(0, 1), \; i > j

    Spherical: one d ~ Gamma(D nu0 / 2 + 1, rate D / 2) and A = sqrt(d) I.
    """
    d, freedom = specification.n_features, np.float64(hyperparameters.degrees_of_freedom)
    groups = specification.group_sizes
    batch = groups.shape if group_dims(specification) else ()
    spherical = specification.shape == "spherical"
    multiplier = np.float64(d if spherical else 1)
    diagonal = pm.Gamma.dist(
        alpha=multiplier * freedom / 2 + 1,
        beta=multiplier / 2,
        shape=batch if spherical else (*batch, d),
    )
    roots = pt.sqrt(diagonal[..., None] if spherical else diagonal)
    factor = roots[..., None] * np.eye(d)
    lower = None
    if specification.shape == "full" and d > 1:
        rows, columns = np.tril_indices(d, -1)
        lower = pm.Normal.dist(np.float64(0), np.float64(1), shape=(*batch, rows.size))
        factor = factor[..., rows, columns].set(lower)
    counts = np.reshape(freedom + groups, (*batch, 1, 1))
    return diagonal, lower, factor / (np.sqrt(counts) * hyperparameters.scale[:, None])


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
