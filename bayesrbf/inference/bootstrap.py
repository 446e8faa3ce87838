"""The posterior bootstrap: modes of the log posterior under random weights of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import Units
from bayesrbf.base.tasks import progress
from bayesrbf.inference.draws import Draws, check_numbers, on_grid

STEPS: Final = 200  # Iterations from the fitted mode to that of a draw.
LEAST_WEIGHT: Final = 1e-9
"""Share of a row's weight that every draw leaves to it: no class is ever without a row."""


def bootstrap_weights(
    weights: Float[np.ndarray, " obs"], rng: np.random.Generator, units: Units | None = None
) -> Float[np.ndarray, " obs"]:
    """Row weights of one draw: every unit has a Dirichlet share, and its rows weigh by it.

    ``w_n proportional to v_n g_n / m_n`` with ``g_n ~ Gamma(m_n)``, where v are the given weights
    and m numbers of units. Rows that are parts of one unit share their draw.
    """
    if not weights.size:  # No fold of a stack could hold a row out.
        return weights
    counts = np.ones(weights.size) if units is None else np.maximum(units.counts, 1.0)
    # Gamma variables divided by their sum are Dirichlet.
    drawn = rng.gamma(counts) / counts
    if units is not None and units.split.any():
        _, first, code = np.unique(units.numbers, return_index=True, return_inverse=True)
        drawn = np.where(units.split, drawn[first[code]], drawn)
    drawn = weights * (drawn + LEAST_WEIGHT)
    return drawn * (weights.sum() / drawn.sum())


def bootstrap(
    reweighted: Callable[[Float[np.ndarray, " obs"]], LogPosterior],
    weights: Float[np.ndarray, " obs"],
    start: Float[np.ndarray, " coordinate"],
    *,
    units: Units | None = None,
    draws: int = 200,
    random_state: int | np.random.Generator | None = None,
    progress_bar: bool = False,
) -> Draws:
    r"""Draw modes of the log posterior under random weights of the rows.

    .. math:: \theta_s = \arg\max_\theta \sum_n w_{sn} \log p(y_n | \theta) + \log p(\theta),
        \quad w_s \propto v g_s, \; g_{sn} \sim \mathrm{Exp}(1)

    Every search begins at ``start``, the fitted mode; v are the weights of the fit, and ``lp`` is
    the log density under them. Rows of one unit share their factor g. Draws are independent, one
    chain of them. They spread as the fit would over other tables, whether or not the model is
    true. An interrupt (Ctrl-C) returns what was drawn, or is raised before the first draw.

    See Newton, Raftery (1994), Approximate Bayesian inference with the weighted likelihood
    bootstrap, JRSS B 56. Lyddon, Holmes, Walker (2019), General Bayesian updating and the
    loss-likelihood bootstrap, Biometrika 106.
    """
    check_numbers("bootstrap", draws=draws)
    rng, fitted = np.random.default_rng(random_state), reweighted(weights)
    found: list[np.ndarray] = []
    try:
        with progress(progress_bar) as track:
            for _ in track(range(draws), "Bootstrap"):
                found.append(mode_of(reweighted(bootstrap_weights(weights, rng, units)), start))
    except KeyboardInterrupt:
        if not found:
            raise
    theta = on_grid(np.stack(found), fitted.variables)
    lp = np.array([fitted.value_and_gradient(one)[0] for one in theta])
    return Draws(theta[None], {"lp": lp[None]}, "bootstrap", len(found) == draws)


def mode_of(
    log_posterior: LogPosterior, start: Float[np.ndarray, " coordinate"]
) -> Float[np.ndarray, " coordinate"]:
    """The mode without Jacobian that is reached from a start, by L-BFGS."""
    scales = np.asarray(log_posterior.scales, dtype=np.float64)

    def downhill(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(u * scales, jacobian=False)
        return -value, -gradient * scales

    found = minimize(
        downhill, start / scales, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    return found.x * scales
