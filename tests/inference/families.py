"""Every family with a likelihood in continuous parameters, small: add a builder and it is held.

A builder returns the family's log posterior, its declared graph and its MAP, on a
table of some ten rows; ``tests/inference/test_plug.py`` states what must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pymc as pm
from scipy.optimize import minimize, root
from scipy.special import log_softmax

from bayesrbf import GammaPrecisions, MixturePrior
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.priors import POOL_PRIOR, Objective
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.families.kernel_network.posterior import (
    INTERCEPT_SD,
    KernelNetworkLogPosterior,
    fit_output,
)
from bayesrbf.families.rbf_network.fitted import fit_joint
from bayesrbf.families.rbf_network.posterior import Classes, RBFNetworkLogPosterior
from bayesrbf.families.rbf_network.records import RBFNetworkHyperparameters, RBFNetworkSpecification
from bayesrbf.families.sdgm.posterior import (
    SDGMLogPosterior,
    learned_specification,
    quadratic_basis,
)
from bayesrbf.families.sdgm.records import CompletedRows
from bayesrbf.families.stack.posterior import StackLogPosterior, equal_pool
from bayesrbf.fit.held_out import HeldOut
from bayesrbf.mixture.em import EMSettings
from bayesrbf.mixture.objective import HybridLogPosterior
from bayesrbf.models.kernel_network import declare_kernel_network
from bayesrbf.models.rbf_network import declare_rbf_network
from bayesrbf.models.sdgm import declare_sdgm
from bayesrbf.models.stack import declare_stack
from tests.models.configurations import Configuration, at_rest


@dataclass(frozen=True)
class Family:
    """One family on one table.

    Attributes
    ----------
    log_posterior : LogPosterior
        The numerics' form of the density.
    model : pm.Model
        The declared graph.
    map_point : ndarray of shape (dimension,)
        Mode of the density without Jacobian, converged to about 1e-8.
    weights : ndarray of shape (n_obs,)
        Row weights: the graph's likelihood is their product with ``pointwise``.
    """

    log_posterior: LogPosterior
    model: pm.Model
    map_point: np.ndarray
    weights: np.ndarray


def mixture(configuration: Configuration) -> Family:
    """A mixture, or a class-conditional one, where EM stands still."""
    return Family(
        configuration.log_posterior,
        configuration.declare(),
        at_rest(configuration),
        configuration.observations.weights,
    )


def kernel_network(n_classes: int) -> Family:
    """The output layer of a kernel network, one label hidden."""
    rng = np.random.default_rng(3)
    features, weights = rng.normal(size=(12, 3)) * [3.0, 1.0, 0.2], rng.uniform(0.5, 2.0, 12)
    labels = np.arange(12) % n_classes
    labels[-1] = -1
    log_posterior = KernelNetworkLogPosterior(features, labels, weights, n_classes, 0.4)
    model = declare_kernel_network(
        features,
        labels,
        weights,
        class_names=list("abc")[:n_classes],
        weight_precision=0.4,
        intercept_sd=INTERCEPT_SD,
    )
    theta = fit_output(log_posterior, tol=1e-9, max_iter=1000).theta
    return Family(log_posterior, model, theta, weights)


def stack(masks: bool = False) -> Family:
    """Weights and temperatures of three members on rows that they were not fitted to.

    With masks there are copies of the rows with cells hidden, too, one of them without a cell.
    """
    rng = np.random.default_rng(4)
    labels, weights = rng.integers(0, 3, 12), rng.uniform(0.5, 2.0, 12)
    scores = rng.normal(size=(12, 3, 3)) + 2 * np.eye(3)[labels][:, None] * [[1.0], [0.5], [0.1]]
    held = log_softmax(scores, axis=2)
    rows = HeldOut(held, labels, weights)
    if masks:
        copies = log_softmax(rng.normal(size=(12, 3, 3, 3)), axis=3)
        hidden = np.column_stack([np.where(np.arange(12) < 6, 0.0, 0.3), rng.random((12, 3))])
        hidden[3, 2] = 1.0
        shares = np.log([0.5, 0.3, 0.2])
        rows = HeldOut(held, labels, weights, copies, hidden, log_shares=shares)
    log_posterior = StackLogPosterior(rows)
    model = declare_stack(
        held,
        labels,
        rows.ignorable_weights,
        member_names=["laplace", "mixture", "normal_blend"],
        class_names=["a", "b", "c"],
        prior=POOL_PRIOR,
        masked=rows.masked,
        missing_fractions=rows.missing_fractions,
        log_shares=rows.log_shares,
    )

    def slope(theta: np.ndarray) -> np.ndarray:
        return log_posterior.value_and_gradient(theta, jacobian=False)[1]

    def falling(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(theta, jacobian=False)
        return -value, -gradient

    start = log_posterior.pack([equal_pool(3)] * (len(POOL_PRIOR.knots) if masks else 1))
    near = minimize(falling, start, jac=True, method="BFGS").x
    return Family(log_posterior, model, root(slope, near, tol=1e-12).x, rows.ignorable_weights)


def rbf_network() -> Family:
    """A linked mixture and its output layer, cells and labels hidden, at the joint's mode."""
    rng = np.random.default_rng(5)
    structure = MixtureSpecification(2, (), (0, 0), "diag")
    specification = RBFNetworkSpecification(structure, 2)
    labels = np.array([0, 1] * 6)
    real = rng.normal(size=(12, 2)) * 0.5 + 2.0 * labels[:, None]
    real[::5, 0] = np.nan
    rows = Observations(real, np.zeros((12, 0), int), np.zeros(12, int), rng.uniform(0.5, 2, 12))
    prior = MixturePrior().resolve(structure, Standardisation(np.zeros(2), np.ones(2)), ())
    hyper = RBFNetworkHyperparameters(prior, l1=0.0, l2=0.5, link=3.0, kappa=0.5)
    hidden = np.where(np.arange(12) == 3, -1, labels)
    log_posterior = RBFNetworkLogPosterior(rows, Classes(hidden), specification, hyper)
    fit = fit_joint(rows, Classes(hidden), specification, hyper, EMSettings(rng, tol=1e-14))

    def slope(theta: np.ndarray) -> np.ndarray:
        return log_posterior.value_and_gradient(theta, jacobian=False)[1]

    mode = root(slope, log_posterior.pack(fit.parameters), tol=1e-12).x
    model = declare_rbf_network(rows, hidden, specification, hyper)
    return Family(log_posterior, model, mode, rows.weights)


