"""Search for exemplars, and the posterior of exemplars and width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Final, Self

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.base import names
from bayesrbf.base.arrays import ranked
from bayesrbf.base.log_posterior import LogPosterior, MarkovKernel
from bayesrbf.base.priors import Status, Trace
from bayesrbf.base.rows import Variable
from bayesrbf.families.median_lvq.objectives import (
    ConditionalLikelihood,
    Exemplars,
    MarginSum,
    Objective,
    label_logs,
    log_kernel,
    log_normal,
)
from bayesrbf.families.median_lvq.records import (
    Dissimilarities,
    MedianLVQParameters,
    Prototypes,
    Sigma,
    SigmaPrior,
    width_and_prior,
)

# Search for exemplars: the published generalised EM, then swaps on the objective itself.
#
# Both visit the prototypes in turn and move each to the best of its candidates. The generalised EM
# maximises a lower bound that is updated once a sweep, and stops early. Swaps start at its end and
# maximise the objective itself, so their end is no lower, and no single swap improves it.


ROUNDING_OF_OBJECTIVE: Final = 1e-10
"""Relative rise of the objective within rounding; an exemplar moves only for a larger rise."""


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search for exemplars, as the estimator's arguments describe them."""

    n_init: int = 4
    max_iter: int = 100
    seed: int = 0


@dataclass(frozen=True)
class ExemplarFit:
    """Best restart of a search."""

    parameters: MedianLVQParameters  # The point; exemplars of a class in ascending order.
    trace: Trace
    """Objective (with the log prior of sigma, where it has one) before the search and after
    every sweep of the winner."""
    status: Status


def fit_exemplars(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma | None,
    settings: SearchSettings,
    *,
    start: Exemplars | None = None,
    wider: Sequence[float] = (),
) -> ExemplarFit:
    """Find the exemplars that maximise the objective: of RSLVQ, or of GLVQ where sigma is None.

    There are ``n_init`` random starts, or one ``start``, each with at most ``max_iter`` sweeps.
    The widths of ``wider``, from the widest on, are searched before sigma, each from where the
    last one ended: wide kernels leave fewer optima.
    """
    rng = np.random.default_rng(settings.seed)
    random = [random_exemplars(rows, prototypes, rng) for _ in range(settings.n_init)]
    starts = random if start is None else [start]
    for width in wider:
        before = objective_of(rows, prototypes, width)
        ends = [climb(before, start, settings.max_iter) for start in starts]
        starts = [parameters.exemplars for parameters, _, _ in ends]
    objective = objective_of(rows, prototypes, sigma)
    runs = [climb(objective, start, settings.max_iter) for start in starts]
    reached = np.array([float(trace.log_posterior[-1]) for _, trace, _ in runs])
    return ExemplarFit(*runs[ranked(reached)[0]])


def random_exemplars(
    rows: Dissimilarities, prototypes: Prototypes, rng: np.random.Generator
) -> Exemplars:
    """Draw exemplars of every class from its candidates, without replacement where they suffice.

    Classes draw in the order of their first candidate, so that their names do not matter.
    """
    exemplars = np.empty(prototypes.number, dtype=np.intp)
    for label in _turns(rows):
        block, candidates = prototypes.class_slices[label], rows.candidates[label]
        size = block.stop - block.start
        exemplars[block] = rng.choice(candidates, size, replace=size > candidates.size)
    return exemplars


def objective_of(rows: Dissimilarities, prototypes: Prototypes, sigma: Sigma | None) -> Objective:
    """Objective of RSLVQ, at the prior median of the width, or of GLVQ where sigma is None."""
    if sigma is None:
        return MarginSum(rows, prototypes)
    return ConditionalLikelihood(rows, prototypes, *width_and_prior(sigma))


def climb(
    objective: Objective, start: Exemplars, max_iter: int
) -> tuple[MedianLVQParameters, Trace, Status]:
    """Maximise the bound of the generalised EM, then the objective by swaps.

    There are at most ``max_iter`` sweeps; the trace has the objective before the first and after
    every sweep. Exemplars of a class come in ascending order.
    """
    trace = [objective.value(start)]
    objective, exemplars, _ = sweeps(objective, start, trace, max_iter, bounded=True)
    objective, exemplars, status = sweeps(objective, exemplars, trace, max_iter, bounded=False)
    return point_of(objective, exemplars), Trace(np.array(trace)), status


