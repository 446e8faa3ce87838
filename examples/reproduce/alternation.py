r"""RBF networks fitted by alternation of EM and logistic regression, as two papers publish it.

One round, at mixture :math:`\phi` and output weights w:

1. E-step and M-step of the mixture on all rows, with or without a label;
2. features at the new mixture, and the output layer on them, from the previous weights;
3. the link: :math:`\pi_k \propto n_k + a - 1 + \gamma s_k(w)`, or :math:`\pi = s(w)` for infinite
   gamma, where :math:`s_k(w) = \sum_c |w_{ck}| / \sum_{jc} |w_{cj}|`.

Each step raises an objective, but not the same one: at :math:`\gamma > 0` no single objective
rises in all steps.

See Ferreira and Figueiredo (2006), Hybrid generative/discriminative training of radial basis
function networks, ESANN: EM-LR, EM-LR-Link, and EM-LR-Link-K, where components join. Caetano
(2018): responsibilities as features (eq. 20), the Dirichlet link (eq. 21), components that leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, Self

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from threadpoolctl import ThreadpoolController

from bayesrbf import MixturePrior, table
from bayesrbf.base.arrays import component_log_weights, log_softmax, log_sum_exp, ranked
from bayesrbf.base.rows import CovarianceType, MixtureParameters, MixtureSpecification, Observations
from bayesrbf.families.rbf_network.fitted import ClassResponses, FittedNetwork, reordered
from bayesrbf.families.rbf_network.posterior import (
    Classes,
    FeatureMap,
    Link,
    OutputLayer,
    fit_output_layer,
    log_elastic_net_constant,
    relative_sizes,
)
from bayesrbf.families.rbf_network.records import (
    Features,
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.fit.stages import fit_extrapolation
from bayesrbf.mixture.em import starting_point
from bayesrbf.mixture.expectation import Expectation, prepare
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.missing import mostly_complete, with_holes
from bayesrbf.mixture.points import DeclaredPrior
from bayesrbf.mixture.real_columns import START_VARIANCE
from bayesrbf.mixture.statistics import Statistics

SchemeName = Literal["em_lr", "em_lr_link", "em_lr_link_k", "caetano"]

LINKS: Final[dict[SchemeName, float]] = {
    "em_lr": 0.0,
    "em_lr_link": np.inf,
    "em_lr_link_k": np.inf,
    "caetano": 100.0,
}
"""gamma of each scheme where none is given."""
L2: Final = 0.1  # Precision of the output weights where none is given.
SAFE_WITH_HOLES: Final = 0.3
"""Least power of p(x) in the joint objective where cells are missing."""
QUIET_ROUNDS: Final = 2
"""An alternation has converged after this many rounds in a row without a move."""
SMALL_WEIGHT: Final = 0.5
"""Mixture weight of a new component, as a multiple of that in equal parts."""
LARGEST_SEED: Final = 2**31 - 1


class AlternatingNetwork(ClassifierMixin, BaseEstimator):
    """Classifier with a mixture as hidden layer, fitted by a published alternation.

    Missing cells are integrated out; rows without a label teach the hidden layer. ``"em_lr"``
    alternates EM and logistic regression. ``"em_lr_link"`` ties the weights of the components to
    the output weights. ``"em_lr_link_k"`` does so while components join: ``grow`` has how many at a
    time, and the most; Akaike's criterion chooses. ``"caetano"`` has a soft link of strength
    ``link``, and components whose output weights are all zero leave.

    >>> cells = [[0.0, 1.0], [0.2, np.nan], [3.0, 4.0], [np.nan, 4.2], [0.1, 0.8], [3.1, 3.9]]
    >>> y = np.array(["a", "a", "b", "b", None, None], dtype=object)
    >>> model = AlternatingNetwork(2, scheme="em_lr", random_state=0).fit(np.array(cells), y)
    >>> model.predict(np.array([[0.1, np.nan], [np.nan, 4.1]]))
    array(['a', 'b'], dtype=object)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        scheme: SchemeName = "caetano",
        link: float | None = None,
        features: Features | None = None,
        covariance_type: CovarianceType = "diag",
        l1: float = 0.0,
        l2: float = L2,
        grow: tuple[int, int] = (1, 10),
        n_init: int = 4,
        max_iter: int = 1000,
        tol: float = 1e-8,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.scheme = scheme
        self.link = link
        self.features = features
        self.covariance_type = covariance_type
        self.l1 = l1
        self.l2 = l2
        self.grow = grow
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self, X: Float[np.ndarray, "obs column"] | pd.DataFrame, y: Shaped[np.ndarray, " obs"]
    ) -> Self:
        """Fit hidden and output layer; labels may be hidden as None."""
        self.columns_ = table.learn_columns(X)
        self.classes_, labels, weights = table.present_classes(y, np.ones(len(y)), None, 1.0)
        cells = replace(table.encode(X, self.columns_), labels=labels, weights=weights)
        training = table.with_subjects(cells)[0]
        rows = table.distinct(training)[0]
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        default: Features = "responsibility" if self.scheme == "caetano" else "density"
        components = MixtureSpecification(
            rows.real.shape[1],
            self.columns_.n_levels,
            (0,) * self.n_components,
            self.covariance_type,
        )
        structure = RBFNetworkSpecification(
            components, self.classes_.size, self.features or default
        )
        self.network_ = self._fitted_to(rows, structure, np.random.default_rng(seed))
        shares = self.network_.class_shares(training, self.classes_.size)
        self.far_ = fit_extrapolation(training, np.log(shares))
        return self

    def _fitted_to(
        self, rows: Observations, structure: RBFNetworkSpecification, rng: np.random.Generator
    ) -> FittedNetwork:
        """Standardise distinct rows, fit in the canonical order of columns and classes."""
        responses = ClassResponses(structure.n_outputs)
        order, output, rows = responses.canonical(rows)
        rows, structure = rows.reordered(order), structure.reordered(order)
        units = table.standardisation(rows.real, rows.weights)
        marginals = table.marginals(rows.codes, structure.mixture.levels, rows.weights)
        kappa = 1 / (structure.mixture.n_features + len(structure.mixture.levels))
        prior = RBFNetworkHyperparameters(
            MixturePrior().resolve(structure.mixture, units, marginals),
            l1=self.l1,
            l2=self.l2,
            kappa=max(kappa, SAFE_WITH_HOLES) if with_holes(rows).any() else kappa,
            intercept_scale=np.inf,
        )
        problem = Problem(
            replace(rows, real=units.forward(rows.real)),
            output,
            prior.standardised(),
            link=LINKS[self.scheme] if self.link is None else self.link,
            annihilate=self.scheme == "caetano",
            growth=self.grow if self.scheme == "em_lr_link_k" else None,
            max_iter=self.max_iter,
            tolerance=self.tol * float(rows.weights.sum()),
        )
        with ThreadpoolController().limit(limits=1, user_api="blas"):
            fit = fit_alternation(problem, structure, rng=rng, n_init=self.n_init)
        given = fit.specification.reordered(order.inverse)
        return FittedNetwork(
            given,
            prior.reordered(order.inverse),
            reordered(fit.parameters, order.inverse, fit.specification),
            responses,
            integrate=mostly_complete(rows),
            order=order.of_one_class,
        )

    @property
    def coef_(self) -> Float[np.ndarray, "label component"]:
        """Output weights."""
        return self.network_.parameters.coefficients

    def predict_proba(
        self, X: Float[np.ndarray, "obs column"] | pd.DataFrame
    ) -> Float[np.ndarray, "obs label"]:
        """Class probabilities of each row; those of far rows are mixed as in the package."""
        rows = table.encode(X, self.columns_, handle_unknown="missing")
        log_p = log_softmax(self.network_.class_log_joint(rows), axis=1)
        return np.exp(self.far_.mixed(log_p, self.far_.unknown(rows)))

    def predict(
        self, X: Float[np.ndarray, "obs column"] | pd.DataFrame
    ) -> Shaped[np.ndarray, " obs"]:
        """Most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@dataclass(frozen=True)
class Problem:
    """Rows in standard units, their classes, the prior, and what belongs to the scheme."""

    observations: Observations
    output: Classes
    prior: RBFNetworkHyperparameters
    """In standard units; intercepts are free, and the link is beside it."""
    link: float = 0.0
    """gamma; infinite for the hard link."""
    annihilate: bool = False  # Whether a component that no output uses leaves.
    growth: tuple[int, int] | None = None  # Components that join at a time, and the most.
    max_iter: int = 60  # Most rounds between two changes of the components.
    tolerance: float = 1e-4
    """The rounds have converged when they move neither objective by more than this, in nats."""

    @cached_property
    def unlabelled(self) -> Observations:
        """Rows as EM sees them: of one class."""
        return replace(self.observations, labels=np.zeros_like(self.observations.labels))


@dataclass(frozen=True)
class AlternatingFit:
    """Where rounds ended, and the way there."""

    parameters: RBFNetworkParameters  # In standard units.
    specification: RBFNetworkSpecification
    """Structure of the point: components may have left or joined."""
    joint: Float[np.ndarray, " round"]
    """Joint objective at the start and after every round, in nats: labels, kappa times rows, prior
    and, where finite, the link."""
    conditional: Float[np.ndarray, " round"]
    """``sum_n v_n log p(y_n | f(x_n))`` at the same points."""

    def then(self, following: AlternatingFit) -> AlternatingFit:
        """A fit that went on from this one, with the whole way."""
        return replace(
            following,
            joint=np.concatenate([self.joint, following.joint]),
            conditional=np.concatenate([self.conditional, following.conditional]),
        )


@dataclass(frozen=True)
class HiddenLayer:
    """Results of evaluating a network at one mixture."""

    statistics: Statistics  # Those of EM.
    features: Float[np.ndarray, "obs component"]
    generative: float  # ``sum_n v_n log p(x_n)``, in nats.


class Rounds:
    """The rounds of an alternation on one table, under one structure."""

    def __init__(self, problem: Problem, specification: RBFNetworkSpecification) -> None:
        self.problem = problem
        self.specification = specification
        structure = specification.mixture
        self._declared = DeclaredPrior(problem.prior.mixture, structure)
        self._expectation: Expectation = prepare(problem.observations.unlabelled(), structure)
        self._feature_map = FeatureMap(problem.observations, specification)
        self._last: tuple[MixtureParameters, HiddenLayer] | None = None

    def evaluate(self, mixture: MixtureParameters) -> HiddenLayer:
        """Take the E-step, and the features."""
        # Kept, because a round ends at the mixture where the next one begins.
        if self._last is None or self._last[0] is not mixture:
            self._last = mixture, self._evaluated(mixture)
        return self._last[1]

    def _evaluated(self, mixture: MixtureParameters) -> HiddenLayer:
        """Statistics, features and log density at a mixture."""
        weights = self.problem.observations.weights
        joint = self._expectation.at(mixture)
        log_density, responsibilities = log_sum_exp(joint.log_joint, axis=1)
        log_weights = component_log_weights(mixture, self.specification.mixture)
        features = self._feature_map.forward(joint.log_joint, log_weights)
        statistics = joint.statistics(weights[:, None] * responsibilities)
        return HiddenLayer(statistics, features, float(weights @ log_density))

    def step(self, parameters: RBFNetworkParameters) -> RBFNetworkParameters:
        """Run one round."""
        statistics = self.evaluate(parameters.mixture).statistics
        laws, prior = laws_of(self.specification.mixture), self.problem.prior.mixture
        following = laws.mode(statistics, parameters.mixture, prior)
        following = replace(following, class_probabilities=parameters.mixture.class_probabilities)
        return self.with_output(following, parameters, statistics.counts)

    def with_output(
        self,
        mixture: MixtureParameters,
        start: RBFNetworkParameters,
        counts: Float[np.ndarray, " component"],
    ) -> RBFNetworkParameters:
        """Fit the output layer to a mixture, then link the mixture weights to it.

        ``start`` is where the output layer begins; ``counts`` are the expected rows of every
        component.
        """
        layer = fit_output_layer(
            self.evaluate(mixture).features,
            self.problem.output,
            self.problem.observations.weights,
            self.problem.prior,
            OutputLayer(start.coefficients, start.intercepts),
        )
        linked = replace(mixture, weights=self._linked(counts, layer.coefficients))
        return RBFNetworkParameters(linked, layer.coefficients, layer.intercepts)

    def _linked(self, counts: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Mixture weights under the link."""
        gamma = self.problem.link
        sizes = relative_sizes(coefficients)
        if np.isinf(gamma):
            return sizes
        pulled = counts + self.problem.prior.mixture.weight_concentration - 1 + gamma * sizes
        return pulled / pulled.sum()

    def objectives(self, parameters: RBFNetworkParameters) -> tuple[float, float]:
        """Joint objective, and conditional log likelihood, in nats."""
        at, problem = self.evaluate(parameters.mixture), self.problem
        linear = at.features @ parameters.coefficients.T + parameters.intercepts
        by_row = problem.output.evaluate(linear, 1.0)[0]
        conditional = float(problem.observations.weights @ by_row)
        joint = conditional + problem.prior.kappa * at.generative + self._log_prior(parameters)
        return joint, conditional

    def _log_prior(self, parameters: RBFNetworkParameters) -> float:
        """Log prior of hidden layer, output weights and, where finite, link."""
        prior, w = self.problem.prior, parameters.coefficients
        elastic = -prior.l1 * np.abs(w).sum() - 0.5 * prior.l2 * (w**2).sum()
        elastic -= w.size * log_elastic_net_constant(prior.l1, prior.l2)
        total = self._declared.log_density(parameters.mixture) + float(elastic)
        if np.isinf(self.problem.link):
            return total
        weights, concentration = parameters.mixture.weights, prior.mixture.weight_concentration
        return total + Link.at(weights, w, concentration, self.problem.link).value


