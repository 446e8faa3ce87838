"""The declared graph of an RBF network: a mixture, its link, an output layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int
from pytensor.graph.basic import Variable
from pytensor.tensor import TensorVariable

from bayesrbf.base import names
from bayesrbf.base.priors import Objective
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.families.rbf_network.records import RBFNetworkHyperparameters, RBFNetworkSpecification
from bayesrbf.models.densities import (
    MixtureNodes,
    declare_categories,
    declare_normals,
    elastic_net,
    half_elastic_net,
    label_draw,
    label_logp,
)
from bayesrbf.models.mixture import Axes, RowMixture, check_rows, coords, declare_marginal

# The output layer of a declared RBF network: its prior, and the responses.


Coefficients = Literal["signed", "halves"]

RESPONSE_WEIGHT = "response_weight"


class OutputLayer:
    """Output weights and intercepts; made before the mixture weights, registered after.

    The weights come with their sign, or in two halves that are bounded at 0.
    """

    def __init__(
        self,
        specification: RBFNetworkSpecification,
        hyperparameters: RBFNetworkHyperparameters,
        kind: Coefficients,
    ) -> None:
        self._numeric = specification.response != "classes"
        self._law = (
            (_log_number_logp, _log_number_draw)
            if specification.response == "log_number"
            else (_number_logp, _number_draw)
        )
        self._prior = hyperparameters
        k, c = specification.mixture.n_components, specification.n_outputs
        shape = (k,) if self._numeric else (c, k)
        l1, l2 = np.float64(hyperparameters.l1), np.float64(hyperparameters.l2)
        self._nodes = (
            {names.COEFFICIENTS: elastic_net(l1, l2, shape)}
            if kind == "signed"
            else {f"{names.COEFFICIENTS}_{s}": half_elastic_net(l1, l2, shape) for s in "pm"}
        )
        first, *second = self._nodes.values()
        self._weights = first - second[0] if second else first
        self._dims = (names.COMPONENT,) if self._numeric else (names.CLASS_LABEL, names.COMPONENT)

    @property
    def sizes(self) -> TensorVariable:
        """``sum_c |w_ck|`` of every component."""
        return abs(self._weights) if self._numeric else abs(self._weights).sum(axis=0)

    def register(self) -> None:
        """Register the weights under their names; declare intercepts and noise precision."""
        model = pm.modelcontext(None)
        for name, variable in self._nodes.items():
            model.register_rv(variable, name, dims=self._dims, default_transform=None)
        if len(self._nodes) == 2:
            pm.Deterministic(names.COEFFICIENTS, self._weights, dims=self._dims)
        dims = () if self._numeric else (names.CLASS_LABEL,)
        scale = np.float64(self._prior.intercept_scale)
        self._intercepts = pm.Normal(names.INTERCEPTS, np.float64(0), scale, dims=dims)
        if self._numeric:
            self._precision = pm.Gamma(
                names.NOISE_PRECISION,
                alpha=np.float64(self._prior.noise_shape),
                beta=np.float64(self._prior.noise_rate),
            )

    def observe(
        self,
        row_features: TensorVariable,
        responses: Int[np.ndarray, " obs"] | Float[np.ndarray, " obs"],
        weights: Float[np.ndarray, " obs"],
        units: Standardisation | None,
    ) -> None:
        """Declare the node ``y``.

        Responses are class codes, -1 where hidden; or numbers, NaN where hidden, with location and
        scale of them or of their logarithms, which are in standard units if ``units`` is None.
        """
        linear = row_features @ self._weights.T + self._intercepts
        row_weight = pm.Data(RESPONSE_WEIGHT, weights, dims=names.OBS)
        if not self._numeric:
            pm.CustomDist(
                names.OBSERVED_LABEL,
                linear,
                row_weight,
                logp=label_logp,
                dist=label_draw,
                observed=responses,
                dims=names.OBS,
            )
            return
        known = pm.Data("response_observed", (~np.isnan(responses)) * 1.0, dims=names.OBS)
        location, scale = (0.0, 1.0) if units is None else (units.location, units.scale)
        logp, draw = self._law
        pm.CustomDist(
            names.OBSERVED_LABEL,
            linear * scale + location,
            self._precision / np.float64(np.squeeze(scale)) ** 2,
            known * row_weight,
            logp=logp,
            dist=draw,
            observed=np.nan_to_num(responses, nan=1.0),
            dims=names.OBS,
        )


def _number_logp(
    value: TensorVariable,
    linear: TensorVariable,
    precision: TensorVariable,
    row_weight: TensorVariable,
) -> TensorVariable:
    """Weighted log densities of numbers about the linear output."""
    log_density = pt.log(precision) - np.log(2 * np.pi) - precision * (value - linear) ** 2
    return row_weight * 0.5 * log_density


def _number_draw(
    linear: TensorVariable, precision: TensorVariable, row_weight: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw one number a row; row weights do not change the draw."""
    return pm.Normal.dist(linear, precision**-0.5)


