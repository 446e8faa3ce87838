"""Declared graphs that draw small tables, one a family, and the posteriors of what they draw.

The graph draws parameters and rows, the numerics are handed the rows: simulator and posterior
share no code. Which cells and labels are hidden is data of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pymc as pm
from scipy.special import log_softmax

from bayesrbf import GammaPrecisions
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.rows import Standardisation
from bayesrbf.families.kernel_network.posterior import INTERCEPT_SD, KernelNetworkLogPosterior
from bayesrbf.families.median_lvq.records import Dissimilarities, Prototypes, SigmaPrior
from bayesrbf.families.median_lvq.search import MedianLVQLogPosterior
from bayesrbf.families.sdgm.posterior import (
    SDGMLogPosterior,
    learned_specification,
    quadratic_basis,
)
from bayesrbf.families.sdgm.records import CompletedRows
from bayesrbf.families.stack.posterior import StackLogPosterior
from bayesrbf.fit.held_out import HeldOut
from bayesrbf.models.kernel_network import declare_kernel_network
from bayesrbf.models.median_lvq import declare_median_lvq
from bayesrbf.models.sdgm import declare_sdgm
from bayesrbf.models.stack import declare_stack

Drawn = dict[str, np.ndarray]
"""Values of the nodes of a graph, by name."""


@dataclass(frozen=True)
class Simulator:
    """A family on a table of some ten rows.

    ``target`` takes the drawn nodes to the posterior of the numerics; ``held`` to one whose hidden
    labels are known, so that its likelihood of row 0 is a held-out class probability. ``usable``
    says of what is observed whether it is a table to be fitted: whichever are left out, posteriors
    of the others are as they were.
    """

    model: Callable[[], pm.Model]
    target: Callable[[Drawn], LogPosterior]
    held: Callable[[Drawn], LogPosterior]
    usable: Callable[[Drawn], bool] = lambda drawn: True


def kernel_network() -> Simulator:
    """Multinomial logistic regression on three features, labels of three rows hidden.

    Its intercepts are so free that most tables have rows of one class alone.
    """
    features, ones = np.random.default_rng(3).normal(size=(12, 3)), np.ones(12)
    precision = 0.4

    def model() -> pm.Model:
        return declare_kernel_network(
            features,
            np.zeros(12, int),
            ones,
            class_names=list("abc"),
            weight_precision=precision,
            intercept_sd=INTERCEPT_SD,
        )

    def posterior(labels: np.ndarray) -> LogPosterior:
        return KernelNetworkLogPosterior(features, labels, ones, 3, precision)

    def usable(drawn: Drawn) -> bool:
        return np.unique(drawn["y"][~every_fourth(12)]).size == 3

    return replace(of_labels(model, posterior, 12), usable=usable)


def every_fourth(n_obs: int) -> np.ndarray:
    """Rows whose label is hidden."""
    return np.arange(n_obs) % 4 == 0


def of_labels(
    model: Callable[[], pm.Model], posterior: Callable[[np.ndarray], LogPosterior], n_obs: int
) -> Simulator:
    """A model of labels alone; every fourth is hidden."""
    hidden = every_fourth(n_obs)
    return Simulator(
        model,
        lambda drawn: posterior(np.where(hidden, -1, drawn["y"])),
        lambda drawn: posterior(np.where(hidden, 0, drawn["y"])),
    )


def stack() -> Simulator:
    """Weights and temperatures of three members; labels of a stack are all known."""
    rng, ones = np.random.default_rng(4), np.ones(16)
    held_out = log_softmax(rng.normal(size=(16, 3, 3)) * [[2.0], [1.0], [0.3]], axis=2)

    def model() -> pm.Model:
        return declare_stack(
            held_out[1:],
            np.zeros(15, int),
            ones[1:],
            member_names=["laplace", "mixture", "normal_blend"],
            class_names=["a", "b", "c"],
            prior=POOL_PRIOR,
        )

    return Simulator(
        model,
        lambda drawn: StackLogPosterior(HeldOut(held_out[1:], drawn["y"], ones[1:])),
        lambda drawn: StackLogPosterior(HeldOut(held_out, np.append(0, drawn["y"]), ones)),
    )


def sdgm() -> Simulator:
    """Three components of two classes with their precisions; hidden labels, rows completed."""
    units = Standardisation(np.array([2.0, 1.0]), np.array([1.0, 3.0]))
    sizes = np.array([1, 1, 3, 1, 2, 1, 1, 1, 1, 2])
    points = units.backward(np.random.default_rng(6).normal(size=(sizes.sum(), 2)))
    basis = quadratic_basis(2, ())
    specification = learned_specification((0, 1, 1), basis.n_features, GammaPrecisions(4.0, 2.0))
    hidden = every_fourth(10)

    def rows(allowed: np.ndarray) -> CompletedRows:
        return CompletedRows(points, np.cumsum(sizes) - sizes, allowed.astype(bool), np.ones(10))

    def posterior(allowed: np.ndarray) -> LogPosterior:
        return SDGMLogPosterior(rows(allowed), basis, units, specification)

    first = np.tile([1, 0], (10, 1))
    return Simulator(
        lambda: declare_sdgm(rows(first), basis, units, specification),
        lambda drawn: posterior(np.where(hidden[:, None], 1, drawn["y"])),
        lambda drawn: posterior(np.where(hidden[:, None], first, drawn["y"])),
    )


def median_lvq() -> Simulator:
    """Exemplars of two classes and the width, labels hidden; candidates are told, not learned."""
    rng = np.random.default_rng(7)
    points = rng.normal(size=(12, 2))
    values = ((points[:, None] - points) ** 2).sum(axis=-1) * (1 + rng.random((12, 12)))
    candidates = np.arange(7), np.arange(5, 12)
    prototypes, prior = Prototypes((0, 1, 1)), SigmaPrior(-0.3, 0.5)

    def rows(labels: np.ndarray) -> Dissimilarities:
        return Dissimilarities(values, labels, np.ones(12), candidates)

    return of_labels(
        lambda: declare_median_lvq(rows(np.zeros(12, int)), prototypes, prior),
        lambda labels: MedianLVQLogPosterior(rows(labels), prototypes, prior),
        12,
    )


SIMULATORS: dict[str, Callable[[], Simulator]] = {
    "kernel network": kernel_network,
    "stack": stack,
    "sparse discriminative mixture": sdgm,
    "exemplars": median_lvq,
}
