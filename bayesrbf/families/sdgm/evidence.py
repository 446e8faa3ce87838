"""Evidence maximisation of a sparse mixture: modes of weights, precisions, ascent."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import softmax

from bayesrbf.base.arrays import ranked, shorter_step
from bayesrbf.base.priors import MixturePrior, Status
from bayesrbf.base.rows import MixtureSpecification, Observations, Standardisation
from bayesrbf.families.sdgm.posterior import (
    Designs,
    LabelExpectation,
    Labels,
    class_log_probabilities,
    complete_curvature,
    completion_error,
    component_curvatures,
    curvature_product,
    expect,
    hidden_information,
    standard_points,
    to_logits,
    weight_gradient,
    weight_slices,
)
from bayesrbf.families.sdgm.records import (
    Basis,
    CompletedRows,
    SDGMFit,
    SDGMModes,
    SDGMParameters,
    SDGMTrace,
)
from bayesrbf.mixture.em import starting_point
from bayesrbf.mixture.expectation import prepare

# A point of the type-II maximisation: components, active weights, and their whitened features.
#
# The whitened features of a component have no more coordinates than the features have rank. With
# Phi = F B, F of full rank r, and A the precisions of a component's n weights, the singular vectors
# V of :math:`A^{-1/2} B^\top` span all directions that change a logit of a row: :math:`w = A^{-1/2}
# V c` with c standard normal, and the rest of w keeps its prior. For n <= r, V is the identity.


RANK = 1e-10  # Singular values below this fraction of the largest are rounding errors.
MIN_PROPORTION = 1e-5  # Components with a smaller probability are pruned.


@dataclass(frozen=True)
class Factored:
    """Features Phi of all points, and their factors F (orthonormal columns) and B: Phi = F B."""

    features: Float[np.ndarray, "point feature"]
    left: Float[np.ndarray, "point rank"]
    right: Float[np.ndarray, "rank feature"]


def factor_features(features: Float[np.ndarray, "point feature"], reduce: bool) -> Factored:
    """Factor the features by their rank, unless they are few and independent.

    Without ``reduce`` the factors have more rank than any component has weights, and are not used.
    """
    if not reduce:
        return Factored(features, features, np.eye(features.shape[1]))
    left, sizes, right = np.linalg.svd(features, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum())
    return Factored(features, left[:, :rank], sizes[:rank, None] * right[:rank])


@dataclass(frozen=True)
class Whitened:
    """Features of whitened coordinates c with standard normal priors: ``w = A^-1/2 V c``.

    ``directions`` are the V of every component, with orthonormal columns; ``deviations`` are
    the prior standard deviations of the weights.
    """

    designs: Designs
    directions: tuple[Float[np.ndarray, "_ _"], ...]
    deviations: Float[np.ndarray, " weight"]

    def weights(
        self, coordinates: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, " weight"]:
        """Weights ``w = A^-1/2 V c`` of coordinates c."""
        by_component = [
            v @ coordinates[slot]
            for v, slot in zip(self.directions, weight_slices(self.designs), strict=True)
        ]
        return self.deviations * np.concatenate([np.zeros(0), *by_component])

    def coordinates(
        self, weights: Float[np.ndarray, " weight"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates ``c = V' A^1/2 w``, the projection of w on directions that change a row."""
        edges = np.cumsum([len(v) for v in self.directions])[:-1]
        by_component = np.split(weights / self.deviations, edges)
        pairs = zip(self.directions, by_component, strict=True)
        return np.concatenate([np.zeros(0), *(v.T @ block for v, block in pairs)])

    def determined(self, inverses: list[Float[np.ndarray, "_ _"]]) -> Float[np.ndarray, " weight"]:
        """MacKay's gamma of every weight: 1 - posterior variance / prior variance, within [0, 1].

        ``inverses`` are the posterior covariances of c, one a component.
        """
        by_component = []
        for v, inverse in zip(self.directions, inverses, strict=True):
            known = np.eye(v.shape[1]) - inverse
            by_component.append(((v @ known) * v).sum(axis=1))
        # Rounding takes numbers of determined weights out of [0, 1].
        return np.clip(np.concatenate([np.zeros(0), *by_component]), 0.0, 1.0)

    def covariance(
        self, inverse: Float[np.ndarray, "coordinate coordinate"]
    ) -> Float[np.ndarray, "weight weight"]:
        """Posterior covariance of the weights from ``inverse``, the posterior covariance of c.

        Directions that change no row have their prior covariance.
        """
        n_weights = self.deviations.size
        v = np.zeros((n_weights, len(inverse)))
        row = 0
        for direction, slot in zip(self.directions, weight_slices(self.designs), strict=True):
            v[row : row + len(direction), slot] = direction
            row += len(direction)
        whitened = np.eye(n_weights) + v @ (inverse - np.eye(len(inverse))) @ v.T
        return self.deviations[:, None] * whitened * self.deviations


