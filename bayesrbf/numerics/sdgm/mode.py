r"""The mode of the weights given their precisions: Newton's method with a line search.

Weights are whitened, :math:`w_k = T_k c_k` with :math:`T_k T_k^\top` the prior
covariance (of those directions that the rows can tell apart), so that every prior is
standard normal. Where a component has more weights than the features have rank, its
c has one coordinate a rank: the Woodbury identity, by a change of basis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.sdgm.likelihood import (
    Designs,
    Expectation,
    Labels,
    expect,
    gradient,
    to_logits,
)
from bayesrbf.numerics.sdgm.steps import newton_step, separate_step

HALVINGS = 30


@dataclass(frozen=True)
class Mode:
    """A point of the whitened weights and what was found there.

    Attributes
    ----------
    coordinates : ndarray of shape (n_coordinates,)
        Whitened weights c.
    expectation : Expectation
        E-step at the point.
    log_posterior : float
        Log likelihood less ``c . c / 2``.
    decrement : float
        Twice the rise that the last step that was looked at promised, in nats.
    """

    coordinates: Float[np.ndarray, " coordinate"]
    expectation: Expectation
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

    The step is Newton's on the observed Hessian, blended towards the
    complete-data one where it would not lead upwards.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.
    labels : Labels
        What is known of the rows.
    log_proportions : ndarray of shape (n_components,)
        log pi.
    start : ndarray of shape (n_coordinates,)
        First point.
    tol : float
        The search ends when a step would promise a rise of at most ``tol / 2`` nats.
    max_steps : int
        Most steps.
    teacher : ndarray of shape (n_points, n_components), optional
        Responsibilities to learn from in place of the point's own: the
        complete-data problem, which has one mode.
    wide : bool
        Whether the weights are too many for a curvature of all together: then steps
        are those of conjugate gradients on the complete-data curvature.

    Returns
    -------
    Mode
        The highest point that was found.
    """

    def evaluate(coordinates: np.ndarray) -> tuple[Expectation, float]:
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
        slope = gradient(designs, expectation.slope) - here
        if wide:
            step, exact = separate_step(designs, expectation, slope), False
        else:
            complete = teacher is not None
            step, exact = newton_step(designs, labels, expectation, slope, complete=complete)
        decrement = float(slope @ step)
        if decrement <= tol:
            break
        found = _search(evaluate, here, step, value, decrement)
        if found is None:
            break
        here, expectation, value = found
        # Newton's steps end quadratically: the next one would promise the square of this.
        if exact and decrement**2 <= tol:
            break
    return Mode(here, expectation, value, decrement)


def _taught(expectation: Expectation, labels: Labels, teacher: np.ndarray) -> Expectation:
    """The expectation with a teacher's responsibilities and equal completions."""
    sizes = labels.sizes
    shares = np.repeat(1.0 / sizes, sizes)
    return Expectation(
        expectation.pointwise,
        expectation.probabilities,
        teacher,
        shares,
        shares * np.repeat(labels.weights, sizes),
        expectation.log_likelihood,
    )


def _taught_likelihood(expectation: Expectation, logits: np.ndarray) -> float:
    """Complete-data log likelihood of the teacher's responsibilities."""
    top = logits.max(axis=1)
    log_all = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    explained = (expectation.responsibilities * logits).sum(axis=1) - log_all
    return float(expectation.weights @ explained)


def _search(
    evaluate: Callable[[np.ndarray], tuple[Expectation, float]],
    here: np.ndarray,
    step: np.ndarray,
    value: float,
    decrement: float,
) -> tuple[np.ndarray, Expectation, float] | None:
    """The first of ever shorter steps that raises the value; None if rounding hides every rise."""
    for halving in range(HALVINGS):
        size = 0.5**halving
        trial = here + size * step
        expectation, reached = evaluate(trial)
        if reached >= value + 1e-4 * size * decrement:
            return trial, expectation, reached
    return None
