"""The No-U-Turn sampler of nutpie over the kernel's log posterior: nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.approximation import evaluate
from bayesrbf.inference.draws import Draws, on_grid
from bayesrbf.inference.laplace import GaussianApproximation, approximate
from bayesrbf.inference.protocol import LogPosterior

_DISPERSION: Final = 2.0
"""Chains start this many Laplace standard deviations wide: R-hat sees what they forget."""

_STATS: Final = {
    "logp": "lp",
    "diverging": "diverging",
    "depth": "tree_depth",
    "maxdepth_reached": "reached_max_treedepth",
    "energy": "energy",
    "n_steps": "n_steps",
    "mean_tree_accept": "acceptance_rate",
    "step_size": "step_size",
}
"""nutpie's names of what it reports of each draw, and ours (PyMC's)."""

_LEAST_TUNE: Final = 10
"""Draws that the windows of the adaptation need."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


def nuts(
    log_posterior: LogPosterior,
    start: Float[np.ndarray, " coordinate"],
    *,
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    random_state: int | np.random.Generator | None = None,
    progress_bar: bool = False,
    target_accept: float = 0.9,
) -> Draws:
    r"""Draw from the posterior by Hamiltonian Monte Carlo.

    The chains run in z with :math:`\theta = \hat\theta + C z`, where
    :math:`C C'` is the covariance of the Laplace approximation: in z the
    posterior is nearly round, and nutpie's adaptation finds little to mend.
    They start at draws twice as wide as that approximation. An interrupt
    (Ctrl-C) returns what all running chains have drawn, marked incomplete.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density.
    start : ndarray of shape (dimension,)
        Where the mode search begins, such as the MAP estimate.
    draws : int
        Draws of each chain after tuning.
    tune : int
        Draws of each chain that adapt the step and are thrown away.
    chains : int
        Number of chains; they run in parallel.
    random_state : int, numpy.random.Generator or None
        Source of randomness; a number gives the same bits again.
    progress_bar : bool
        Show nutpie's progress bar.
    target_accept : float
        Acceptance that the step size aims at, in (0, 1): nearer one means
        smaller steps and fewer divergences.

    Returns
    -------
    Draws
        Stats ``lp``, ``diverging``, ``tree_depth``, ``reached_max_treedepth``,
        ``energy``, ``n_steps``, ``acceptance_rate``, ``step_size``.

    Raises
    ------
    ImportError
        If nutpie is not installed.
    ValueError
        If ``draws`` or ``chains`` is below 1, or ``tune`` below 10.
    KeyboardInterrupt
        If interrupted before the first draw.

    References
    ----------
    Hoffman and Gelman (2014), The No-U-Turn sampler, JMLR 15;
    Seyboldt, Carlson, Carpenter (2026), Preconditioning Hamiltonian Monte
    Carlo by minimizing Fisher divergence, arXiv 2603.18845.
    """
    nutpie = _import_nutpie()
    _check(draws, tune, chains)
    rng = np.random.default_rng(random_state)
    gaussian = approximate(log_posterior, start)
    sampler = nutpie.sample(
        _model(whitened(log_posterior, gaussian), gaussian.mode.size),
        draws=draws,
        tune=tune,
        chains=chains,
        cores=chains,
        seed=int(rng.integers(2**63)),
        target_accept=target_accept,
        progress_bar=progress_bar,
        blocking=False,
        return_raw_trace=True,
    )
    trace, complete = _wait(sampler)
    z, stats = _read(trace)
    theta = gaussian.mode + z @ gaussian.factor.T
    about: dict[str, float | int | str] = {
        "tune": tune,
        "target_accept": target_accept,
        "curvature": gaussian.sentence,
    }
    return Draws(on_grid(theta, log_posterior.variables), stats, "nuts", complete, about)