@dataclass(frozen=True)
class State:
    """State of the type-II maximisation: remaining components and their active weights.

    ``proportions`` sum to one within each class.
    """

    component_class: Int[np.ndarray, " component"]
    proportions: Float[np.ndarray, " component"]
    component: Int[np.ndarray, " weight"]
    feature: Int[np.ndarray, " weight"]
    coefficients: Float[np.ndarray, " weight"]
    precisions: Float[np.ndarray, " weight"]

    def whitened(self, factored: Factored) -> Whitened:
        """Whitened features of every component's active weights at their precisions."""
        deviations = self.precisions**-0.5
        designs, directions = [], []
        for k in range(self.component_class.size):
            active = self.component == k
            used, scale = self.feature[active], deviations[active]
            if used.size <= factored.left.shape[1]:  # no reduction: V is the identity
                designs.append(factored.features[:, used] * scale)
                directions.append(np.eye(used.size))
                continue
            left, sizes, right = np.linalg.svd(factored.right[:, used] * scale, full_matrices=False)
            seen = sizes > RANK * sizes[0]
            designs.append(factored.left @ (left[:, seen] * sizes[seen]))
            directions.append(right[seen].T)
        return Whitened(tuple(designs), tuple(directions), deviations)


def without_superfluous(state: State) -> State:
    """Remove rare and duplicate components; their probability goes to a remaining component.

    Every class keeps a component.
    """
    dropped, heirs = _superfluous(state)
    if not dropped.any():
        return state
    proportions = np.bincount(heirs, weights=state.proportions, minlength=dropped.size)
    renumbered = np.cumsum(~dropped) - 1
    remaining = ~dropped[state.component]
    return State(
        state.component_class[~dropped],
        proportions[~dropped],
        renumbered[state.component[remaining]],
        state.feature[remaining],
        state.coefficients[remaining],
        state.precisions[remaining],
    )


def _superfluous(
    state: State,
) -> tuple[Bool[np.ndarray, " component"], Int[np.ndarray, " component"]]:
    """Mask of components to remove, and the heir of each component's probability.

    All components of a class without weights are alike, and one of them stays.
    """
    n_components = state.component_class.size
    bare = np.bincount(state.component, minlength=n_components) == 0
    heirs = np.arange(n_components)
    for label in np.unique(state.component_class):
        members = np.flatnonzero(state.component_class == label)
        alike = members[bare[members]]
        heirs[alike] = alike[:1]
        largest = members[np.argmax(state.proportions[members])]
        rare = members[state.proportions[members] < MIN_PROPORTION]
        heirs[rare] = largest
    return heirs != np.arange(n_components), heirs


# The mode of the weights given their precisions, and the covariance around it.
#
# Weights are whitened, :math:`w_k = T_k c_k` with :math:`T_k T_k^\top` the prior covariance (of
# those directions that the rows distinguish), so that every prior is standard normal. Where a
# component has more weights than the features have rank, its c has one coordinate a rank: the
# Woodbury identity, by a change of basis.
#
# The search is Newton's method with a line search. Steps and covariance come from one curvature
# matrix of all weights or, where they are too many for that, from one a component. Then conjugate
# gradients take the components' curvatures as their preconditioner, and the covariance is that of
# each component with the others held. That is accurate enough to find the weights that the rows do
# not determine, which are most of them at first.


BLENDS = (0.0, 0.25, 0.5, 1.0)
"""Fractions by which the missing information is added back to the observed Hessian, in turn.

At 1 the result is the complete-data curvature, which is never indefinite.
"""
WIDE = 5e9
"""Beyond this many products in one curvature of all weights, every component has its own."""
MAX_COORDINATES = 12_000
"""Most whitened weights; one curvature of more would take over 1 GiB."""
GRADIENTS = 20  # Most iterations of conjugate gradients in a step; each of them ascends.
RELATIVE = 0.1  # Conjugate gradients end when the residual is below this fraction of the gradient.


@dataclass(frozen=True)
class Mode:
    """Mode of the whitened weights, with the E-step and the log posterior there.

    ``log_posterior`` is the log likelihood less ``c . c / 2``. ``decrement`` is twice the rise
    in nats that the last step promised.
    """

    coordinates: Float[np.ndarray, " coordinate"]
    expectation: LabelExpectation
    log_posterior: float
    decrement: float


