"""Log densities, priors and column transforms that the declared graphs share, in PyTensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable
from pytensor.tensor.linalg import solve_triangular

from bayesrbf.base import names
from bayesrbf.base.priors import MIN_EXPONENT, MixtureHyperparameters, PowerTransforms
from bayesrbf.base.rows import MixtureSpecification

# Log densities and draws that the graphs share, in PyTensor.
#
# Nothing here knows priors or names: symbolic arrays in, symbolic arrays out. Leading axes
# broadcast, so that one function serves a row given its component and a row against all components.
# A missing cell is zero-filled and its entry of the mask is 0; it is integrated out exactly, never
# imputed.


LOG_TWO_PI = np.log(2 * np.pi)

FAR_EDGE = np.float64(30)
"""Standard deviations beyond which a normal tail is taken for exponential; erfc is 0 at 38."""


def observed_cholesky(covariances: TensorVariable, observed: TensorVariable) -> TensorVariable:
    r"""Cholesky factor of the covariance of the observed cells, padded by the identity.

    .. math:: S = \Sigma \circ m m^\top + \mathrm{diag}(1 - m), \qquad S = C C^\top

    Observed and missing cells are uncorrelated in S and missing ones have
    variance one, so :math:`|S| = |\Sigma_{oo}|`.
    """
    missing = pt.eye(observed.shape[-1]) * (1 - observed)[..., None, :]
    return pt.linalg.cholesky(
        covariances * observed[..., :, None] * observed[..., None, :] + missing
    )


def normal_logp(
    real: TensorVariable, observed: TensorVariable, means: TensorVariable, cholesky: TensorVariable
) -> TensorVariable:
    r"""Log density of the observed cells of a multivariate normal; ``cholesky`` is C.

    .. math:: \log N(x_o; \mu_o, \Sigma_{oo})
        = -\tfrac12 |C^{-1} e|^2 - \sum_i \log C_{ii} - \tfrac{|o|}{2} \log 2\pi,
        \qquad e = (x - \mu) \circ m
    """
    whitened = solve_triangular(cholesky, (real - means) * observed, lower=True, b_ndim=1)
    log_determinant = pt.log(pt.diagonal(cholesky, axis1=-2, axis2=-1)).sum(-1)
    return -0.5 * ((whitened**2).sum(-1) + observed.sum(-1) * LOG_TWO_PI) - log_determinant


def independent_normal_logp(
    real: TensorVariable, observed: TensorVariable, means: TensorVariable, variances: TensorVariable
) -> TensorVariable:
    r"""Log density of the observed cells of independent normals.

    .. math:: \sum_i m_i \log N(x_i; \mu_i, \sigma_i^2)
    """
    log_density = (real - means) ** 2 / variances + pt.log(variances) + LOG_TWO_PI
    return -0.5 * (observed * log_density).sum(-1)


def category_logp(
    code: TensorVariable, observed: TensorVariable, probabilities: TensorVariable
) -> TensorVariable:
    r"""Log probability of a category, 0 where it is missing.

    .. math:: m \log \theta_{x}
    """
    level = pt.arange(probabilities.shape[-1])
    chosen = pt.eq(level, code[..., None]) * observed[..., None] > 0
    return pt.log(pt.switch(chosen, probabilities, 0).sum(-1) + (1 - observed))


def normal_draw(means: TensorVariable, covariances: TensorVariable) -> TensorVariable:
    r"""One draw a row of multivariate normals.

    .. math:: x = \mu + C z, \qquad z_i \sim N(0, 1), \qquad C C^\top = \Sigma
    """
    noise = pm.Normal.dist(shape=means.shape)
    return means + (pt.linalg.cholesky(covariances) * noise[:, None, :]).sum(-1)


def masked_category_draw(
    probabilities: TensorVariable, observed: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw categories from ``probabilities``; 0 where the cell is missing."""
    return pm.Categorical.dist(p=probabilities) * pt.cast(observed, "int64")


def label_logp(
    value: TensorVariable, logits: TensorVariable, row_weight: TensorVariable
) -> TensorVariable:
    """Weighted log probability of every label in nats; 0 where it is hidden (code -1).

    The logits are log probabilities up to a constant a row.
    """
    log_p = logits - pm.math.logsumexp(logits, axis=1, keepdims=True)
    of_label = log_p[pt.arange(log_p.shape[0]), value]
    return pt.switch(pt.ge(value, 0), row_weight * of_label, 0.0)


