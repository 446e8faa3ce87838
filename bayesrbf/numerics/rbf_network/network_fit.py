"""The MAP fit of a declared RBF network: EM, then the output layer, then both together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture import mixture_points
from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.rbf_network.elastic_net_output import Output, OutputLayer, fit_output_layer
from bayesrbf.numerics.rbf_network.network_rows import Network
from bayesrbf.numerics.rbf_network.penalised_maximisation import maximise_in_halves
from bayesrbf.numerics.rbf_network.rbf_network_log_posterior import RBFNetworkLogPosterior
from bayesrbf.records.mixture import Observations
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.records.results import Status
from bayesrbf.records.specification import Order


@dataclass(frozen=True)
class NetworkFit:
    """A fitted network and the way there."""

    parameters: RBFNetworkParameters  # The point, in standard units.
    joint: Float[np.ndarray, " iteration"]
    """Log posterior density without Jacobian at the start and after every iteration, in nats, in
    standard units."""
    status: Status
    violation: float
    """Largest entry of the smallest subgradient at the point, in nats per unit of a standard
    coordinate."""


def reordered(
    parameters: RBFNetworkParameters, order: Order, specification: RBFNetworkSpecification
) -> RBFNetworkParameters:
    """Put columns and classes in another order than the specification's."""
    return RBFNetworkParameters(
        mixture_points.reordered(parameters.mixture, order.of_one_class, specification.mixture),
        parameters.coefficients[order.classes],
        parameters.intercepts[order.classes],
        parameters.noise_precision,
    )


def fit_joint(
    observations: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    *,
    rng: np.random.Generator,
    n_init: int = 4,
    max_iter: int = 1000,
    tol: float = 1e-6,
    start: RBFNetworkParameters | None = None,
) -> NetworkFit:
    """Find a mode of the declared joint (without Jacobian), starting from EM.

    Rows are in standard units, and their labels are not used. EM has ``n_init`` starts; a given
    ``start`` takes their place. Both EM and the joint ascent have at most ``max_iter``
    iterations and end when one gains at most ``tol`` nats per unit of row weight.
    """
    target = RBFNetworkLogPosterior(observations, output, specification, hyperparameters)
    if start is None:
        em = EMSettings(rng, n_init, max_iter, tol)
        start = _em_start(observations, output, specification, hyperparameters, em)
    theta = target.pack(start)
    if not np.isfinite(target.smooth(theta).value):
        return NetworkFit(start, np.full(1, -np.inf), Status.DEGENERATE, np.nan)
    weights = np.zeros(theta.size, dtype=bool)
    weights[target.coefficient_places] = True
    found = maximise_in_halves(
        target.smooth,
        theta,
        np.where(weights, hyperparameters.l1, 0.0),
        weights & (hyperparameters.l1 > 0 or hyperparameters.link > 0),
        max_iter=max_iter,
        tolerance=tol * float(observations.weights.sum()),
    )
    return NetworkFit(
        target.unpack(found.theta),
        found.path,
        Status.CONVERGED if found.stopped else Status.MAX_ITER,
        found.violation,
    )


@dataclass(frozen=True)
class EMSettings:
    """How the start of a hidden layer is fitted."""

    rng: np.random.Generator
    n_init: int
    max_iter: int
    tol: float


def _em_start(
    observations: Observations,
    output: Output,
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    em: EMSettings,
) -> RBFNetworkParameters:
    """EM for the hidden layer, then the output layer on its features."""
    mixture = fit_mixture(
        # As rows of one class: labels have no say in the hidden layer's start.
        replace(observations, labels=np.zeros_like(observations.labels)),
        specification.mixture,
        hyperparameters.mixture,
        rng=em.rng,
        n_init=em.n_init,
        max_iter=em.max_iter,
        tol=em.tol,
    ).parameters
    layer = fit_output_layer(
        Network(observations, specification).features(mixture),
        output,
        observations.weights,
        hyperparameters,
        OutputLayer.empty(specification),
    )
    return RBFNetworkParameters(
        mixture, layer.coefficients, layer.intercepts, layer.noise_precision
    )