def find_mode(
    designs: Designs,
    labels: Labels,
    log_proportions: Float[np.ndarray, " component"],
    start: Float[np.ndarray, " coordinate"],
    *,
    tol: float,
    max_steps: int,
    teacher: Float[np.ndarray, "point component"] | None = None,
    wide: bool = False,
) -> Mode:
    """Mode of the log posterior of the whitened weights.

    The step is Newton's on the observed Hessian, blended towards the complete-data one where it
    would not ascend. The search ends when a step promises a rise of at most ``tol / 2`` nats.

    Responsibilities ``teacher`` replace those of the E-step: the complete-data problem, which has
    one mode. Where the weights are ``wide``, too many for one curvature matrix, steps are
    those of conjugate gradients on the complete-data curvature.
    """

    def evaluate(coordinates: np.ndarray) -> tuple[float, LabelExpectation]:
        logits = to_logits(designs, coordinates, log_proportions)
        expectation = expect(labels, logits)
        likelihood = expectation.log_likelihood
        if teacher is not None:
            expectation = _taught(expectation, labels, teacher)
            likelihood = _taught_likelihood(expectation, logits)
        return likelihood - 0.5 * float(coordinates @ coordinates), expectation

    current = start
    value, expectation = evaluate(current)
    decrement = np.inf
    for _ in range(max_steps):
        gradient = weight_gradient(designs, expectation.logit_gradient) - current
        if wide:
            step, exact = separate_step(designs, expectation, gradient), False
        else:
            complete = teacher is not None
            step, exact = newton_step(designs, labels, expectation, gradient, complete=complete)
        decrement = float(gradient @ step)
        if decrement <= tol:
            break
        found = shorter_step(evaluate, current, step, value, decrement)
        if found is None:
            break
        current, value, expectation = found
        # Newton's method converges quadratically: the next step would promise the square of this.
        if exact and decrement**2 <= tol:
            break
    return Mode(current, expectation, value, decrement)


def _taught(expectation: LabelExpectation, labels: Labels, teacher: np.ndarray) -> LabelExpectation:
    """E-step with the responsibilities ``teacher`` and equally probable completions."""
    sizes = labels.sizes
    completion_probabilities = np.repeat(1.0 / sizes, sizes)
    return LabelExpectation(
        expectation.pointwise,
        expectation.probabilities,
        teacher,
        completion_probabilities,
        completion_probabilities * np.repeat(labels.weights, sizes),
        expectation.log_likelihood,
    )


def _taught_likelihood(expectation: LabelExpectation, logits: np.ndarray) -> float:
    """Complete-data log likelihood under the responsibilities of ``teacher``, in nats."""
    top = logits.max(axis=1)
    log_all = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    explained = (expectation.responsibilities * logits).sum(axis=1) - log_all
    return float(expectation.weights @ explained)


def is_wide(designs: Designs) -> bool:
    """Whether a joint curvature of all weights takes over ``WIDE`` products, of 2+ components."""
    size = sum(design.shape[1] for design in designs)
    return len(designs) > 1 and (designs[0].shape[0] + size) * size**2 > WIDE


def check_size(designs: Designs) -> None:
    """Raise ValueError where one curvature of all weights would fill the memory."""
    size = sum(design.shape[1] for design in designs)
    if size > MAX_COORDINATES:
        raise ValueError(
            f"{size} weights are left, beyond the {MAX_COORDINATES} of which all can be judged "
            "together: use fewer components or columns, or a larger max_iter."
        )


def newton_step(
    designs: Designs,
    labels: Labels,
    expectation: LabelExpectation,
    gradient: np.ndarray,
    *,
    complete: bool,
) -> tuple[Float[np.ndarray, " coordinate"], bool]:
    """Newton step on the first Hessian of ``BLENDS`` that is positive definite; it ascends.

    The flag says whether the Hessian was not blended. With ``complete`` it is that of the complete
    data, and exact. Raises FloatingPointError where the Hessian is not finite.
    """
    curvature = complete_curvature(designs, labels, expectation)
    curvature[np.diag_indices_from(curvature)] += 1.0
    if complete:
        return cho_solve(cho_factor(curvature, lower=True), gradient), True
    hidden = hidden_information(designs, labels, expectation)
    for blend in BLENDS:
        try:
            factor = cho_factor(curvature - (1 - blend) * hidden, lower=True)
        except np.linalg.LinAlgError:
            continue  # indefinite: more of the complete-data curvature
        return cho_solve(factor, gradient), blend == 0.0
    raise FloatingPointError(
        "The complete-data curvature of the weights is not finite; rescale the columns, "
        "or strengthen the prior with a larger alpha_init."
    )