def label_draw(logits: TensorVariable, row_weight: TensorVariable, size: Any) -> TensorVariable:
    """A label for every row; a weight has no generative story, and PyMC's size is not needed."""
    return pm.Categorical.dist(logit_p=logits)


def elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    r"""Independent, unregistered variables with the elastic net's density.

    .. math:: p(w) = \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2) / Z, \quad
        Z = \sqrt{2 \pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2})

    They are Laplace or normal where one factor is absent; one of the two must be there.
    """
    if l2 == 0:
        return pm.Laplace.dist(np.float64(0), 1 / l1, shape=shape)
    if l1 == 0:
        return pm.Normal.dist(np.float64(0), l2**-0.5, shape=shape)
    return pm.CustomDist.dist(
        l1,
        l2,
        logp=_elastic_net_logp,
        dist=_elastic_net_draw,
        class_name="ElasticNet",
        shape=shape,
        ndim_supp=0,
    )


def half_elastic_net(l1: np.float64, l2: np.float64, shape: tuple[int, ...]) -> TensorVariable:
    """Independent halves of such variables: the same density, from 0 upwards; ``l1`` is positive.

    They are exponential where ``l2`` is 0, else a truncated normal.
    """
    if l2 == 0:
        return pm.Exponential.dist(lam=l1, shape=shape)
    return pm.TruncatedNormal.dist(-l1 / l2, l2**-0.5, lower=np.float64(0), shape=shape)


def _elastic_net_logp(
    value: TensorVariable, l1: TensorVariable, l2: TensorVariable
) -> TensorVariable:
    """Log density of every variable in nats, normalised."""
    constant = 0.5 * pt.log(2 * np.pi / l2) + pt.log(pt.erfcx(l1 / pt.sqrt(2 * l2)))
    return -l1 * abs(value) - 0.5 * l2 * value**2 - constant


def _elastic_net_draw(l1: TensorVariable, l2: TensorVariable, size: Variable) -> TensorVariable:
    """Draw ``|x|`` by inverting its distribution function, and a random sign.

    The size is a normal beyond ``edge``, moved there to 0; far out, where its tail leaves
    the range of floats, it is exponential.
    """
    uniform = pm.Uniform.dist(np.float64(0), np.float64(1), size=size)
    sign = 2 * pm.Bernoulli.dist(p=np.float64(0.5), size=size) - 1
    edge = l1 / pt.sqrt(l2)
    near = pt.minimum(edge, FAR_EDGE)
    beyond = np.sqrt(2) * pt.erfcinv(uniform * pt.erfc(near / np.sqrt(2))) - near
    return sign * pt.switch(edge < FAR_EDGE, beyond / pt.sqrt(l2), -pt.log(uniform) / l1)


# Transforms of real columns in a declared graph.
#
# The powers are data, not free variables: they are found from every column alone, before the
# mixture, so that given them the mixture keeps its conjugate priors. ``pm.set_data`` exchanges
# them.