def fit_alternation(
    problem: Problem,
    specification: RBFNetworkSpecification,
    *,
    rng: np.random.Generator,
    n_init: int = 4,
) -> AlternatingFit:
    """Run a scheme from several starts; the one with the highest joint objective wins."""
    runs = [_run(problem, _start(problem, specification, rng), rng) for _ in range(n_init)]
    return runs[ranked(np.array([run.joint[-1] for run in runs]))[0]]


def _start(
    problem: Problem, specification: RBFNetworkSpecification, rng: np.random.Generator
) -> AlternatingFit:
    """Clusters of all rows, and the output layer on them, after as many rounds as they need."""
    mixture = starting_point(problem.unlabelled, specification.mixture, problem.prior.mixture, rng)
    mixture = replace(mixture, class_probabilities=np.ones(1))
    layer = OutputLayer.empty(specification)
    empty = RBFNetworkParameters(mixture, layer.coefficients, layer.intercepts)
    rounds = Rounds(problem, specification)
    start = rounds.with_output(mixture, empty, rounds.evaluate(mixture).statistics.counts)
    return _settled(problem, start, specification)


def _run(problem: Problem, first: AlternatingFit, rng: np.random.Generator) -> AlternatingFit:
    """Growth from one start; the size with the best information criterion."""
    fit = best = first
    while problem.growth is not None:
        step, most = problem.growth
        if fit.specification.mixture.n_components + step > most:
            break
        places = _worst_rows(problem, fit, step, rng)
        larger = with_components_at(fit.parameters, fit.specification, problem.observations, places)
        fit = fit.then(_settled(problem, *larger))
        best = max(best, fit, key=_akaike)
    return best