def separate_step(
    designs: Designs, expectation: LabelExpectation, gradient: Float[np.ndarray, " coordinate"]
) -> Float[np.ndarray, " coordinate"]:
    """Ascent step: conjugate gradients on the complete-data Hessian, which is never formed."""
    slots = weight_slices(designs)
    shape = (gradient.size, gradient.size)
    roots = [
        cho_factor(block + np.eye(len(block)), lower=True)
        for block in component_curvatures(designs, expectation)
    ]

    def alone(vector: np.ndarray) -> np.ndarray:
        solutions = (cho_solve(root, vector[slot]) for root, slot in zip(roots, slots, strict=True))
        return np.concatenate(list(solutions))

    curvature = LinearOperator(
        shape, matvec=lambda v: v + curvature_product(designs, expectation, v), dtype=float
    )
    preconditioner = LinearOperator(shape, matvec=alone, dtype=float)
    step, _ = cg(curvature, gradient, M=preconditioner, rtol=RELATIVE, maxiter=GRADIENTS)
    return np.asarray(step)


def spread_of_components(
    designs: Designs, labels: Labels, expectation: LabelExpectation, *, wide: bool
) -> tuple[list[Float[np.ndarray, "_ _"]], float]:
    """Complete-data covariance of c by component, and the log determinant of the curvature.

    Where ``wide``, components count as independent.
    """
    if wide:
        blocks = component_curvatures(designs, expectation)
        pairs = [inverse_curvature(block + np.eye(len(block))) for block in blocks]
        return [inverse for inverse, _ in pairs], sum(log for _, log in pairs)
    curvature = complete_curvature(designs, labels, expectation)
    inverse, log_determinant = inverse_curvature(curvature + np.eye(len(curvature)))
    return [inverse[slot, slot] for slot in weight_slices(designs)], log_determinant


def inverse_curvature(
    curvature: Float[np.ndarray, "coordinate coordinate"],
) -> tuple[Float[np.ndarray, "coordinate coordinate"], float]:
    """Inverse and log determinant of a positive definite matrix; raises LinAlgError for others."""
    if not curvature.size:  # every weight is pruned; LAPACK complains on stderr
        return curvature.copy(), 0.0
    root, _ = cho_factor(curvature, lower=True)
    lower, _ = dpotri(root, lower=True)  # a third of the work of solving for every unit vector
    inverse = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diagonal(root)).sum())


# Type-II maximisation: precisions of the weights from the evidence, zeros by pruning.
#
# Between mode searches every precision takes MacKay's step with the complete-data curvature,
# :math:`\alpha \leftarrow (1 - \alpha \Lambda_{hh}) / w_h^2`, and every component probability the
# mean responsibility of its class. The EM step :math:`1 / (w_h^2 + \Lambda_{hh})` would prune
# nothing in a thousand steps.
#
# The evidence at its maximum over many precisions is too high, by more the more weights are active.
# With a log-uniform prior between the bounds that the fit keeps them in, and MacKay's error bars on
# the logs, :math:`\sigma^2_{\log \alpha} = 2 / \gamma`, every active weight costs
#
# .. math:: \log \frac{\sqrt{4 \pi / \gamma}}{\log \alpha_{\max} - \log \alpha_{\min}}
#
# nats, about two. A weight that was dropped costs nothing: all large precisions are one model.
#
# See Tipping and Faul (2003), Fast marginal likelihood maximisation for sparse Bayesian models,
# AISTATS, equation 20, for the maximum over one precision. Hayashi and Uchida (2021), A
# discriminative Gaussian mixture model with sparsity, ICLR, section 3 and appendix A. MacKay
# (1992), Bayesian interpolation, Neural Computation 4, 415-447, section 4.3, for the error bars of
# precisions. MacKay (1992), Neural Computation 4, 448-472, section 4, for the step.


MIN_PRECISION = 1e-6
"""The prior standard deviation of a weight is at most 1000.

Otherwise it has no bound where the classes are separable: the likelihood has no maximum there.
"""
BARELY = 0.01
"""A weight whose gamma is below this may be dropped at once: see :func:`_doomed`.

Gamma is the part of its prior variance that the rows explain.
"""
SETTLED = 0.1
"""Once no log precision changes by more than this, single precisions may jump to their maximum."""
TIED = 1e-6
"""Changes of log precisions that differ by less are a tie.

Weights of the two levels of a binary column are symmetric: without a tie, rounding would decide
which of the two jumps or is pruned.
"""
LOOSE = 1e-8
"""Mode searches between updates end where a step would raise the log posterior by half of it."""
TIGHT = 1e-16  # The tolerance of the last mode search of a run; both in nats.
LOOSE_STEPS, TIGHT_STEPS = 2, 100
"""Most Newton steps between updates, and in the last search.

Few are enough between updates, because each update moves the mode anyway.
"""


@dataclass(frozen=True)
class EvidenceProblem:
    """Training rows and the features of their points."""

    rows: CompletedRows
    factored: Factored

    def labels(self, component_class: Int[np.ndarray, " component"]) -> Labels:
        """Components that the label of each point's row allows."""
        allowed = np.repeat(self.rows.allowed[:, component_class], self.rows.sizes, axis=0)
        return Labels(allowed, self.rows.starts, self.rows.weights)