def _log_number_logp(
    value: TensorVariable,
    linear: TensorVariable,
    precision: TensorVariable,
    row_weight: TensorVariable,
) -> TensorVariable:
    """Weighted log densities of numbers whose logarithms are about the linear output."""
    log_value = pt.log(value)
    return _number_logp(log_value, linear, precision, row_weight) - row_weight * log_value


def _log_number_draw(
    linear: TensorVariable, precision: TensorVariable, row_weight: TensorVariable, size: Variable
) -> TensorVariable:
    """Draw one positive number a row; row weights do not change the draw."""
    return pt.exp(_number_draw(linear, precision, row_weight, size))


# Equal to SMALLEST_SIZE and LARGEST_LOG_DENSITY of the numerics, so that densities agree.
SMALLEST_SHARE = np.float64(1e-6)
LARGEST_LOG_DENSITY = np.float64(300.0)


def declare_rbf_network(
    observations: Observations,
    responses: Int[np.ndarray, " obs"] | Float[np.ndarray, " obs"],
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    *,
    coefficients: Coefficients = "signed",
    response_units: Standardisation | None = None,
    feature_names: Sequence[object] | None = None,
    categorical_names: Sequence[object] | None = None,
    level_names: Sequence[Sequence[object]] | None = None,
    class_names: Sequence[object] | None = None,
    obs_names: Sequence[object] | None = None,
) -> pm.Model:
    r"""Declare a mixture over rows with holes, and responses given its features.

    .. math::
       w &\sim \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2), \quad b \sim N(0, s_b^2), \quad
       \pi \mid w \sim \mathrm{Dirichlet}(a + \gamma\, s(w)), \\
       x &\sim \Bigl(\sum_k \pi_k\, p(x \mid k)\Bigr)^{\kappa}, \quad
       y \mid x \sim \mathrm{softmax}(w f(x) + b)

    A numeric response, or its logarithm, is :math:`N(w f(x) + b, 1/\tau)` in standard units,
    :math:`\tau \sim \mathrm{Gamma}`. Densities are of the response itself in either case.

    Parameters
    ----------
    observations : Observations
        Rows, in the user's units; their labels play no part.
    responses : ndarray of shape (n_obs,)
        Class codes, -1 where hidden; or numbers, NaN where hidden.
    specification : RBFNetworkSpecification
        Structure of the network.
    hyperparameters : RBFNetworkHyperparameters
        Resolved prior, in the user's units.
    coefficients : {"signed", "halves"}
        ``"signed"``: output weights under the Laplace x normal density.
        ``"halves"``: their positive and negative halves, both bounded at 0, in which
        the mode is found; it needs ``l1 > 0``. Where one half is zero the two differ
        by a constant.
    response_units : Standardisation, optional
        Location and scale, each of one entry, of the numbers or of the logarithms that the
        structure models: the linear output and its noise are in standard units. None: 0 and 1.
    feature_names, categorical_names : sequence, optional
        Names of the real and of the categorical columns.
    level_names : sequence of sequences, optional
        Levels of every categorical column.
    class_names, obs_names : sequence, optional
        Names of the classes and of the rows.

    Returns
    -------
    pm.Model
        Observed ``x`` (obs, column) and ``y`` (obs). Draws of ``y`` follow those of ``x``.

    Raises
    ------
    ValueError
        If rows, prior and names do not fit the structure, or if halves are asked for
        without ``l1``.

    Notes
    -----
    ``row_weight`` holds :math:`\kappa v` and ``response_weight`` v, with the row weights v:
    powers of densities, without a generative story. Draws never depend on them.

    References
    ----------
    The priors of the mixture: :func:`bayesrbf.models.densities.declare_priors`. The link:
    Caetano (2018), eq. 21.

    Examples
    --------
    >>> from bayesrbf.base.priors import MixtureHyperparameters
    >>> from bayesrbf.base.rows import MixtureSpecification
    >>> rows = Observations(
    ...     real=np.array([[0.0], [2.0], [np.nan]]), codes=np.zeros((3, 0), int),
    ...     labels=np.zeros(3, int), weights=np.ones(3))
    >>> mixture = MixtureSpecification(1, (), (0, 0), "diag")
    >>> prior = MixtureHyperparameters(2.0, 0.1, np.ones(1), np.ones(1), 1.5, 2.0, ())
    >>> model = declare_rbf_network(
    ...     rows, np.array([0, 1, -1]), RBFNetworkSpecification(mixture, 2),
    ...     RBFNetworkHyperparameters(prior, l1=0.0, l2=1.0, link=10.0))
    >>> [variable.name for variable in model.free_RVs]
    ['weights', 'means', 'precision_diagonal', 'coefficients', 'intercepts']
    """
    if coefficients not in get_args(Coefficients):
        raise ValueError(
            f"coefficients must be one of {get_args(Coefficients)}; received {coefficients!r}."
        )
    if coefficients == "halves" and hyperparameters.l1 == 0:
        raise ValueError("coefficients='halves' needs l1 > 0: without it nothing has a kink.")
    structure = specification.mixture
    density_rows = replace(
        observations,
        labels=np.zeros_like(observations.labels),
        weights=hyperparameters.kappa * observations.weights,
    )
    check_rows(density_rows, structure, hyperparameters.mixture)
    axes = Axes(feature_names, categorical_names, level_names, None, obs_names)
    axis_names = coords(density_rows, structure, axes)
    if specification.response == "classes":
        axis_names[names.CLASS_LABEL] = _class_names(class_names, specification.n_outputs)
    with pm.Model(coords=axis_names) as model:
        layer = OutputLayer(specification, hyperparameters, coefficients)
        nodes = _declare_hidden(specification, hyperparameters, layer.sizes)
        layer.register()
        declare_marginal(density_rows, structure, nodes, Objective())
        row_features = _features(model[names.OBSERVED], nodes, specification, hyperparameters)
        layer.observe(row_features, responses, observations.weights, response_units)
    return model