def sweeps(
    objective: Objective,
    exemplars: Exemplars,
    trace: list[float],
    max_iter: int,
    *,
    bounded: bool,
) -> tuple[Objective, Exemplars, Status]:
    """Sweep over the prototypes until none moves, or the trace has ``max_iter`` sweeps.

    Moves are judged by the bound of the generalised EM where they are ``bounded``, else by the
    objective. The trace goes on with the objective after every sweep.
    """
    blocks = [objective.prototypes.class_slices[label] for label in _turns(objective.rows)]
    order = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
    while len(trace) <= max_iter:
        scorer = objective.bound(exemplars) if bounded else objective.scorer(exemplars)
        tolerance = ROUNDING_OF_OBJECTIVE * max(1.0, abs(trace[-1]))
        updated = scorer.sweep(exemplars, order, tolerance=tolerance)
        stays = np.array_equal(updated, exemplars)
        exemplars = updated
        objective = objective.refit(exemplars)
        trace.append(objective.value(exemplars))
        if stays and trace[-1] - trace[-2] <= tolerance:
            return objective, exemplars, Status.CONVERGED
    return objective, exemplars, Status.MAX_ITER


def point_of(objective: Objective, exemplars: Exemplars) -> MedianLVQParameters:
    """Exemplars and width.

    Exemplars of a class are exchangeable; in order, equal ends look equal.
    """
    by_class = [np.sort(exemplars[block]) for block in objective.prototypes.class_slices]
    return MedianLVQParameters(np.concatenate(by_class), objective.sigma)


def _turns(rows: Dissimilarities) -> list[int]:
    """Classes in the order of their first candidate, whatever their names."""
    firsts = [int(candidates[0]) for candidates in rows.candidates]
    return sorted(range(rows.n_classes), key=firsts.__getitem__)


# The posterior of exemplars and width, over the coordinates of the declared graph.
#
# Exact Gibbs sweeps move within it.


COMPARED: Final = 200
"""Most training rows, evenly spread, whose kernels are compared when prototypes are relabelled."""
FLATTENED: Final = 0.25
"""Power of the likelihood in the first sweeps; low, so that chains start overdispersed."""


@dataclass(frozen=True)
class MedianLVQLogPosterior(LogPosterior):
    r"""Log posterior of exemplars and width given the labels.

    .. math:: \log p(\theta, \sigma \mid y, d) = \sum_n v_n \log p(y_n \mid x_n)
        - \sum_j \log N_{c_j} + \log p(\sigma) + \text{const}

    Coordinates are the rows of the exemplars, which are integers, and log sigma where it is
    free. The density is 0 where an exemplar is no candidate of its class.

    See Nebel, Hammer, Villmann (2014), Supervised generative models for learning dissimilarity
    data, ESANN, section 3, for the likelihood.
    """

    rows: Dissimilarities
    prototypes: Prototypes
    sigma: Sigma

    no_prior: ClassVar[str] = "exemplars have a uniform prior, which no power changes"

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights of the rows."""
        return self.rows.weights

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""
        exemplars = Variable(
            names.EXEMPLARS, (names.PROTOTYPE,), (self.prototypes.number,), "identity"
        )
        free = () if self.prior is None else (Variable(names.SIGMA, (), (), "log"),)
        return (exemplars, *free)

    @property
    def prior(self) -> SigmaPrior | None:
        """Prior of the width; None where it is fixed."""
        return width_and_prior(self.sigma)[1]

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every prototype; prototypes of a class are exchangeable."""
        return np.asarray(self.prototypes.classes)

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Prior standard deviation of log sigma; 0 for exemplars.

        A training row has no neighbours to step to.
        """
        scales = np.zeros(self.dimension)
        if self.prior is not None:
            scales[-1] = self.prior.spread
        return scales

    def markov_kernel(self) -> ExemplarSweep:
        """Gibbs sweeps, first under a flattened likelihood, so that chains start overdispersed."""
        rows = replace(self.rows, weights=FLATTENED * self.rows.weights)
        return ExemplarSweep(replace(self, rows=rows), following=ExemplarSweep(self))

    def pack(self, parameters: MedianLVQParameters) -> Float[np.ndarray, " coordinate"]:
        """Row indices of the exemplars and, where it is free, log sigma."""
        theta = parameters.exemplars.astype(np.float64)
        if self.prior is None or parameters.sigma is None:
            return theta
        return np.append(theta, np.log(parameters.sigma))

    def unpack(self, theta: Float[np.ndarray, " coordinate"]) -> MedianLVQParameters:
        """The inverse of :meth:`pack`."""
        return MedianLVQParameters(self.exemplars(theta), self.width(theta))

    def exemplars(self, theta: Float[np.ndarray, " coordinate"]) -> Exemplars:
        """Rows of the exemplars at a point."""
        return np.rint(theta[: self.prototypes.number]).astype(np.intp)

    def width(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        """Width of the kernel at a point."""
        fixed, prior = width_and_prior(self.sigma)
        return fixed if prior is None else float(np.exp(theta[-1]))

    def likelihood(self, sigma: float) -> ConditionalLikelihood:
        """The likelihood, with the prior of sigma, as an objective.

        Its scores are the log full conditionals of exemplars.
        """
        return ConditionalLikelihood(self.rows, self.prototypes, sigma, self.prior)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats, and its gradient: 0 along exemplars, which have no neighbours.

        With ``jacobian``, sigma's density is that of log sigma.
        """
        exemplars, gradient = self.exemplars(theta), np.zeros(self.dimension)
        objective = self.likelihood(self.width(theta))
        value = objective.value(exemplars) + self._log_uniform(exemplars)
        if self.prior is not None:
            gradient[-1] = objective.width_gradient(exemplars) + jacobian
            value += jacobian * theta[-1]
        return float(value), gradient

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log probability of every row's label, in nats; 0 where it is hidden."""
        result = np.zeros(self.rows.n_obs)
        objective = self.likelihood(self.width(theta))
        result[self.rows.labelled] = objective.pointwise(self.exemplars(theta))
        return result

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log kernel ``-d(x_n, theta_j) / sigma**2`` of every prototype at ``COMPARED`` rows."""
        n_obs = self.rows.n_obs
        row_indices = np.unique(np.linspace(0, n_obs - 1, min(n_obs, COMPARED)).astype(int))
        columns = self.rows.values[row_indices[:, None], self.exemplars(theta)]
        return log_kernel(columns, self.width(theta))

    def constrained(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Real[np.ndarray, "*_"]]:
        """Values of the free variables by name, at one point or many; exemplars are integers."""
        exemplars = np.rint(thetas[..., : self.prototypes.number]).astype(np.int64)
        values: dict[str, np.ndarray] = {names.EXEMPLARS: exemplars}
        if self.prior is not None:
            values[names.SIGMA] = np.exp(thetas[..., -1])
        return values

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder prototypes within their classes: prototype k of the result is ``order[k]``."""
        return np.concatenate([theta[order], theta[order.size :]])

    def _log_uniform(self, exemplars: Exemplars) -> float:
        """Log prior of exemplars: uniform over the candidates of their classes."""
        total = 0.0
        for exemplar, label in zip(exemplars, self.prototypes.classes, strict=True):
            candidates = self.rows.candidates[label]
            total -= np.log(candidates.size) if exemplar in candidates else np.inf
        return total