@dataclass(frozen=True)
class Run:
    """Result and trace of one restart.

    ``log_posterior`` is the log density of the weights given their precisions. ``evidence`` is
    the Laplace approximation of the log evidence with the observed Hessian. ``determined`` is
    MacKay's gamma of every weight, between 0 and 1. ``n_indefinite`` counts the directions in
    which the log posterior does not curve downwards. ``completion_error`` is the standard error
    of the log likelihood that comes from the finite number of completions.
    """

    parameters: SDGMParameters
    trace: SDGMTrace
    status: Status
    log_posterior: float
    evidence: float
    determined: Float[np.ndarray, " weight"]
    n_indefinite: int
    completion_error: float


def maximise_evidence(problem: EvidenceProblem, start: State, settings: Settings) -> Run:
    """Alternate mode searches with fixed-point updates of precisions and proportions.

    May raise ValueError where the weights that are left are too many for one curvature matrix in
    memory.
    """
    state, status = start, Status.MAX_ITER
    change = np.inf
    wide = True
    path: list[tuple[float, int, int]] = []
    for _ in range(settings.max_iter):
        whitened = state.whitened(problem.factored)
        labels = problem.labels(state.component_class)
        # With many weights, the covariance is block diagonal: one block a component.
        wide = wide and change > SETTLED and is_wide(whitened.designs)
        if not wide:
            check_size(whitened.designs)
        mode = _mode(state, whitened, labels, tol=LOOSE, max_steps=LOOSE_STEPS, wide=wide)
        inverses, log_determinant = spread_of_components(
            whitened.designs, labels, mode.expectation, wide=wide
        )
        size = (state.coefficients.size, state.component_class.size)
        path.append((mode.log_posterior - 0.5 * log_determinant, *size))
        state, change = _update(
            state, mode, whitened, inverses, settings.alpha_max, settled=change <= SETTLED
        )
        # A run may end only where all weights are judged together.
        if change <= settings.tol and not wide:
            status = Status.CONVERGED
            break
    return _finish(problem, state, path, status)


def _mode(
    state: State,
    whitened: Whitened,
    labels: Labels,
    *,
    tol: float,
    max_steps: int,
    wide: bool = False,
) -> Mode:
    """Mode of the whitened weights, searched from the weights of ``state``."""
    return find_mode(
        whitened.designs,
        labels,
        np.log(state.proportions),
        whitened.coordinates(state.coefficients),
        tol=tol,
        max_steps=max_steps,
        wide=wide,
    )


def _update(
    state: State,
    mode: Mode,
    whitened: Whitened,
    inverses: list[np.ndarray],
    alpha_max: float,
    *,
    settled: bool,
) -> tuple[State, float]:
    """State after a fixed-point update and pruning, and the largest change of a log precision.

    The change is infinite where a weight or component was pruned. Once all precisions have
    settled, the precision that changes most is set to the maximum of its evidence.
    """
    coefficients = whitened.weights(mode.coordinates)
    determined = whitened.determined(inverses)
    penalty = state.precisions * coefficients**2
    # The new precision is gamma / w²; compared like this, no weight of 0 is divided by.
    active = (determined < alpha_max * coefficients**2) & ~_doomed(determined, penalty)
    precisions = np.full(active.size, np.inf)
    precisions[active] = determined[active] / coefficients[active] ** 2
    precisions = np.maximum(precisions, MIN_PRECISION)
    change = np.inf  # after pruning nothing has settled
    if active.all():
        changes = np.abs(np.log(precisions / state.precisions))
        change = float(changes.max(initial=0.0))
        if settled and changes.size:
            most = int(ranked(changes, TIED)[0])
            precisions[most] = _best(state.precisions[most], determined[most], penalty[most])
            active[most] = precisions[most] < alpha_max
            change = change if active[most] else np.inf
    updated = State(
        state.component_class,
        _proportions(state.component_class, mode),
        state.component[active],
        state.feature[active],
        coefficients[active],
        precisions[active],
    )
    pruned = without_superfluous(updated)
    fewer = pruned.component_class.size < state.component_class.size
    return pruned, np.inf if fewer else change


def _doomed(
    determined: Float[np.ndarray, " weight"], penalty: Float[np.ndarray, " weight"]
) -> Bool[np.ndarray, " weight"]:
    """Weights that the rows hardly determine and whose evidence has no finite maximum.

    With the others held, the log evidence rises towards infinite precision wherever alpha w^2
    <= gamma (1 - gamma). MacKay's steps go there, too, but only geometrically.
    """
    return (determined < BARELY) & (penalty <= determined * (1 - determined))