def whitened(log_posterior: LogPosterior, gaussian: GaussianApproximation) -> Density:
    r"""The log density over z, with :math:`\theta = \hat\theta + C z`.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density over theta, with Jacobian.
    gaussian : GaussianApproximation
        Its mode and C.

    Returns
    -------
    callable
        z -> (log density, gradient); NaN where either is not finite or the
        model has no value, which nutpie takes as a divergence.
    """
    mode, factor = gaussian.mode, np.ascontiguousarray(gaussian.factor)
    nowhere = (np.nan, np.zeros(mode.size))

    def density(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(log_posterior, mode + factor @ z)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return nowhere
        return float(value), gradient @ factor

    return density


def dispersed(density: Density, dimension: int, seed: int) -> Float[np.ndarray, " coordinate"]:
    """Start of a chain: a draw wider than the posterior, where there is a density.

    Parameters
    ----------
    density : callable
        What :func:`whitened` returned.
    dimension : int
        Number of coordinates.
    seed : int
        Seed of the chain.

    Returns
    -------
    ndarray of shape (dimension,)
        Twice a standard normal draw, halved until its density is finite: it is
        finite at the mode.
    """
    z = _DISPERSION * np.random.default_rng(seed).standard_normal(dimension)
    while not np.isfinite(density(z)[0]):
        z = z / 2
    return z


def _model(density: Density, dimension: int) -> Any:
    """The density as a model of nutpie, started from wide draws around the mode."""
    from nutpie.compiled_pyfunc import from_pyfunc

    return from_pyfunc(
        ndim=dimension,
        make_logp_fn=lambda: density,
        make_expand_fn=lambda seed1, seed2, chain: lambda z: {"z": np.array(z)},
        expanded_dtypes=[np.dtype(np.float64)],
        expanded_shapes=[(dimension,)],
        expanded_names=["z"],
        make_initial_point_fn=lambda seed: dispersed(density, dimension, seed),
    )


def _wait(sampler: Any) -> tuple[Any, bool]:
    """Let the sampler finish, or take what it has when interrupted."""
    try:
        return sampler.wait(), True
    except KeyboardInterrupt:
        return sampler.abort(), False


def _read(trace: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draws after tuning and their stats, chains cut to the shortest that drew anything."""
    import pyarrow

    chains = []
    for values, stats in zip(*trace.get_arrow_trace(), strict=True):
        kept = ~_column(pyarrow, stats, "tuning")
        z = pyarrow.array(values.column("z")).flatten().to_numpy().reshape(kept.size, -1)
        found = {name: _column(pyarrow, stats, key)[kept] for key, name in _STATS.items()}
        chains.append({"z": z[kept], **found})
    length = min((len(chain["z"]) for chain in chains if len(chain["z"])), default=0)
    if length == 0:
        raise KeyboardInterrupt("NUTS was interrupted before its first draw after tuning.")
    running = [chain for chain in chains if len(chain["z"])]
    arrays = {name: np.stack([chain[name][:length] for chain in running]) for name in running[0]}
    return arrays.pop("z"), arrays


def _column(pyarrow: Any, batch: Any, name: str) -> np.ndarray:
    """One column of numbers."""
    return np.asarray(pyarrow.array(batch.column(name)).to_numpy(zero_copy_only=False))


def _check(draws: int, tune: int, chains: int) -> None:
    """What nutpie would answer with a crash of its threads."""
    for name, value, least in (
        ("draws", draws, 1),
        ("tune", tune, _LEAST_TUNE),
        ("chains", chains, 1),
    ):
        if value < least:
            raise ValueError(f"nuts({name}=...) must be at least {least}; received {value!r}.")


def _import_nutpie() -> ModuleType:
    """The sampler is an extra: without it the error says how to get it."""
    try:
        import nutpie
    except ImportError as error:
        raise ImportError(
            "inference='nuts' needs nutpie, which is not installed: "
            'run  pip install "bayesrbf[nuts]"  or use inference="laplace".'
        ) from error
    module: ModuleType = nutpie
    return module