@dataclass(frozen=True)
class TransformNodes:
    """Yeo-Johnson transform of every real column, its power a node of the graph."""

    transforms: PowerTransforms
    powers: TensorVariable

    def forward(self, real: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
        """Transformed cells, and the log derivative of the transform at every cell."""
        t = (real - self.transforms.location) / self.transforms.scale
        held = pt.clip(t, self.transforms.low, self.transforms.high)
        log_slope = self._log_slope(held)
        mapped = self._power(held) + pt.exp(log_slope) * (t - held)
        return self.transforms.location + self.transforms.scale * mapped, log_slope

    def backward(self, mapped: TensorVariable) -> TensorVariable:
        """Inverse transform of ``mapped``."""
        u = (mapped - self.transforms.location) / self.transforms.scale
        lowest, highest = (
            self._power(pt.as_tensor(end)) for end in (self.transforms.low, self.transforms.high)
        )
        inside = pt.clip(u, lowest, highest)
        exponent = self._exponent(inside)
        size = pt.abs(inside)
        none = pt.lt(pt.abs(exponent), MIN_EXPONENT)
        logs = pt.switch(none, size, pt.log1p(exponent * size) / pt.switch(none, 1.0, exponent))
        held = pt.sign(inside) * pt.expm1(logs)
        t = held + (u - inside) * pt.exp(-self._log_slope(held))
        return self.transforms.location + self.transforms.scale * t

    def _exponent(self, at: TensorVariable) -> TensorVariable:
        """``lambda`` at 0 and above, ``2 - lambda`` below."""
        return pt.switch(pt.ge(at, 0), self.powers, 2 - self.powers)

    def _power(self, held: TensorVariable) -> TensorVariable:
        """Yeo-Johnson's transformation psi."""
        exponent = self._exponent(held)
        none = pt.lt(pt.abs(exponent), MIN_EXPONENT)
        logs = pt.log1p(pt.abs(held))
        grown = pt.expm1(exponent * logs) / pt.switch(none, 1.0, exponent)
        return pt.sign(held) * pt.switch(none, logs, grown)

    def _log_slope(self, held: TensorVariable) -> TensorVariable:
        """``log psi'`` within the range of the training cells."""
        return (self.powers - 1) * pt.sign(held) * pt.log1p(pt.abs(held))


def masked_logp(
    transforms: PowerTransforms | None,
    value: TensorVariable,
    mean: TensorVariable,
    covariance: TensorVariable,
    observed: TensorVariable,
    *powers: TensorVariable,
) -> TensorVariable:
    """Log density of the observed real cells of a row, given its component."""
    change = 0.0
    if transforms is not None:
        value, log_slopes = TransformNodes(transforms, *powers).forward(value)
        change = pt.sum(log_slopes * observed, axis=-1)
    factors = observed_cholesky(covariance, observed)
    return normal_logp(value, observed, mean, factors) + change


def masked_draw(
    transforms: PowerTransforms | None,
    mean: TensorVariable,
    covariance: TensorVariable,
    observed: TensorVariable,
    *rest: Variable,
) -> TensorVariable:
    """Draw real cells given the component, 0 where missing; the last argument is a size."""
    real = normal_draw(mean, covariance)
    return (
        real if transforms is None else TransformNodes(transforms, *rest[:-1]).backward(real)
    ) * observed


# Priors of a mixture as named nodes; their mode is the fixed point of EM.


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
    r"""Declare the free variables of a mixture in the current PyMC model.

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
    n_classes = specification.n_classes
    simplices = []
    for c, components in enumerate(specification.class_slices):
        size = components.stop - components.start
        if size == 1:
            simplices.append(pt.ones(1))
            continue
        simplices.append(
            pm.Dirichlet(
                names.class_weights(c, n_classes),
                a=np.full(size, hyperparameters.weight_concentration),
                dims=names.class_components(c, n_classes),
            )
        )
    if n_classes == 1:
        return simplices[0]
    weights = pt.concatenate(simplices)
    if np.bincount(specification.component_class).min() == 1:  # whose weight is 1 in every draw
        return weights
    return pm.Deterministic(names.WEIGHTS, weights, dims=names.COMPONENT)


def declare_normals(
    specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
) -> tuple[TensorVariable, TensorVariable]:
    """Declare means and covariances; nothing for a table without real columns."""
    k, d = specification.n_components, specification.n_features
    if d == 0:
        return pt.zeros((k, 0)), pt.zeros((1, 0, 0))
    dims, shape = specification.group_dims, specification.group_shape
    declared = PRECISIONS[specification.shape](d, shape, hyperparameters.degrees_of_freedom)
    counts = hyperparameters.degrees_of_freedom + specification.group_sizes
    base = np.sqrt(np.reshape(counts, (*shape, 1, 1))) * hyperparameters.scale[:, None]
    root = pt.linalg.inv(declared.factor / base).mT
    covariances, axes = root @ root.mT, (*dims, names.FEATURE, names.FEATURE_BIS)
    if specification.independent:
        variances = pt.diagonal(covariances, axis1=-2, axis2=-1)
        variances = pm.Deterministic(names.COVARIANCES, variances, dims=axes[:-1])
        covariances = variances[..., None] * np.eye(d)
    else:
        covariances = pm.Deterministic(names.COVARIANCES, covariances, dims=axes)
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
    """Unregistered variables of a covariance shape, and the factor A as a function of them."""

    variables: dict[str, tuple[TensorVariable, tuple[str, ...]]]  # With the dims after the groups'.
    factor: TensorVariable  # (*group, feature, feature).


def full_precisions(d: int, groups: tuple[int, ...], freedom: float) -> Precisions:
    r"""Variables of full covariances.

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


PRECISIONS: Final[dict[str, Callable[[int, tuple[int, ...], float], Precisions]]] = {
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