def _best(precision: float, determined: float, penalty: float) -> float:
    """Precision that maximises the evidence at fixed other precisions.

    MacKay's steps converge to it, but cover only the fraction gamma of the distance in each step: a
    weight that the rows hardly determine would need hundreds.
    """
    excess = penalty - determined * (1 - determined)
    if excess <= 0:
        return np.inf
    return max(float(precision * determined**2 / excess), MIN_PRECISION)


def _proportions(
    component_class: Int[np.ndarray, " component"], mode: Mode
) -> Float[np.ndarray, " component"]:
    """Mean responsibilities of every component, normalised within its class."""
    mass = mode.expectation.weights @ mode.expectation.responsibilities
    return mass / np.bincount(component_class, weights=mass)[component_class]


def _finish(
    problem: EvidenceProblem, state: State, path: list[tuple[float, int, int]], status: Status
) -> Run:
    """Result of a restart: mode, Laplace covariance and evidence at the last precisions."""
    whitened = state.whitened(problem.factored)
    check_size(whitened.designs)
    labels = problem.labels(state.component_class)
    mode = _mode(state, whitened, labels, tol=TIGHT, max_steps=TIGHT_STEPS)
    state = replace(state, coefficients=whitened.weights(mode.coordinates))
    complete = complete_curvature(whitened.designs, labels, mode.expectation)
    complete[np.diag_indices_from(complete)] += 1.0
    observed = complete - hidden_information(whitened.designs, labels, mode.expectation)
    n_indefinite = int((np.linalg.eigvalsh(observed) <= 0).sum())
    # A saddle has no Laplace approximation: the complete-data curvature stands in.
    inverse, log_determinant = inverse_curvature(complete if n_indefinite else observed)
    log_prior = 0.5 * float(np.log(state.precisions / (2 * np.pi)).sum())
    evidence, n_weights, n_components = (np.array(column) for column in zip(*path, strict=True))
    return Run(
        parameters=SDGMParameters(
            state.component_class,
            state.proportions,
            state.component,
            state.feature,
            state.coefficients,
            state.precisions,
            whitened.covariance(inverse),
        ),
        trace=SDGMTrace(evidence, n_weights, n_components),
        status=status,
        log_posterior=mode.log_posterior + log_prior,
        evidence=mode.log_posterior - 0.5 * log_determinant,
        determined=whitened.determined([inverse[p, p] for p in weight_slices(whitened.designs)]),
        n_indefinite=n_indefinite,
        completion_error=completion_error(labels, mode.expectation),
    )


def log_masses(runs: list[Run], alpha_max: float) -> Float[np.ndarray, " restart"]:
    """Log evidence of every restart with its precisions integrated out, in nats."""
    return np.array([run.evidence + log_volume(run.determined, alpha_max) for run in runs])


def log_volume(determined: Float[np.ndarray, " weight"], alpha_max: float) -> float:
    """Log ratio of posterior to prior width of the log precisions, summed; at most 0.

    ``determined`` is MacKay's gamma of the active weights.

    >>> round(log_volume(np.array([1.0]), alpha_max=1e5), 2)
    -1.97
    """
    reach = max(float(np.log(alpha_max / MIN_PRECISION)), 1.0)
    # A weight that no row determines is as wide as its prior, by the minimum below.
    log_widths = 0.5 * np.log(4 * np.pi / np.maximum(determined, 1e-9))
    # A posterior as wide as the prior takes all of it, and not more.
    return float(np.minimum(log_widths - np.log(reach), 0.0).sum())


# The fit: several starts, each maximised to its own sparse model and weighted by its evidence.
#
# Starts are clusters within the classes, and weights that lead there. Ends with the same class
# probabilities of the rows are one mode, and count once.


LATER_START = 0.1
"""Every other restart begins with this fraction of the first precision.

Which of the two prunes good weights too early depends on the table.
"""
RACE_ROWS = 5000
"""Most rows that the restarts see in the primal form; the winner is then run on all rows."""
MAX_NUMBERS = 2**29  # Most numbers in the features of all components at the start: 4 GiB.
OWN_RESPONSIBILITY = 0.9  # Responsibility of a row's own cluster at the start.
FIRST_STEPS = 5  # Newton steps towards the clusters, after which the search is free.
ALIKE = 0.01
"""Ends whose class probabilities at the training rows differ by less than this are one mode."""
MIN_PROBABILITY = 1e-3
"""Modes below this fraction of the largest probability are left out, as draws seldom meet them."""


@dataclass(frozen=True)
class Settings:
    """Settings of the ascent of the evidence.

    Weights start at precision ``alpha_init`` and are pruned beyond ``alpha_max``; a run has
    converged when no log precision changes by more than ``tol`` and has at most ``max_iter``
    updates. There are ``n_init`` restarts, or one where all would be the same.
    """

    alpha_init: float = 1.0
    alpha_max: float = 1e5
    tol: float = 1e-3
    max_iter: int = 500
    n_init: int = 8