def _akaike(fit: AlternatingFit) -> float:
    """Conditional log likelihood less one nat for every output weight: -AIC / 2."""
    return float(fit.conditional[-1]) - float(fit.parameters.coefficients.size)


def _settled(
    problem: Problem, parameters: RBFNetworkParameters, specification: RBFNetworkSpecification
) -> AlternatingFit:
    """Rounds until they converge; with annihilation, until no component is idle."""
    fit = _rounds(problem, parameters, specification)
    while problem.annihilate:
        leaving = idle_components(fit.parameters)
        if not leaving.any():
            break
        fit = fit.then(_rounds(problem, *without(fit.parameters, fit.specification, leaving)))
    return fit


def _rounds(
    problem: Problem, parameters: RBFNetworkParameters, specification: RBFNetworkSpecification
) -> AlternatingFit:
    """Rounds until neither objective moves, or one is no longer finite."""
    rounds = Rounds(problem, specification)
    way = [rounds.objectives(parameters)]
    for _ in range(problem.max_iter):
        following = rounds.step(parameters)
        way.append(rounds.objectives(following))
        if not np.isfinite(way[-1][0]):
            break
        parameters = following
        if _still(way, problem.tolerance):
            break
    joint, conditional = np.array(way).T
    return AlternatingFit(parameters, specification, joint, conditional)


