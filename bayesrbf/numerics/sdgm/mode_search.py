r"""The mode of the weights given their precisions, and the covariance around it.

Weights are whitened, :math:`w_k = T_k c_k` with :math:`T_k T_k^\top` the prior covariance (of those
directions that the rows distinguish), so that every prior is standard normal. Where a component has
more weights than the features have rank, its c has one coordinate a rank: the Woodbury identity, by
a change of basis.

The search is Newton's method with a line search. Steps and covariance come from one curvature
matrix of all weights or, where they are too many for that, from one a component. Then conjugate
gradients take the components' curvatures as their preconditioner, and the covariance is that of
each component with the others held. That is accurate enough to find the weights that the rows do
not determine, which are most of them at first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, cg

from bayesrbf.numerics.sdgm.label_likelihood import (
    Designs,
    LabelExpectation,
    Labels,
    complete_curvature,
    component_curvatures,
    curvature_product,
    expect,
    hidden_information,
    places,
    to_logits,
    weight_gradient,
)

HALVINGS = 30  # Most halvings of a step in the line search.
ROUNDING_OF_LOG_POSTERIOR = 1e-13  # Relative error of a log posterior.
BLENDS = (0.0, 0.25, 0.5, 1.0)
"""Fractions of the hidden information that stay in the Hessian, tried in turn.

At 1 it is the complete-data curvature, which is never indefinite.
"""
WIDE = 5e9
"""Beyond this many products in one curvature of all weights, every component has its own."""
MOST_COORDINATES = 12_000
"""With more whitened weights than this, one curvature would take more than 1 GiB."""
GRADIENTS = 20  # Most iterations of conjugate gradients in a step; each of them ascends.
RELATIVE = 0.1  # Conjugate gradients end when the residual is below this fraction of the gradient.


@dataclass(frozen=True)
class Mode:
    """A point of the whitened weights and what was found there.

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
    """Climb the log posterior of the whitened weights.

    The step is Newton's on the observed Hessian, blended towards the complete-data one where it
    would not ascend. The search ends when a step promises a rise of at most ``tol / 2`` nats.

    A ``teacher`` gives responsibilities that replace the point's own: the complete-data problem,
    which has one mode. Where the weights are ``wide``, too many for one curvature matrix, steps are
    those of conjugate gradients on the complete-data curvature.
    """

    def evaluate(coordinates: np.ndarray) -> tuple[LabelExpectation, float]:
        logits = to_logits(designs, coordinates, log_proportions)
        expectation = expect(labels, logits)
        likelihood = expectation.log_likelihood
        if teacher is not None:
            expectation = _taught(expectation, labels, teacher)
            likelihood = _taught_likelihood(expectation, logits)
        return expectation, likelihood - 0.5 * float(coordinates @ coordinates)

    here = start
    expectation, value = evaluate(here)
    decrement = np.inf
    for _ in range(max_steps):
        gradient = weight_gradient(designs, expectation.logit_gradient) - here
        if wide:
            step, exact = separate_step(designs, expectation, gradient), False
        else:
            complete = teacher is not None
            step, exact = newton_step(designs, labels, expectation, gradient, complete=complete)
        decrement = float(gradient @ step)
        if decrement <= tol:
            break
        found = _search(evaluate, here, step, value, decrement)
        if found is None:
            break
        here, expectation, value = found
        # Newton's method converges quadratically: the next step would promise the square of this.
        if exact and decrement**2 <= tol:
            break
    return Mode(here, expectation, value, decrement)


def _taught(expectation: LabelExpectation, labels: Labels, teacher: np.ndarray) -> LabelExpectation:
    """The E-step with a teacher's responsibilities and equally probable completions."""
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
    """Complete-data log likelihood of the teacher's responsibilities."""
    top = logits.max(axis=1)
    log_all = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    explained = (expectation.responsibilities * logits).sum(axis=1) - log_all
    return float(expectation.weights @ explained)


def _search(
    evaluate: Callable[[np.ndarray], tuple[LabelExpectation, float]],
    here: np.ndarray,
    step: np.ndarray,
    value: float,
    decrement: float,
) -> tuple[np.ndarray, LabelExpectation, float] | None:
    """The first of ever shorter steps that raises the value; None if there is none.

    A rise that rounding would hide is taken on trust: the gradient knows it to more digits.
    """
    hidden = ROUNDING_OF_LOG_POSTERIOR * max(1.0, abs(value))
    for halving in range(HALVINGS):
        size = 0.5**halving
        trial = here + size * step
        expectation, reached = evaluate(trial)
        if reached >= value + 1e-4 * size * decrement - hidden:
            return trial, expectation, reached
    return None


def is_wide(designs: Designs) -> bool:
    """Whether one curvature of all weights together would take long; never with one component."""
    size = sum(design.shape[1] for design in designs)
    return len(designs) > 1 and (designs[0].shape[0] + size) * size**2 > WIDE


def check_size(designs: Designs) -> None:
    """Raise ValueError where one curvature of all weights would fill the memory."""
    size = sum(design.shape[1] for design in designs)
    if size > MOST_COORDINATES:
        raise ValueError(
            f"{size} weights are left, beyond the {MOST_COORDINATES} of which all can be judged "
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
    """Newton's step on the least blended Hessian that is positive definite; it ascends.

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
    """About Newton's step on the complete-data Hessian, which is never formed; it ascends."""
    slots, shape = places(designs), (gradient.size, gradient.size)
    roots = [
        cho_factor(block + np.eye(len(block)), lower=True)
        for block in component_curvatures(designs, expectation)
    ]

    def alone(vector: np.ndarray) -> np.ndarray:
        parts = (cho_solve(root, vector[slot]) for root, slot in zip(roots, slots, strict=True))
        return np.concatenate(list(parts))

    curvature = LinearOperator(
        shape, matvec=lambda v: v + curvature_product(designs, expectation, v), dtype=float
    )
    preconditioner = LinearOperator(shape, matvec=alone, dtype=float)
    step, _ = cg(curvature, gradient, M=preconditioner, rtol=RELATIVE, maxiter=GRADIENTS)
    return np.asarray(step)


def spread_of_components(
    designs: Designs, labels: Labels, expectation: LabelExpectation, *, wide: bool
) -> tuple[list[Float[np.ndarray, "_ _"]], float]:
    """Complete-data covariance of every component's coordinates, and the log determinant.

    The determinant is that of the curvature. Where ``wide``, components count as independent.
    """
    if wide:
        blocks = component_curvatures(designs, expectation)
        pairs = [inverse_curvature(block + np.eye(len(block))) for block in blocks]
        return [inverse for inverse, _ in pairs], sum(log for _, log in pairs)
    curvature = complete_curvature(designs, labels, expectation)
    inverse, log_determinant = inverse_curvature(curvature + np.eye(len(curvature)))
    return [inverse[slot, slot] for slot in places(designs)], log_determinant


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