def fit_sdgm(
    rows: CompletedRows,
    observations: Observations,
    basis: Basis,
    units: Standardisation,
    specification: MixtureSpecification,
    *,
    rng: np.random.Generator,
    settings: Settings,
) -> SDGMFit:
    """Maximise the evidence from several starts and weight the ends.

    ``rows`` are in the user's units; ``observations`` are the same rows with their missing cells,
    in standard units, and with the label of no class where a row may have several: the starts are
    drawn from them.

    The last component of the last class has no weights, because logits are differences. Two
    restarts in four begin with fewer components, and the evidence judges them: a component that is
    not needed is seldom pruned once it has rows of its own.

    Of more than ``RACE_ROWS`` rows, the restarts see as many, evenly spread. The responsibilities
    of the most probable end then start one run with all rows and with the components that it began
    with; that run's end is the only mode.

    May raise ValueError where the weights would fill the memory.
    """
    phi = basis.at(standard_points(rows.points, units))
    dual = basis.kernel is not None or phi.shape[1] > phi.shape[0]
    n_rows = rows.starts.size
    few = min(n_rows, RACE_ROWS)
    row_indices = (
        np.arange(n_rows) if dual else np.linspace(0, n_rows - 1, few).round().astype(np.intp)
    )
    problem = _problem(rows, phi, row_indices, dual)
    _check_size(problem, phi.shape[0], specification.n_components)
    runs = _restarts(problem, observations.take(row_indices), specification, rng, settings)
    masses = log_masses(runs, settings.alpha_max)
    number = int(ranked(masses)[0])
    chosen = runs[number]
    initial = _initial_specification(specification, number)
    if row_indices.size == n_rows:
        modes = probable_modes(problem, runs, masses)
    else:
        problem = _problem(rows, phi, np.arange(n_rows), dual)
        responsibilities = inherited_responsibilities(problem, chosen.parameters, initial)
        classes = np.asarray(initial.component_class, dtype=np.intp)
        start = first_state(problem, classes, responsibilities, settings.alpha_init)
        chosen = maximise_evidence(problem, start, settings)
        modes = SDGMModes((chosen.parameters,), np.ones(1))
    return SDGMFit(
        modes,
        chosen.trace,
        chosen.status,
        chosen.log_posterior,
        np.array([run.evidence for run in runs]),
        chosen.n_indefinite,
        chosen.completion_error,
    )


def _problem(
    rows: CompletedRows,
    phi: Float[np.ndarray, "point feature"],
    row_indices: Int[np.ndarray, " chosen"],
    dual: bool,
) -> EvidenceProblem:
    """Problem of the rows at ``row_indices``, with factored features."""
    if row_indices.size == rows.starts.size:
        return EvidenceProblem(rows, factor_features(phi, reduce=dual))
    points = np.isin(np.repeat(np.arange(rows.starts.size), rows.sizes), row_indices)
    sizes = rows.sizes[row_indices]
    subset = CompletedRows(
        rows.points[points],
        np.cumsum(sizes) - sizes,
        rows.allowed[row_indices],
        rows.weights[row_indices],
    )
    return EvidenceProblem(subset, factor_features(phi[points], reduce=dual))


def _restarts(
    problem: EvidenceProblem,
    observations: Observations,
    specification: MixtureSpecification,
    rng: np.random.Generator,
    settings: Settings,
) -> list[Run]:
    """Runs of all restarts."""
    n_starts = settings.n_init if specification.n_components > specification.n_classes else 1
    runs = []
    for restart in range(n_starts):
        initial = _initial_specification(specification, restart)
        responsibilities = cluster_responsibilities(observations, problem.rows, initial, rng)
        precision = settings.alpha_init * LATER_START ** (restart % 2)
        classes = np.asarray(initial.component_class, dtype=np.intp)
        start = first_state(problem, classes, responsibilities, precision)
        runs.append(maximise_evidence(problem, start, settings))
    return runs


