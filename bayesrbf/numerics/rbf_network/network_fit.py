"""The MAP fit of a declared RBF network: EM, then the output layer, then both together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.mixture_fit import fit_mixture
from bayesrbf.numerics.rbf_network.elastic_net_output import Output, OutputLayer, fit_output_layer
from bayesrbf.numerics.rbf_network.network_rows import Network
from bayesrbf.numerics.rbf_network.penalised_maximisation import Smooth, maximise_in_halves
from bayesrbf.numerics.rbf_network.rbf_network_log_posterior import RBFNetworkLogPosterior
from bayesrbf.records.mixture import Observations
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.records.results import Status


@dataclass(frozen=True)
class NetworkFit:
    """A fitted network and the way there."""

    parameters: RBFNetworkParameters  # The point, in standard units.
    joint: Float[np.ndarray, " iteration"]
    """Log posterior density without Jacobian at the start and after every iteration, in nats, in
    standard units."""
    conditional: Float[np.ndarray, " iteration"]
    """``sum_n v_n log p(y_n | f(x_n))`` at the same points."""
    status: Status
    violation: float
    """Largest entry of the smallest subgradient at the point, in nats per unit of a standard
    coordinate; NaN where a scheme has no single objective."""
    specification: RBFNetworkSpecification
    """Structure of the point: components may have left or joined."""

    @property
    def falls(self) -> int:
        """Number of iterations that lowered the joint objective by more than rounding."""
        return count_falls(self.joint)


def count_falls(path: Float[np.ndarray, " iteration"]) -> int:
    """Count the iterations that lowered an objective by more than rounding."""
    rounding = 1e-10 * np.maximum(1.0, np.abs(path[:-1]))
    return int((np.diff(path) < -rounding).sum())


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
    conditional = []
    theta = target.pack(start)
    last = theta, target.smooth_and_conditional(theta)  # what is watched was evaluated before

    def at(theta: np.ndarray) -> tuple[Smooth, float]:
        nonlocal last
        if not np.array_equal(last[0], theta):
            last = theta, target.smooth_and_conditional(theta)
        return last[1]

    def smooth(theta: np.ndarray) -> Smooth:
        return at(theta)[0]

    def watch(theta: np.ndarray) -> None:
        conditional.append(at(theta)[1])

    watch(theta)
    if not np.isfinite(smooth(theta).value):
        nothing, way = np.full(1, -np.inf), np.array(conditional)
        return NetworkFit(start, nothing, way, Status.DEGENERATE, np.nan, specification)
    weights = np.zeros(theta.size, dtype=bool)
    weights[target.coefficient_places] = True
    found = maximise_in_halves(
        smooth,
        theta,
        np.where(weights, hyperparameters.l1, 0.0),
        weights & (hyperparameters.l1 > 0 or hyperparameters.link > 0),
        max_iter=max_iter,
        tolerance=tol * float(observations.weights.sum()),
        watch=watch,
    )
    return NetworkFit(
        target.unpack(found.theta),
        found.path,
        np.array(conditional),
        Status.CONVERGED if found.stopped else Status.MAX_ITER,
        found.violation,
        specification,
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
        specification,
        hyperparameters,
        OutputLayer.empty(specification),
    )
    return RBFNetworkParameters(
        mixture, layer.coefficients, layer.intercepts, layer.noise_precision
    )
