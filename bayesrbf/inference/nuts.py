"""The No-U-Turn sampler of nutpie over the log posterior of the numerics, without compiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.chains import (
    Watch,
    check_cores,
    longest_rectangle,
    processes_for,
    run_chains,
    seconds_of,
)
from bayesrbf.inference.draws import Draws, check_numbers, on_grid
from bayesrbf.inference.laplace import Whitened, approximate, dispersed, whitened
from bayesrbf.inference.progress import shown_progress
from bayesrbf.numerics.log_posterior import LogPosterior

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
"""nutpie's names of the stats of a draw, and ours (PyMC's)."""

_LEAST_TUNE: Final = 10  # Draws that the windows of the adaptation need.

_EVALUATIONS: Final = 12
"""Gradients that a draw is expected to take; the time of a run is guessed from it."""

_PATIENCE: Final = 0.1  # Seconds between two looks of the waiting thread at the wish to stop.


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
    cores: int | None = None,
) -> Draws:
    r"""Draw from the posterior by Hamiltonian Monte Carlo, which needs nutpie.

    The chains run in z with :math:`\theta = \hat\theta + C z`, where :math:`C C'` is nearly the
    covariance of the Laplace approximation (:func:`bayesrbf.inference.laplace.whitened`): in z the
    posterior is nearly round, and nutpie's adaptation finds little to mend. The mode search begins
    at ``start``; chains start at draws twice as wide as the approximation. ``target_accept`` in (0,
    1) is the acceptance that the step size aims at: nearer one means smaller steps and fewer
    divergences. A seed gives the same bits on any number of processes (``cores``; None: one, or,
    where a run takes longer than starting them, one a processor). An interrupt (Ctrl-C) returns
    what was drawn, marked incomplete, or is raised before the first draw.

    See Hoffman and Gelman (2014), The No-U-Turn sampler, JMLR 15; Seyboldt, Carlson, Carpenter
    (2026), Preconditioning Hamiltonian Monte Carlo by minimizing Fisher divergence, arXiv
    2603.18845.
    """
    _import_nutpie()
    check_numbers("nuts", draws=draws, chains=chains)
    check_numbers("nuts", least=_LEAST_TUNE, tune=tune)
    check_cores(cores)
    rng = np.random.default_rng(random_state)
    log_posterior = log_posterior.prepared_for_many()
    gaussian = approximate(log_posterior, start)
    density = whitened(log_posterior, gaussian)
    sampling = _Sampling(density, gaussian.mode.size, draws, tune, target_accept)
    # z = 0 is the mode, where there is a density.
    seconds = seconds_of(lambda: density(np.zeros(gaussian.mode.size)))
    seconds *= _EVALUATIONS * chains * (tune + draws)
    processes = processes_for(chains, seconds, cores, (sampling,))
    seeds = [int(seed) for seed in rng.integers(2**63, size=chains)]
    with shown_progress("nuts", chains * (tune + draws), progress_bar) as advance:
        traces, complete = run_chains(sampling, seeds, processes=processes, advance=advance)
    z, stats = _side_by_side(traces)
    theta = density.theta(z)
    about: dict[str, float | int | str] = {
        "tune": tune,
        "target_accept": target_accept,
        "curvature": gaussian.sentence,
    }
    return Draws(on_grid(theta, log_posterior.variables), stats, "nuts", complete, about)


@dataclass(frozen=True)
class _Sampling:
    """Everything but the seed that a chain needs: density, lengths, target acceptance."""

    density: Whitened
    dimension: int
    draws: int
    tune: int
    target_accept: float

    def __call__(self, seeds: Sequence[int], watch: Watch) -> list[dict[str, np.ndarray]]:
        """Draws of each chain after tuning, one after the other, until the run is stopped."""
        return [self._chain(seed, watch) for seed in seeds if not watch.stopped]

    def _chain(self, seed: int, watch: Watch) -> dict[str, np.ndarray]:
        """Draws and stats of one chain; an interrupt tells all to stop."""
        sampler = _import_nutpie().sample(
            self._model(watch),
            draws=self.draws,
            tune=self.tune,
            # One chain a call: run_chains deals them among processes.
            chains=1,
            cores=1,
            seed=seed,
            target_accept=self.target_accept,
            progress_bar=False,
            blocking=False,
            return_raw_trace=True,
        )
        return _read(_finished(sampler, watch))

    def _model(self, watch: Watch) -> Any:
        """The density as a model of nutpie, started from wide draws around the mode."""
        from nutpie.compiled_pyfunc import from_pyfunc

        def drawn(z: np.ndarray) -> dict[str, np.ndarray]:
            watch.advance()
            return {"z": np.array(z)}

        return from_pyfunc(
            ndim=self.dimension,
            make_logp_fn=lambda: self.density,
            make_expand_fn=lambda seed1, seed2, chain: drawn,
            expanded_dtypes=[np.dtype(np.float64)],
            expanded_shapes=[(self.dimension,)],
            expanded_names=["z"],
            make_initial_point_fn=lambda seed: dispersed(self.density, self.dimension, seed),
        )


def _finished(sampler: Any, watch: Watch) -> Any:
    """Trace of a sampler that works in a thread of its own: all, or what it has when stopped."""
    try:
        while not watch.stopped:
            try:
                return sampler.wait(timeout=_PATIENCE)
            except TimeoutError:  # nutpie's way to say that there is more to come
                continue
    except KeyboardInterrupt:
        watch.stop()
    return sampler.abort()


def _read(trace: Any) -> dict[str, np.ndarray]:
    """Draws of one chain after tuning, and their stats."""
    import pyarrow

    (values,), (stats,) = trace.get_arrow_trace()
    kept = ~_column(pyarrow, stats, "tuning")
    z = pyarrow.array(values.column("z")).flatten().to_numpy().reshape(kept.size, -1)
    found = {name: _column(pyarrow, stats, key)[kept] for key, name in _STATS.items()}
    return {"z": z[kept], **found}


def _side_by_side(
    chains: Sequence[dict[str, np.ndarray]],
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draws of all chains, cut where that keeps most, and their stats."""
    length = longest_rectangle([len(chain["z"]) for chain in chains])
    if length == 0:
        raise KeyboardInterrupt("NUTS was interrupted before its first draw after tuning.")
    long = [chain for chain in chains if len(chain["z"]) >= length]
    arrays = {name: np.stack([chain[name][:length] for chain in long]) for name in long[0]}
    return arrays.pop("z"), arrays


def _column(pyarrow: Any, batch: Any, name: str) -> np.ndarray:
    """One column of numbers."""
    return np.asarray(pyarrow.array(batch.column(name)).to_numpy(zero_copy_only=False))


def _import_nutpie() -> ModuleType:
    """The sampler, which is an extra: without it the error says how to install it."""
    try:
        import nutpie
    except ImportError as error:
        raise ImportError(
            "inference='nuts' needs nutpie, which is not installed: "
            'run  pip install nutpie  or use inference="laplace".'
        ) from error
    module: ModuleType = nutpie
    return module