def _still(way: list[tuple[float, float]], tolerance: float) -> bool:
    """Whether neither objective moved in the last rounds; one alone may be at a turning point."""
    if len(way) <= QUIET_ROUNDS:
        return False
    recent = np.array(way[-QUIET_ROUNDS - 1 :])
    return bool(np.abs(np.diff(recent, axis=0)).max() <= tolerance)


def _worst_rows(
    problem: Problem, fit: AlternatingFit, number: int, rng: np.random.Generator
) -> Int[np.ndarray, " new"]:
    """Rows where new components begin, drawn by how badly their class is explained."""
    rounds = Rounds(problem, fit.specification)
    features = rounds.evaluate(fit.parameters.mixture).features
    linear = features @ fit.parameters.coefficients.T + fit.parameters.intercepts
    log_likelihood = problem.output.evaluate(linear, 1.0)[0]
    # Also the best explained row keeps a chance: else none is left where all are alike.
    badness = problem.observations.weights * (log_likelihood.max() - log_likelihood + 1e-12)
    return rng.choice(badness.size, size=number, p=badness / badness.sum())


def idle_components(parameters: RBFNetworkParameters) -> Bool[np.ndarray, " component"]:
    """Components whose output weights are all exactly zero; one is kept."""
    idle = (parameters.coefficients == 0).all(axis=0)
    if idle.all():
        idle[int(np.argmax(parameters.mixture.weights))] = False
    return idle