@dataclass(frozen=True)
class ExemplarSweep(MarkovKernel):
    """Gibbs sweeps: every exemplar from its full conditional, log sigma by a slice sampler.

    The posterior is left invariant, exactly: under the uniform prior the score of a move is the
    log full conditional of the exemplar. ``following`` takes over once there are draws to learn
    from; without it, nothing changes.
    """

    posterior: MedianLVQLogPosterior
    following: ExemplarSweep | None = None

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Draw every exemplar, then the width."""
        posterior, updated = self.posterior, theta.copy()
        exemplars, prior = posterior.exemplars(theta), posterior.prior
        rows, prototypes, width = posterior.rows, posterior.prototypes, posterior.width(theta)
        scorer = ConditionalLikelihood(rows, prototypes, width).scorer(exemplars)
        order = np.arange(exemplars.size)
        exemplars = scorer.sweep(exemplars, order, uniforms=rng.random(exemplars.size))
        updated[: exemplars.size] = exemplars
        if prior is not None:
            columns = rows.values[rows.labelled[:, None], exemplars].astype(np.float64, copy=False)
            log_density = partial(self._log_density, columns, prior)
            updated[-1] = slice_step(log_density, float(theta[-1]), 2 * prior.spread, rng)
        return updated

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> Self | ExemplarSweep:
        """Sweeps of the posterior itself, which need nothing else from the draws."""
        return self if self.following is None else self.following

    def _log_density(
        self, columns: Float[np.ndarray, "labelled prototype"], prior: SigmaPrior, log_sigma: float
    ) -> float:
        """Log density of log sigma given the exemplars, up to a constant."""
        sigma, rows = float(np.exp(log_sigma)), self.posterior.rows
        labels, weights = rows.labels[rows.labelled], rows.weights[rows.labelled]
        logs = label_logs(columns, labels, self.posterior.prototypes, sigma)
        return float(weights @ logs) + log_normal(sigma, prior) + log_sigma


def slice_step(
    log_density: Callable[[float], float], start: float, step: float, rng: np.random.Generator
) -> float:
    """Slice sampling update in one dimension: stepping out, then shrinking.

    The log density must fall without limit on both sides. ``step`` is the width of the first
    interval, best about that of the density.

    See Neal (2003), Slice sampling, Annals of Statistics 31, section 4, figures 3 and 5.
    """
    # The log of a uniform height under the density at the start.
    level = log_density(start) - rng.exponential()
    # The interval lies at random about the start, so that stepping out is as probable from
    # any point of the slice.
    lower = start - step * rng.random()
    upper = lower + step
    while log_density(lower) > level:
        lower -= step
    while log_density(upper) > level:
        upper += step
    while True:
        candidate = rng.uniform(lower, upper)
        if log_density(candidate) > level:
            return float(candidate)
        # The interval shrinks towards the start, which lies on the slice, so the loop ends.
        lower, upper = (candidate, upper) if candidate < start else (lower, candidate)
