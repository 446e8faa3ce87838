"""The fit of a published scheme: rounds until they stand still, growth, annihilation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from bayesrbf.numerics.mixture.initialisation import starting_point
from bayesrbf.numerics.rbf_network.alternation import Alternation
from bayesrbf.numerics.rbf_network.elastic_net_output import Output
from bayesrbf.numerics.rbf_network.network_components import (
    idle_components,
    with_components_at,
    without,
)
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit
from bayesrbf.numerics.rounding import ranked
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.records.results import Status

QUIET_ROUNDS = 2  # An alternation has converged after this many rounds in a row without a move.


@dataclass(frozen=True)
class Scheme:
    """Options of a published scheme beside its rounds."""

    annihilate: bool = False  # Whether a component that no output uses leaves its mixture.
    growth: tuple[int, int] | None = None
    """Components that join at a time, and the most that a mixture may have."""
    impute: bool = False  # Whether missing cells are filled in rather than summed out.


@dataclass(frozen=True)
class NetworkProblem:
    """Rows in standard units, their responses, the prior, and the scheme that is run on them."""

    observations: Observations
    output: Output
    hyperparameters: RBFNetworkHyperparameters
    scheme: Scheme
    max_iter: int  # Most rounds between two changes of the components.
    tolerance: float
    """The rounds have converged when they move neither objective by more than this, in nats."""

    def alternation(self, specification: RBFNetworkSpecification) -> Alternation:
        """The rounds under a structure."""
        return Alternation(
            self.observations, self.output, specification, self.hyperparameters, self.scheme.impute
        )


def fit_published(
    problem: NetworkProblem,
    specification: RBFNetworkSpecification,
    *,
    rng: np.random.Generator,
    n_init: int = 4,
    start: RBFNetworkParameters | None = None,
) -> NetworkFit:
    """Run a published scheme from several starts; the one with the highest joint objective wins.

    A given start, in standard units, is taken instead of random ones. ``NetworkFit.falls`` says
    whether the objective only rose.
    """
    if start is not None:
        return _run(problem, start, specification, rng)
    runs = [
        _run(problem, _start(problem, specification, rng), specification, rng)
        for _ in range(n_init)
    ]
    return runs[ranked(np.array([run.joint[-1] for run in runs]))[0]]


def _start(
    problem: NetworkProblem, specification: RBFNetworkSpecification, rng: np.random.Generator
) -> RBFNetworkParameters:
    """Clusters of all rows for every mixture, and the output layer on them."""
    structure = specification.mixture
    rows = replace(problem.observations, labels=np.zeros_like(problem.observations.labels))
    prior = problem.hyperparameters.mixture
    points = []
    for part in structure.class_slices:
        alone = replace(structure, component_class=(0,) * (part.stop - part.start))
        points.append(starting_point(rows, alone, prior, rng))
    n_mixtures = len(points)
    mixture = MixtureParameters(
        np.full(n_mixtures, 1 / n_mixtures),
        np.concatenate([point.weights for point in points]),
        np.concatenate([point.means for point in points]),
        np.concatenate([point.precisions_cholesky for point in points]),
        tuple(
            np.concatenate(levels)
            for levels in zip(*(point.category_probabilities for point in points), strict=True)
        ),
    )
    n_outputs, k = specification.n_outputs, structure.n_components
    empty = RBFNetworkParameters(mixture, np.zeros((n_outputs, k)), np.zeros(n_outputs))
    rounds = problem.alternation(specification)
    return rounds.with_output(mixture, empty, rounds.evaluate(mixture).statistics.counts)


def _run(
    problem: NetworkProblem,
    start: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    rng: np.random.Generator,
) -> NetworkFit:
    """Rounds from one start; with growth, the size with the best information criterion."""
    fit = best = _settled(problem, start, specification)
    while problem.scheme.growth is not None:
        step, most = problem.scheme.growth
        sizes = np.bincount(fit.specification.mixture.component_class)
        if sizes.max() + step > most:
            break
        places = _worst_rows(problem, fit, step, rng)
        larger = with_components_at(fit.parameters, fit.specification, problem.observations, places)
        fit = _joined(fit, _settled(problem, *larger))
        best = max(best, fit, key=_akaike)
    return best


def _akaike(fit: NetworkFit) -> float:
    """Conditional log likelihood less one nat for every output weight: -AIC / 2."""
    return float(fit.conditional[-1]) - float(fit.specification.connected.sum())


def _settled(
    problem: NetworkProblem,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
) -> NetworkFit:
    """Rounds until they converge; with annihilation, until no component is idle."""
    fit = _rounds(problem, parameters, specification)
    while problem.scheme.annihilate:
        leaving = idle_components(fit.parameters, fit.specification)
        if not leaving.any():
            break
        smaller = without(fit.parameters, fit.specification, leaving)
        fit = _joined(fit, _rounds(problem, *smaller))
    return fit


def _rounds(
    problem: NetworkProblem,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
) -> NetworkFit:
    """Rounds until neither objective moves."""
    rounds = problem.alternation(specification)
    way = [rounds.objectives(parameters)]
    status = Status.MAX_ITER
    for _ in range(problem.max_iter):
        following = rounds.step(parameters)
        way.append(rounds.objectives(following))
        if not np.isfinite(way[-1][0]):
            status = Status.DEGENERATE
            break
        parameters = following
        if _still(way, problem.tolerance):
            status = Status.CONVERGED
            break
    joint, conditional = np.array(way).T
    return NetworkFit(parameters, joint, conditional, status, np.nan, specification)


def _still(way: list[tuple[float, float]], tolerance: float) -> bool:
    """Whether neither objective moved in the last rounds; one alone may be at a turning point."""
    if len(way) <= QUIET_ROUNDS:
        return False
    recent = np.array(way[-QUIET_ROUNDS - 1 :])
    return bool(np.abs(np.diff(recent, axis=0)).max() <= tolerance)


def _worst_rows(
    problem: NetworkProblem, fit: NetworkFit, number: int, rng: np.random.Generator
) -> Int[np.ndarray, "label new"]:
    """Rows where new components begin, drawn by how badly their response is explained."""
    rounds = problem.alternation(fit.specification)
    features = rounds.evaluate(fit.parameters.mixture).features
    linear = features @ fit.parameters.coefficients.T + fit.parameters.intercepts
    log_likelihood = problem.output.evaluate(linear, fit.parameters.noise_precision)[0]
    # Also the best explained row keeps a chance: else none is left where all are alike.
    badness = problem.observations.weights * (log_likelihood.max() - log_likelihood + 1e-12)
    shape = (len(fit.specification.mixture.class_slices), number)
    return rng.choice(badness.size, size=shape, p=badness / badness.sum())


def _joined(first: NetworkFit, rest: NetworkFit) -> NetworkFit:
    """The paths of two fits, one after the other."""
    return replace(
        rest,
        joint=np.concatenate([first.joint, rest.joint]),
        conditional=np.concatenate([first.conditional, rest.conditional]),
    )