def _declare_hidden(
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    sizes: TensorVariable,
) -> MixtureNodes:
    """Priors of the mixture, its weights linked to the output weights."""
    structure, prior = specification.mixture, hyperparameters.mixture
    k = structure.n_components
    component_class = pm.Data(
        names.COMPONENT_CLASS, np.zeros(k, dtype=np.intp), dims=names.COMPONENT
    )
    if k == 1:
        weights = pt.ones(1)
    else:
        positive = sizes + SMALLEST_SHARE
        share = positive / positive.sum()
        concentration = np.float64(prior.weight_concentration)
        weights = pm.Dirichlet(
            names.WEIGHTS,
            a=concentration + np.float64(hyperparameters.link) * share,
            dims=names.COMPONENT,
        )
    means, covariances = declare_normals(structure, prior)
    return MixtureNodes(
        component_probabilities=weights,
        component_class=component_class,
        means=means,
        covariances=covariances,
        category_probabilities=declare_categories(structure, prior),
    )


def _features(
    rows: TensorVariable,
    nodes: MixtureNodes,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
) -> TensorVariable:
    """Features (obs, component) of a value matrix, missing cells summed out."""
    structure = specification.mixture
    d = structure.n_features
    cell_observed = pm.modelcontext(None)["cell_observed"]
    law = RowMixture(
        n_features=d,
        n_categorical=len(structure.levels),
        covariance_group=tuple(int(g) for g in structure.covariance_group),
        independent=structure.independent,
    )
    log_joint = law.joint(
        rows,
        nodes.component_probabilities,
        nodes.means,
        nodes.covariances,
        cell_observed,
        *nodes.category_probabilities,
    )
    if specification.features == "responsibility":
        return pm.math.softmax(log_joint, axis=1)
    log_density = log_joint - pt.log(nodes.component_probabilities)
    # In standard units, and without the normal's own constant.
    constants = np.log(hyperparameters.mixture.scale) + 0.5 * np.log(2 * np.pi)
    log_density += (cell_observed[:, :d] @ constants)[:, None]
    if specification.features == "log_density":
        return log_density / np.float64(d + len(structure.levels))
    return pt.exp(pt.minimum(log_density, LARGEST_LOG_DENSITY))


def _class_names(class_names: Sequence[object] | None, n_classes: int) -> Sequence[object]:
    """Names of the classes, else their positions."""
    if class_names is None:
        return range(n_classes)
    if len(class_names) != n_classes:
        raise ValueError(f"class_names must have {n_classes} entries; received {len(class_names)}.")
    return tuple(class_names)
