"""The declared graph of an RBF network: a mixture, its link, an output layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from jaxtyping import Float, Int
from pytensor.tensor import TensorVariable

from bayesrbf.models.mixture_priors import MixtureNodes, declare_categories, declare_normals
from bayesrbf.models.output_layer import Coefficients, OutputLayer
from bayesrbf.models.row_mixture import RowMixture
from bayesrbf.models.row_nodes import Axes, check_rows, coords, declare_marginal
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.objective import Objective
from bayesrbf.records.rbf_network import RBFNetworkHyperparameters, RBFNetworkSpecification

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

    A numeric response is :math:`N(w f(x) + b, 1/\tau)` in standard units,
    :math:`\tau \sim \mathrm{Gamma}`.

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
        Location and scale of numbers, each of one entry: the linear output and its noise
        are in standard units. None: the numbers are in standard units.
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
    The priors of the mixture: :func:`bayesrbf.models.mixture_priors.declare_priors`. The link:
    Caetano (2018), eq. 21.

    Examples
    --------
    >>> from bayesrbf.records.priors import MixtureHyperparameters
    >>> from bayesrbf.records.specification import MixtureSpecification
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
        weights = pm.Deterministic(names.WEIGHTS, pt.ones(1), dims=names.COMPONENT)
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


def _class_names(given: Sequence[object] | None, n_classes: int) -> Sequence[object]:
    """Names of the classes, else their positions."""
    if given is None:
        return range(n_classes)
    if len(given) != n_classes:
        raise ValueError(f"class_names must have {n_classes} entries; received {len(given)}.")
    return tuple(given)