def without(
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    leaving: Bool[np.ndarray, " component"],
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """Take components out; the weights of the others sum to one again."""
    return _rearranged(parameters, specification, np.flatnonzero(~leaving))


def with_components_at(
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    observations: Observations,
    rows: Int[np.ndarray, " new"],
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """Add components centred at given rows, with output weights of zero, in standard units."""
    # Copies of the first component, in the places of the new ones, are then moved to the rows.
    k = specification.mixture.n_components
    places = np.arange(k, k + rows.size)
    order = np.append(np.arange(k), np.zeros(rows.size, dtype=np.intp))
    larger, structure = _rearranged(parameters, specification, order)
    means, weights = larger.mixture.means.copy(), larger.mixture.weights.copy()
    # A missing cell begins at 0, the centre of standard units.
    means[places] = np.nan_to_num(observations.real[rows])
    weights[places] = SMALL_WEIGHT / order.size
    mixture = replace(
        larger.mixture,
        means=means,
        weights=weights / weights.sum(),
        precisions_cholesky=_fresh_factors(larger.mixture, structure, places),
        category_probabilities=_pooled_levels(larger.mixture, places),
    )
    coefficients = larger.coefficients.copy()
    coefficients[:, places] = 0.0
    return replace(larger, mixture=mixture, coefficients=coefficients), structure


def _rearranged(
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    order: Int[np.ndarray, " component"],
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """The network whose component k is component ``order[k]`` of this one."""
    components = replace(specification.mixture, component_class=(0,) * order.size)
    # Covariances that components share stay, whichever components there are.
    own = specification.mixture.group_sizes.size == parameters.mixture.weights.size
    moved = parameters.mixture.taken(order, order if own else slice(None))
    moved = replace(moved, weights=moved.weights / moved.weights.sum())
    coefficients = parameters.coefficients[:, order]
    rearranged = replace(parameters, mixture=moved, coefficients=coefficients)
    return rearranged, replace(specification, mixture=components)


def _fresh_factors(
    mixture: MixtureParameters,
    specification: RBFNetworkSpecification,
    places: Int[np.ndarray, " new"],
) -> Float[np.ndarray, "group *feature"]:
    """Precision factors; new components that have their own begin wide and round."""
    factors = mixture.precisions_cholesky
    if specification.mixture.group_sizes.size != mixture.weights.size:
        return factors
    factors = factors.copy()
    roots = np.full(mixture.means[places].shape, START_VARIANCE**-0.5)
    factors[places] = laws_of(specification.mixture).reals.matrices.of_diagonal(roots)
    return factors


def _pooled_levels(
    mixture: MixtureParameters, places: Int[np.ndarray, " new"]
) -> tuple[Float[np.ndarray, "component _"], ...]:
    """Level probabilities; new components begin with the mean of all."""
    results = []
    for probabilities in mixture.category_probabilities:
        pooled = probabilities.copy()
        pooled[places] = mixture.weights @ probabilities / mixture.weights.sum()
        results.append(pooled)
    return tuple(results)
