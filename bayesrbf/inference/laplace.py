"""Draws around a mode: the Laplace approximation, and modes under random weights of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayesrbf.base.arrays import shorter_step
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import Subjects
from bayesrbf.base.tasks import Track, progress, silent
from bayesrbf.inference.draws import (
    Draws,
    GaussianSampling,
    bounded_curvature,
    check_numbers,
    on_grid,
    one_after_another,
)

# The posterior bootstrap: modes of the log posterior under random weights of the rows.


STEPS: Final = 200  # Iterations from the fitted mode to that of a draw.
MIN_WEIGHT: Final = 1e-9
"""Minimum share of a row's weight in every draw, so that no class loses all of its rows."""


def bootstrap_weights(
    weights: Float[np.ndarray, " obs"], rng: np.random.Generator, subjects: Subjects | None = None
) -> Float[np.ndarray, " obs"]:
    """Row weights of a bootstrap draw: Dirichlet shares of the subjects.

    ``w_n proportional to v_n g_n / m_n`` with ``g_n ~ Gamma(m_n)``, where v are the given weights
    and m numbers of subjects. Rows that are parts of one subject share their draw.
    """
    if not weights.size:  # No fold of a stack could hold a row out.
        return weights
    # Rows that are parts of a subject share one draw, below, which is of a whole subject.
    counts = np.ones(weights.size) if subjects is None else np.maximum(subjects.counts, 1.0)
    # Gamma variables divided by their sum are Dirichlet.
    drawn = rng.gamma(counts) / counts
    if subjects is not None and subjects.split.any():
        _, first, code = np.unique(subjects.numbers, return_index=True, return_inverse=True)
        drawn = np.where(subjects.split, drawn[first[code]], drawn)
    drawn = weights * (drawn + MIN_WEIGHT)
    return drawn * (weights.sum() / drawn.sum())


def bootstrap(
    reweighted: Callable[[Float[np.ndarray, " obs"]], LogPosterior],
    weights: Float[np.ndarray, " obs"],
    start: Float[np.ndarray, " coordinate"],
    *,
    subjects: Subjects | None = None,
    draws: int = 200,
    random_state: int | np.random.Generator | None = None,
    progress_bar: bool = False,
) -> Draws:
    r"""Draw modes of the log posterior under random weights of the rows.

    .. math:: \theta_s = \arg\max_\theta \sum_n w_{sn} \log p(y_n | \theta) + \log p(\theta),
        \quad w_s \propto v g_s, \; g_{sn} \sim \mathrm{Exp}(1)

    Every search begins at ``start``, the fitted mode; v are the weights of the fit, and ``lp`` is
    the log density under them. Rows of one subject share their factor g. Draws are independent, one
    chain of them. They spread as the fit would over other tables, whether or not the model is
    true. An interrupt (Ctrl-C) returns what was drawn, or is raised before the first draw.

    See Newton, Raftery (1994), Approximate Bayesian inference with the weighted likelihood
    bootstrap, JRSS B 56. Lyddon, Holmes, Walker (2019), General Bayesian updating and the
    loss-likelihood bootstrap, Biometrika 106.
    """
    check_numbers("bootstrap", draws=draws)
    rng = np.random.default_rng(random_state)
    fitted = reweighted(weights)
    found: list[np.ndarray] = []
    try:
        with progress(progress_bar) as track:
            for _ in track(range(draws), "Bootstrap"):
                found.append(mode_of(reweighted(bootstrap_weights(weights, rng, subjects)), start))
    except KeyboardInterrupt:
        if not found:
            raise
    theta = on_grid(np.stack(found), fitted.variables)
    lp = np.array([fitted.value_and_gradient(draw)[0] for draw in theta])
    return Draws(theta[None], {"lp": lp[None]}, "bootstrap", len(found) == draws)