def _initial_specification(
    specification: MixtureSpecification, restart: int
) -> MixtureSpecification:
    """Specification with the initial components of a restart.

    Two restarts have all components, the next two half as many, two all, two a quarter, and so
    on, until one a class has been tried; further halvings would repeat it.
    """
    counts = np.bincount(specification.component_class)
    turn, fewer = divmod(restart // 2, 2)
    if not fewer or turn >= np.log2(counts.max()):
        return specification
    halved = np.ceil(counts / 2 ** (turn + 1)).astype(int)
    return replace(
        specification, component_class=tuple(np.repeat(np.arange(counts.size), halved).tolist())
    )


def _check_size(problem: EvidenceProblem, n_points: int, n_components: int) -> None:
    """Refuse to start where the features of all components would fill the memory."""
    rank = min(problem.factored.left.shape[1], problem.factored.features.shape[1])
    size = (n_components - 1) * rank
    if (n_points + rank) * size > MAX_NUMBERS:
        raise ValueError(
            f"{n_components} components with {rank} independent features each would make "
            f"{size} weights, which on {n_points} points (rows with holes are several) take "
            f"more than {8 * MAX_NUMBERS / 2**30:.0f} GiB: use fewer components or columns, or "
            "form='kernel' where the rows are fewer than the products of columns."
        )


def cluster_responsibilities(
    observations: Observations,
    rows: CompletedRows,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> Float[np.ndarray, "point component"]:
    """Initial responsibilities of every point, from clusters within the classes that a row allows.

    The component of the nearest cluster has ``OWN_RESPONSIBILITY``. ``observations`` are the rows
    with their missing cells, in standard units, unlabelled where a row may have several classes.
    """
    real = np.zeros(specification.n_features)
    marginals = tuple(np.full(n, 1.0 / n) for n in specification.levels)
    prior = MixturePrior().resolve(specification, Standardisation(real, real + 1), marginals)
    point = starting_point(observations, specification, prior, rng)
    log_joint = prepare(observations, specification).component_log_joint(point)
    allowed = rows.allowed[:, list(specification.component_class)]
    nearest = np.where(allowed, log_joint, -np.inf).argmax(axis=1)
    responsibilities = (1 - OWN_RESPONSIBILITY) * allowed / allowed.sum(axis=1, keepdims=True)
    responsibilities[np.arange(len(responsibilities)), nearest] += OWN_RESPONSIBILITY
    return np.repeat(responsibilities, rows.sizes, axis=0)


def inherited_responsibilities(
    problem: EvidenceProblem, found: SDGMParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of a sparse model, assigned to the first components of every class.

    ``specification`` has the components of every class before any was pruned; the pruned ones get a
    small responsibility.
    """
    classes = np.asarray(specification.component_class)
    phi = problem.factored.features
    logits = phi @ found.dense(phi.shape[1]) + np.log(found.proportions)
    within = np.arange(found.n_components) - np.searchsorted(
        found.component_class, found.component_class
    )
    components = np.searchsorted(classes, found.component_class) + within
    known = expect(problem.labels(found.component_class), logits).responsibilities
    allowed = problem.labels(classes).allowed
    responsibilities = (1 - OWN_RESPONSIBILITY) * allowed / allowed.sum(axis=1, keepdims=True)
    responsibilities[:, components] += OWN_RESPONSIBILITY * known
    return responsibilities


def first_state(
    problem: EvidenceProblem,
    component_class: Int[np.ndarray, " component"],
    responsibilities: Float[np.ndarray, "point component"],
    alpha_init: float,
) -> State:
    """State with all weights active, a few Newton steps from 0 towards ``responsibilities``.

    The last component has no weights.
    """
    n_features, n_free = problem.factored.features.shape[1], component_class.size - 1
    state = State(
        component_class,
        1.0 / np.bincount(component_class)[component_class],
        np.repeat(np.arange(n_free), n_features),
        np.tile(np.arange(n_features), n_free),
        np.zeros(n_free * n_features),
        np.full(n_free * n_features, alpha_init),
    )
    whitened = state.whitened(problem.factored)
    mode = find_mode(
        whitened.designs,
        problem.labels(component_class),
        np.log(state.proportions),
        whitened.coordinates(state.coefficients),
        tol=1e-3,
        max_steps=FIRST_STEPS,
        teacher=responsibilities,
        wide=is_wide(whitened.designs),
    )
    return replace(state, coefficients=whitened.weights(mode.coordinates))


def probable_modes(
    problem: EvidenceProblem, runs: list[Run], masses: Float[np.ndarray, " restart"]
) -> SDGMModes:
    """Distinct modes of the restarts, the most probable first.

    Among equal modes the one with the largest of the ``masses`` (see :func:`log_masses`) remains;
    improbable modes are left out.
    """
    distinct: list[int] = []
    seen: list[np.ndarray] = []
    for number in ranked(masses):
        predicted = _probabilities(problem, runs[number].parameters)
        if all(np.abs(predicted - other).max(initial=0.0) > ALIKE for other in seen):
            distinct.append(int(number))
            seen.append(predicted)
    probabilities = softmax(masses[distinct])
    probable = probabilities >= MIN_PROBABILITY * probabilities[0]
    parameters = tuple(runs[distinct[i]].parameters for i in np.flatnonzero(probable))
    return SDGMModes(parameters, probabilities[probable] / probabilities[probable].sum())


def _probabilities(
    problem: EvidenceProblem, parameters: SDGMParameters
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of the training points at a mode."""
    phi = problem.factored.features
    logits = phi @ parameters.dense(phi.shape[1]) + np.log(parameters.proportions)
    return np.exp(class_log_probabilities(logits, parameters.component_class))
