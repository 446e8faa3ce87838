"""Every family with a likelihood in continuous parameters, small: add a builder and it is held.

A builder returns the family's log posterior, its declared graph and its MAP, on a
table of some ten rows; ``tests/inference/test_plug.py`` states what must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm

from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.numerics.expectation import prepare
from bayesrbf.numerics.fitting import fit_mixture, problem_of
from tests.models.configurations import Configuration


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
    rows, specification = configuration.standard_observations, configuration.specification
    prior = configuration.hyperparameters.standardised()
    fit = fit_mixture(rows, specification, prior, rng=np.random.default_rng(0), tol=1e-10)
    problem = problem_of(prepare(rows, specification), specification, prior)
    parameters = fit.parameters
    for _ in range(3000):
        following = problem.step(parameters).following
        moved = np.max(np.abs(problem.pack(following) - problem.pack(parameters)))
        parameters = following
        if moved < 1e-11:
            break
    log_posterior = configuration.log_posterior
    return Family(
        log_posterior,
        configuration.declare(),
        log_posterior.pack(parameters.in_units(configuration.units)),
        rows.weights,
    )


DENSITY = Configuration("diag", "two", False, True, True, False, True, 3, 1)
CLASSIFIER = Configuration("full", "unequal", False, True, True, True, True, 3, 2)

FAMILIES: dict[str, Callable[[], Family]] = {
    "mixture density": lambda: mixture(DENSITY),
    "class-conditional mixture": lambda: mixture(CLASSIFIER),
}
