"""Laplace's approximation: draws of the Gaussian at the mode, with importance weights."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.approximation import check_size, gaussian_draws
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.gaussian_at_mode import approximate
from bayesrbf.inference.progress import progress
from bayesrbf.numerics.log_posterior import LogPosterior


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
    check_size("laplace", draws=draws, chains=chains)
    rng = np.random.default_rng(random_state)
    log_posterior = log_posterior.prepared_for_many()
    with progress(progress_bar) as track:
        gaussian = approximate(log_posterior, start, track)
        return gaussian_draws(
            log_posterior,
            gaussian.mode,
            gaussian.factor,
            method="laplace",
            draws=draws,
            chains=chains,
            rng=rng,
            resample=resample,
            attributes={
                "n_indefinite": gaussian.n_indefinite,
                "gradient_norm": gaussian.gradient_norm,
                "curvature": gaussian.sentence,
            },
            track=track,
        )
