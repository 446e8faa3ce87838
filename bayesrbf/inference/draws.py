"""Draws of a posterior, the names of their components, and Gaussian approximations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.optimize import linear_sum_assignment

from bayesrbf.base.arrays import log_softmax
from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.records import ANY_NUMBER, Requirements, stored
from bayesrbf.base.rows import Variable, in_blocks
from bayesrbf.base.tasks import Track, silent

# Draws of a posterior, whatever the method that made them, and the names of their components.


MEMORY: Final = 2 * 2**30
"""Bytes that an array over draws may take, unless a caller says otherwise."""

_GRID: Final = 2.0**40  # Transformed coordinates are multiples of 1 / _GRID (1e-12).


@stored
class Draws:
    """Draws of the unconstrained coordinates, with statistics of each draw."""

    theta: Float[np.ndarray, "chain draw coordinate"]
    # Always ``lp``, the log density with Jacobian; ``log_q`` of approximations; ``diverging``,
    # ``tree_depth``, ``energy``, ``n_steps`` and more of samplers.
    stats: Mapping[str, Shaped[np.ndarray, "chain draw"]] = field(metadata=ANY_NUMBER)
    method: str  # Such as "map", "laplace" or "nuts".
    complete: bool = True  # False when the run was interrupted before its last draw.
    # Figures of the whole run, such as ``pareto_k``.
    attributes: Mapping[str, float | int | str] = field(default_factory=dict, metadata=ANY_NUMBER)

    @property
    def n_draws(self) -> int:
        """Number of draws of all chains together."""
        return self.theta.shape[0] * self.theta.shape[1]

    @property
    def worth(self) -> float:
        """Upper bound of the effective number of draws: copies in a resample count once."""
        resampled = bool(self.attributes.get("resampled", 0))
        share = float(self.attributes["importance_share"]) if resampled else 1.0
        return share * self.n_draws

    @property
    def point_estimate(self) -> bool:
        """Whether there is a single draw, a point estimate."""
        return self.n_draws == 1

    def __laws__(self) -> Requirements:
        yield self.n_draws > 0, "draws"
        yield "lp" in self.stats, "the log density of every draw"
        plain = all(value.dtype.kind in "biuf" for value in self.stats.values())
        yield plain, "statistics that are numbers"


def check_numbers(method: str, *, least: int = 1, **numbers: int) -> None:
    """ValueError for a number below its minimum, before any work."""
    for name, value in numbers.items():
        if value < least:
            raise ValueError(f"{method}({name}=...) must be at least {least}; received {value!r}.")


def point(log_posterior: LogPosterior, theta: Float[np.ndarray, " coordinate"]) -> Draws:
    """A point estimate as a chain of one draw, of method "map"."""
    value, _ = log_posterior.value_and_gradient(theta)
    return Draws(theta[None, None], {"lp": np.array([[value]])}, "map")


def on_grid(
    theta: Float[np.ndarray, "*draws coordinate"], variables: tuple[Variable, ...]
) -> Float[np.ndarray, "*draws coordinate"]:
    """Round transformed coordinates to multiples of :math:`2^{-40}`.

    A simplex leaves out its last entry, minus the sum of the others, and a change of labels may go
    through constrained values: in floating point, there and back would not return the same bits. On
    the grid it does, because such sums are exact and the error of a round trip is far below one
    step. Log and simplex coordinates change by at most 5e-13.
    """
    transformed = np.repeat(
        [variable.transform != "identity" for variable in variables],
        [variable.size for variable in variables],
    )
    return np.where(transformed, np.round(theta * _GRID) / _GRID, theta)


def one_after_another(
    thetas: Float[np.ndarray, "*batch coordinate"],
) -> Float[np.ndarray, "draw coordinate"]:
    """Draws of all chains as rows; the number of coordinates may be 0."""
    return thetas.reshape(math.prod(thetas.shape[:-1]), thetas.shape[-1])


_FLOOR: Final = -50.0
"""Lower bound of log responsibilities in the costs: a single outlying row must not decide alone."""


def relabel(
    log_posterior: LogPosterior, draws: Draws, reference: Float[np.ndarray, " coordinate"]
) -> Draws:
    r"""Name the components of every draw as those of a reference point, such as the MAP estimate.

    With q the reference's responsibilities and r a draw's, the permutation of
    each class's components minimises the Kullback-Leibler divergence

    .. math:: \sum_k c_{\sigma(k) k}, \quad c_{jk} = -\sum_n q_{nk} \log r_{nj},

    which is an assignment problem per draw and class. The log posterior does not change. Draws
    whose labels were permuted before give the same bits.

    See Stephens (2000), Dealing with label switching in mixture models, JRSS B 62, algorithm 2 with
    q held at the reference.
    """
    classes = np.asarray(log_posterior.component_class)
    theta = on_grid(draws.theta, log_posterior.variables)
    if not log_posterior.exchangeable:
        return replace(draws, theta=theta)
    responsibilities = np.exp(log_softmax(log_posterior.component_log_joint(reference), axis=-1))
    flat = theta.reshape(-1, theta.shape[-1])  # a view: what is written here is in theta
    for block in in_blocks(len(flat), responsibilities.size):
        thetas = flat[block]
        log_joints = log_posterior.component_log_joints(thetas)
        orders = best_orders(responsibilities, log_joints, classes)
        for index in np.flatnonzero((orders != np.arange(classes.size)).any(axis=1)):
            thetas[index] = log_posterior.permute(thetas[index], orders[index])
    return replace(draws, theta=on_grid(theta, log_posterior.variables))


def best_orders(
    responsibilities: Float[np.ndarray, "row component"],
    log_joints: Float[np.ndarray, "draw row component"],
    component_class: Int[np.ndarray, " component"],
) -> Int[np.ndarray, "draw component"]:
    """Order of each draw's components that is nearest to the reference.

    Component ``order[k]`` of a draw takes the place k; only components of one class trade places.

    >>> q = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> best_orders(q, np.log([[[0.1, 0.9], [0.8, 0.2]]]), np.array([0, 0])).tolist()
    [[1, 0]]
    """
    costs = -np.maximum(log_softmax(log_joints, axis=-1), _FLOOR).swapaxes(1, 2) @ responsibilities
    orders = np.tile(np.arange(component_class.size), (len(costs), 1))
    for label in np.unique(component_class):
        members = np.flatnonzero(component_class == label)
        within = costs[:, members[:, None], members]
        for order, cost in zip(orders, within, strict=True):
            chosen, positions = linear_sum_assignment(cost)
            order[members[positions]] = members[chosen]
    return orders


# Draws of Gaussian approximations, and their importance ratios.


SMALLEST: Final = 25  # Draws below which no five of them make a tail.
PARETO_K: Final = 0.7
"""Tail shape above which importance ratios cannot be trusted; Vehtari et al. (2024)."""
NEARLY_EQUAL: Final = 0.95
"""Effective share of the draws above which importance weights hardly differ from each other."""
_EXACT: Final = 1e-6
"""Range of log ratios that is rounding alone: their tail shape would be noise."""


def pareto_smooth(
    log_ratios: Float[np.ndarray, " draw"],
) -> tuple[Float[np.ndarray, " draw"], float]:
    r"""Normalised Pareto-smoothed importance weights and the shape k of their tail.

    The largest ratios :math:`p(\theta_s) / q(\theta_s)` of independent draws from q, known up to a
    constant, are replaced by quantiles of a generalised Pareto distribution fitted to them.
    Where k is above 0.7 the draws do not represent p. It is minus infinity when
    all ratios are equal, and NaN with fewer than 25 draws, which have no tail.

    See Vehtari, Simpson, Gelman, Yao, Gabry (2024), Pareto smoothed importance sampling, JMLR 25,
    section 2.

    >>> weights, pareto_k = pareto_smooth(np.zeros(100))
    >>> float(weights.sum().round(12))
    1.0
    """
    from arviz_stats.base.array import (
        array_stats,  # loads xarray, which a prediction can do without
    )

    finite = np.isfinite(log_ratios)
    if not finite.any():
        raise ValueError(
            "Importance ratios must have a finite one among them; all "
            f"{log_ratios.size} were infinite or NaN: the approximation misses the posterior."
        )
    # a draw without density gets no weight: exp(-1000) is zero, and infinity would warn
    ratios = np.where(finite, log_ratios, log_ratios[finite].min() - 1000)
    pareto_k = np.nan
    if np.ptp(ratios) < _EXACT:
        pareto_k = -np.inf
    elif ratios.size >= SMALLEST:
        # arviz_stats takes log likelihoods, the negatives of leave-one-out ratios
        ratios, pareto_k = array_stats.psislw(-ratios)
    weights = np.exp(ratios - ratios.max())
    return weights / weights.sum(), float(pareto_k)


def covers(attributes: Mapping[str, float | int | str]) -> bool:
    """Whether draws with these attributes cover the posterior; a sampler's draws do.

    An approximation does where its importance ratios have a light tail or hardly differ.
    """
    pareto_k = float(attributes.get("pareto_k", -np.inf))
    share = float(attributes.get("importance_share", 0.0))
    return pareto_k <= PARETO_K or (pareto_k > PARETO_K and share >= NEARLY_EQUAL)


def systematic_resample(
    weights: Float[np.ndarray, " draw"], rng: np.random.Generator
) -> Int[np.ndarray, " draw"]:
    """Indices of a systematic resample, in random order.

    Index ``s`` appears ``n_draws * weights[s]`` times, rounded up or down; weights sum to one.

    >>> halves, rng = np.array([0.5, 0.5, 0.0, 0.0]), np.random.default_rng(0)
    >>> sorted(systematic_resample(halves, rng).tolist())
    [0, 0, 1, 1]
    """
    n = weights.size
    positions = (np.arange(n) + rng.random()) / n
    # Rounding may leave the last sum below 1, and a position beyond it.
    indices = np.searchsorted(np.cumsum(weights), positions)
    return rng.permutation(np.minimum(indices, n - 1))


_FLAT: Final = 1e-9  # Curvatures below this share of the largest are lost in rounding.


@dataclass(frozen=True)
class GaussianSampling:
    """How many draws of a Gaussian a method makes, and whether importance resamples them."""

    method: str
    draws: int
    chains: int
    rng: np.random.Generator
    resample: bool

    def of_gaussian(
        self,
        log_posterior: LogPosterior,
        centre: Float[np.ndarray, " coordinate"],
        factor: Float[np.ndarray, "coordinate coordinate"],
        *,
        attributes: Mapping[str, float | int | str],
        track: Track = silent,
    ) -> Draws:
        r"""Draw from a Gaussian that stands for the posterior.

        .. math:: \theta = \mu + C z, \quad z \sim N(0, I), \quad q = N(\mu, C C').

        ``centre`` is mu and ``factor`` is C. The draws may be replaced by a Pareto-smoothed
        importance resample of them. Stats are ``lp`` and ``log_q``; attributes are those given and
        ``pareto_k``, ``resampled``, and ``importance_share``: the effective number of the smoothed
        importance weights, :math:`(\sum_s w_s)^2 / \sum_s w_s^2`, as a share of the draws.

        An interrupt (Ctrl-C) returns the draws whose density is known, marked incomplete;
        KeyboardInterrupt before every chain had a draw.
        """
        z = self.rng.standard_normal((self.chains, self.draws, centre.size))
        theta = on_grid(centre + z @ factor.T, log_posterior.variables)
        lp = _densities(log_posterior, theta, track)
        made = lp.shape[1]
        if made == 0:
            raise KeyboardInterrupt(f"{self.method} was interrupted before its first draw.")
        theta = theta[:, :made]
        log_q = _log_normal(z[:, :made], factor)
        weights, pareto_k = pareto_smooth((lp - log_q).reshape(-1))
        if self.resample:
            chosen = np.unravel_index(systematic_resample(weights, self.rng), lp.shape)
            theta, lp, log_q = (array[chosen].reshape(array.shape) for array in (theta, lp, log_q))
        about = {
            **attributes,
            "pareto_k": pareto_k,
            # As much is known from 1 / sum w² draws of equal weight.
            "importance_share": float(1 / (weights.size * np.sum(weights**2))),
            "resampled": int(self.resample),
        }
        return Draws(theta, {"lp": lp, "log_q": log_q}, self.method, made == self.draws, about)


def bounded_curvature(
    curvature: Float[np.ndarray, "coordinate coordinate"], flat: float = _FLAT
) -> tuple[
    Float[np.ndarray, " coordinate"],
    Float[np.ndarray, "coordinate coordinate"],
    Bool[np.ndarray, " coordinate"],
]:
    """Eigenvalues of a curvature, made positive, with their axes and the indefinite ones.

    ``curvature`` is minus the second derivatives of the log density, in coordinates whose unit is
    the largest spread that one would believe; at and below the share ``flat`` of the largest there
    is none. The result is the eigenvalues, of those that were not positive the absolute value but
    at least 1, their axes in columns, and which were not positive.

    >>> bounded_curvature(np.diag([4.0, -0.5]))[0]
    array([1., 4.])
    """
    eigenvalues, axes = np.linalg.eigh((curvature + curvature.T) / 2)
    indefinite = eigenvalues <= flat * np.max(np.abs(eigenvalues), initial=0.0)
    curvatures = np.where(indefinite, np.maximum(np.abs(eigenvalues), 1.0), eigenvalues)
    return curvatures, axes, indefinite


def _densities(
    log_posterior: LogPosterior, theta: Float[np.ndarray, "chain draw coordinate"], track: Track
) -> Float[np.ndarray, "chain made"]:
    """Log densities of the first draws of every chain, up to an interrupt."""
    chains, draws, _ = theta.shape
    made = [np.empty((chains, 0))]
    # All chains step by step, so that an interrupt leaves every chain its first draws.
    size = max(1, log_posterior.points_at_once // chains)
    with suppress(KeyboardInterrupt):
        for start in track(range(0, draws, size), "Drawing"):
            block = theta[:, start : start + size]
            values = log_posterior.log_densities(one_after_another(block))
            made.append(np.where(np.isfinite(values), values, -np.inf).reshape(chains, -1))
    return np.concatenate(made, axis=1)


def _log_normal(
    z: Float[np.ndarray, "chain draw coordinate"],
    factor: Float[np.ndarray, "coordinate coordinate"],
) -> Float[np.ndarray, "chain draw"]:
    """Log density of ``centre + factor z`` for standard normal z."""
    _, log_determinant = np.linalg.slogdet(factor)
    constant = -0.5 * z.shape[-1] * np.log(2 * np.pi) - log_determinant
    return np.asarray(constant - 0.5 * np.sum(z**2, axis=-1))