def mode_of(
    log_posterior: LogPosterior, start: Float[np.ndarray, " coordinate"]
) -> Float[np.ndarray, " coordinate"]:
    """Mode of the density without Jacobian, by L-BFGS from a start."""
    scales = np.asarray(log_posterior.scales, dtype=np.float64)

    def downhill(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(u * scales, jacobian=False)
        return -value, -gradient * scales

    found = minimize(
        downhill, start / scales, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    return found.x * scales


# Laplace's approximation: the mode, the Gaussian that has its curvature there, and its draws.
#
# In the whitened coordinates of that Gaussian the posterior is nearly round; chains start in them.


_STEP: Final = np.finfo(float).eps ** (1 / 3)
"""Step of a central difference, in units of a coordinate's scale."""
_AT_ONCE: Final = 32
"""Coordinates whose differences are taken between two looks at progress and interrupts."""
_NEWTON_STEPS: Final = 20
_SMALL_GAIN: Final = 1e-6
"""Twice the rise that a Newton step promises 1e-3 posterior sd from the mode: the last step."""

_DISPERSION: Final = 2.0
"""Width of the chains' starts in Laplace's standard deviations.

R-hat then shows whether the chains have forgotten where they began.
"""

_COUPLED: Final = 0.03
"""Correlation in the precision from which two coordinates are whitened together."""

_DENSE: Final = 100  # Coordinates up to which a dense product is as quick as a sparse one.

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class GaussianApproximation:
    """A Gaussian at the mode, in the unconstrained coordinates."""

    mode: Float[np.ndarray, " coordinate"]  # Maximum of the log density with Jacobian.
    # C with covariance = C C', symmetric in coordinates per scale.
    factor: Float[np.ndarray, "coordinate coordinate"]
    precision: Float[np.ndarray, "coordinate coordinate"]
    log_density: float  # With Jacobian, at the mode.
    n_indefinite: int  # Directions without positive curvature; their spread is only a convention.
    gradient_norm: float  # Largest entry at the mode, per scale of its coordinate.

    @property
    def sentence(self) -> str:
        """Message on the curvature at the mode and its indefinite directions."""
        if self.n_indefinite == 0:
            return "The log posterior curves downwards in every direction at its mode."
        return (
            f"The log posterior is flat or curves upwards in {self.n_indefinite} of "
            f"{self.mode.size} directions at its mode; their spread was set from the size of "
            "the curvature, at most one unit: use refine('nuts') before trusting intervals."
        )


def approximate(
    log_posterior: LogPosterior, start: Float[np.ndarray, " coordinate"], track: Track = silent
) -> GaussianApproximation:
    """Find the mode with Jacobian and the curvature there.

    L-BFGS from the start, then Newton steps on a Hessian that is renewed until the steps are small.
    A direction of curvature that is not positive gets the absolute value of its curvature, at least
    that of one unit. ValueError if the density or its gradient is not finite at the start.
    """
    scales = np.asarray(log_posterior.scales, dtype=np.float64)
    value, gradient = log_posterior.value_and_gradient(start)
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
        raise ValueError(
            "The log posterior and its gradient must be finite where the mode search starts; "
            f"received log density {value:g} with {np.sum(~np.isfinite(gradient))} gradient "
            "entries that are not finite: start from the MAP estimate."
        )
    u = _climb(log_posterior, start / scales, scales)
    for _ in range(_NEWTON_STEPS):
        # Per scale: what counts as flat must not depend on the units of a coordinate.
        scaled = -hessian(log_posterior, u * scales, track) * np.outer(scales, scales)
        curvatures, axes, indefinite = bounded_curvature(scaled)
        value, gradient = _scaled(log_posterior, scales, u)
        step = axes @ ((axes.T @ gradient) / curvatures)
        gain = float(gradient @ step)
        # So near the mode the quadratic holds, and the step needs no line search.
        if gain < _SMALL_GAIN:
            u = u + step
            break
        found = shorter_step(partial(_scaled, log_posterior, scales), u, step, value, gain)
        if found is None:
            break
        u = found[0]
    value, gradient = _scaled(log_posterior, scales, u)
    return GaussianApproximation(
        mode=u * scales,
        factor=scales[:, None] * (axes / np.sqrt(curvatures)) @ axes.T,
        precision=(axes * curvatures) @ axes.T / np.outer(scales, scales),
        log_density=value,
        n_indefinite=int(indefinite.sum()),
        gradient_norm=float(np.max(np.abs(gradient), initial=0.0)),
    )


def hessian(
    log_posterior: LogPosterior, theta: Float[np.ndarray, " coordinate"], track: Track = silent
) -> Float[np.ndarray, "coordinate coordinate"]:
    """Second derivatives of the log density with Jacobian.

    It is the symmetric part of central differences of the gradient along each coordinate.
    """
    result = np.empty((theta.size, theta.size))
    for start in track(range(0, theta.size, _AT_ONCE), "Curvature"):
        axes = np.arange(start, min(start + _AT_ONCE, theta.size))
        above, below = np.tile(theta, (2, axes.size, 1))
        steps = _STEP * log_posterior.scales[axes]
        above[np.arange(axes.size), axes] += steps
        below[np.arange(axes.size), axes] -= steps
        # The step that rounding left, not the one that was asked for.
        width = (above - below)[np.arange(axes.size), axes]
        _, gradients = log_posterior.values_and_gradients(np.concatenate([above, below]))
        rise, fall = np.split(gradients, 2)
        result[axes] = (rise - fall) / width[:, None]
    return (result + result.T) / 2


def _scaled(
    log_posterior: LogPosterior,
    scales: Float[np.ndarray, " coordinate"],
    u: Float[np.ndarray, " coordinate"],
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    """Value and gradient in coordinates u = theta / scales."""
    value, gradient = log_posterior.evaluate(u * scales)
    return value, gradient * scales


def _climb(
    log_posterior: LogPosterior,
    u: Float[np.ndarray, " coordinate"],
    scales: Float[np.ndarray, " coordinate"],
) -> Float[np.ndarray, " coordinate"]:
    """Mode by L-BFGS in scaled coordinates; the objective is infinite without a density."""

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _scaled(log_posterior, scales, v)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return np.inf, np.zeros_like(v)
        return -value, -gradient

    options = {"maxiter": 500, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-6}
    result = minimize(objective, u, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(result.x, dtype=np.float64)


@dataclass(frozen=True)
class Whitened:
    r"""The log density over z, with :math:`\theta = m + C z`.

    ``centre`` is m and ``factor`` is C.
    """

    log_posterior: LogPosterior
    centre: Float[np.ndarray, " coordinate"]
    factor: np.ndarray | csr_array

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density in nats and its gradient at a point.

        The value is NaN where either is not finite or the model has no value, which nutpie takes as
        a divergence.
        """
        value, gradient = self.log_posterior.evaluate(self.centre + self.factor @ z)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.nan, np.zeros(z.size)
        return float(value), self._transposed @ gradient

    @cached_property
    def _transposed(self) -> np.ndarray | csr_array:
        """C' in a format whose products are fast."""
        return self.factor.T if isinstance(self.factor, np.ndarray) else csr_array(self.factor.T)

    def theta(self, z: np.ndarray) -> np.ndarray:
        """Coordinates of the log posterior at points z."""
        rows = one_after_another(z)
        return self.centre + (self.factor @ rows.T).T.reshape(z.shape)


def whitened(log_posterior: LogPosterior, gaussian: GaussianApproximation) -> Whitened:
    r"""Coordinates in which the posterior covariance is near the identity, cheap to multiply by.

    Coordinates whose correlation in the precision P is below 3 % are whitened separately: of
    the blocks b that remain, with S the root of the diagonal of P,

    .. math:: C_{bb} = S_b^{-1} \left( S_b^{-1} P_{bb} S_b^{-1} \right)^{-1/2}.

    The symmetric root moves the coordinates least, so that what a sampler learns about
    one z is about one coordinate. What is neglected leaves condition numbers near 1: it
    costs no steps, and a mixture's precision falls into blocks of the size of its columns.
    """
    roots = np.sqrt(np.diag(gaussian.precision))
    correlation = gaussian.precision / np.outer(roots, roots)
    _, block = connected_components(csr_array(np.abs(correlation) > _COUPLED), directed=False)
    order = np.argsort(block, kind="stable")
    rows, columns, entries = [], [], []
    for members in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        curvatures, axes = np.linalg.eigh(correlation[np.ix_(members, members)])
        root = (axes / np.sqrt(curvatures)) @ axes.T / roots[members, None]
        rows.append(np.repeat(members, members.size))
        columns.append(np.tile(members, members.size))
        entries.append(root.reshape(-1))
    indices = (np.concatenate(rows), np.concatenate(columns))
    factor = csr_array((np.concatenate(entries), indices), shape=correlation.shape)
    small = roots.size <= _DENSE
    return Whitened(log_posterior, gaussian.mode, factor.toarray() if small else factor)


def dispersed(density: Density, dimension: int, seed: int) -> Float[np.ndarray, " coordinate"]:
    """Start of a chain: a draw wider than the posterior, where there is a density.

    It is twice a standard normal draw, halved until its density is finite, as it is at the mode.
    """
    z = _DISPERSION * np.random.default_rng(seed).standard_normal(dimension)
    while not np.isfinite(density(z)[0]):
        z = z / 2
    return z


def laplace(
    log_posterior: LogPosterior,
    start: Float[np.ndarray, " coordinate"],
    *,
    draws: int = 1000,
    chains: int = 4,
    random_state: int | np.random.Generator | None = None,
    resample: bool = False,
    progress_bar: bool = False,
) -> Draws:
    r"""Draw from the Gaussian approximation at the mode.

    .. math:: q(\theta) = N(\hat\theta, H^{-1}), \quad
        \hat\theta = \arg\max \log p(\theta), \quad
        H = -\nabla^2 \log p(\hat\theta),

    with the Jacobian in p: the approximation lives where theta is unbounded. The mode search begins
    at ``start``, where the density must be finite. All draws of all chains are independent;
    ``resample`` replaces them by a Pareto-smoothed importance resample. An interrupt (Ctrl-C)
    returns what was drawn, marked incomplete, or is raised before the first draw.

    See MacKay (2003), Information Theory, Inference, and Learning Algorithms, chapter 27.
    """
    check_numbers("laplace", draws=draws, chains=chains)
    rng = np.random.default_rng(random_state)
    sampling = GaussianSampling("laplace", draws, chains, rng, resample)
    log_posterior = log_posterior.prepared_for_many()
    with progress(progress_bar) as track:
        gaussian = approximate(log_posterior, start, track)
        return sampling.of_gaussian(
            log_posterior,
            gaussian.mode,
            gaussian.factor,
            attributes={
                "n_indefinite": gaussian.n_indefinite,
                "gradient_norm": gaussian.gradient_norm,
                "curvature": gaussian.sentence,
            },
            track=track,
        )
