"""Markov chains of a sweep that leaves the posterior invariant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.draws import Draws
from bayesrbf.inference.progress import progress
from bayesrbf.inference.protocol import LogPosterior

Sweep = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Coordinates of a point -> those of the next."""


def markov_chains(
    log_posterior: LogPosterior,
    sweep: Sweep,
    starts: Float[np.ndarray, "start coordinate"],
    *,
    draws: int = 500,
    tune: int = 200,
    chains: int = 4,
    random_state: int | np.random.Generator | None = None,
    progress_bar: bool = False,
) -> Draws:
    """Run chains of one sweep a draw, side by side.

    An interrupt (Ctrl-C) after the first kept draw returns what was drawn,
    marked incomplete.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density, for the log density of every draw.
    sweep : callable
        A move that leaves the density invariant.
    starts : ndarray of shape (n_starts, dimension)
        Where chains start, in turn; different modes show in R-hat.
    draws : int
        Draws of each chain that are kept.
    tune : int
        Draws of each chain before them, in which it forgets its start.
    chains : int
        Number of chains.
    random_state : int, numpy.random.Generator or None
        Source of randomness; a number gives the same bits again.
    progress_bar : bool
        Show how far the chains are.

    Returns
    -------
    Draws
        Stat ``lp``; method ``"gibbs"``.

    Raises
    ------
    ValueError
        If ``draws`` or ``chains`` is below 1, or ``tune`` below 0.
    KeyboardInterrupt
        If interrupted before the first kept draw.
    """
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        if value < least:
            raise ValueError(f"gibbs({name}=...) must be at least {least}; received {value}.")
    rngs = np.random.default_rng(random_state).spawn(chains)
    here = starts[np.arange(chains) % len(starts)]
    theta, lp = np.empty((chains, draws, here.shape[1])), np.empty((chains, draws))
    kept = 0
    try:
        with progress(progress_bar) as track:
            for turn in track(range(-tune, draws), "Gibbs"):
                here = np.stack([sweep(at, rng) for at, rng in zip(here, rngs, strict=True)])
                if turn >= 0:
                    theta[:, turn] = here
                    lp[:, turn] = [log_posterior.value_and_gradient(at)[0] for at in here]
                    kept = turn + 1
    except KeyboardInterrupt:
        if kept == 0:
            raise
    about: dict[str, float | int | str] = {"tune": tune}
    return Draws(theta[:, :kept], {"lp": lp[:, :kept]}, "gibbs", kept == draws, about)