def climb(log_posterior: LogPosterior, start: np.ndarray) -> np.ndarray:
    """Mode without Jacobian, near a start."""
    scales = log_posterior.scales

    def falling(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = log_posterior.value_and_gradient(u * scales, jacobian=False)
        return -value, -slope * scales

    options = {"maxiter": 2000}
    near = minimize(falling, start / scales, jac=True, method="L-BFGS-B", options=options).x
    return root(lambda u: falling(u)[1], near, tol=1e-12).x * scales


def hybrid_mixture(objective: Objective) -> Family:
    """A Gibbs posterior: an objective in the place of the likelihood, away from EM's point."""
    configuration = Configuration("diag", "one", False, True, True, True, True, 2, 2)
    log_posterior = HybridLogPosterior(
        configuration.standard_observations,
        configuration.specification,
        configuration.hyperparameters,
        objective,
    )
    mode = climb(log_posterior, mixture(configuration).map_point)
    model = configuration.declare(objective=objective)
    return Family(log_posterior, model, mode, configuration.observations.weights)


def sdgm() -> Family:
    """Quadratic logits of three components with their precisions; sets of labels, completions."""
    rng = np.random.default_rng(6)
    units = Standardisation(np.array([2.0, 1.0]), np.array([1.0, 3.0]))
    sizes = np.array([1, 1, 3, 1, 2, 1, 1, 1])  # rows with holes have several completions
    allowed = np.array([[1, 0], [0, 1], [1, 0], [1, 1], [0, 1], [1, 0], [0, 1], [1, 0]], dtype=bool)
    points = units.backward(rng.normal(size=(sizes.sum(), 2)))
    rows = CompletedRows(points, np.cumsum(sizes) - sizes, allowed, rng.uniform(0.5, 2, 8))
    basis = quadratic_basis(2, ())
    specification = learned_specification((0, 1, 1), basis.n_features, GammaPrecisions(2.0, 0.7))
    log_posterior = SDGMLogPosterior(rows, basis, units, specification)
    mode = climb(log_posterior, 0.5 * rng.normal(size=log_posterior.dimension))
    return Family(
        log_posterior, declare_sdgm(rows, basis, units, specification), mode, rows.weights
    )


DENSITY = Configuration("diag", "two", False, True, True, False, True, 3, 1)
CLASSIFIER = Configuration("full", "unequal", False, True, True, True, True, 3, 2)

FAMILIES: dict[str, Callable[[], Family]] = {
    "mixture density": lambda: mixture(DENSITY),
    "class-conditional mixture": lambda: mixture(CLASSIFIER),
    "kernel network of two classes": lambda: kernel_network(2),
    "kernel network of three classes": lambda: kernel_network(3),
    "hinge of mixtures": lambda: hybrid_mixture(Objective("hinge", margin=2.0)),
    "stack": stack,
    "stack with masks": partial(stack, masks=True),
    "RBF network": rbf_network,
    "sparse discriminative mixture": sdgm,
}
