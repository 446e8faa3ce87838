"""Chains: NUTS on a log posterior, and Gibbs sweeps that a family brings."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from pickle import PicklingError
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from bayesrbf.base.log_posterior import LogPosterior, MarkovKernel
from bayesrbf.base.tasks import deaf_processes, shown_progress
from bayesrbf.inference.draws import Draws, check_numbers, on_grid, one_after_another
from bayesrbf.inference.laplace import Whitened, approximate, dispersed, whitened

# Chains of one run, in this process or in several where that is faster.
#
# Python's threads do not help samplers whose steps take microseconds: all chains want the
# interpreter, and handing it over costs more than a step. So chains run in groups, each group in
# one thread of one process.


WORTHWHILE: Final = 10.0
"""Seconds of work below which no further process is started, because a start takes time, too."""

_PROGRESS_PATIENCE: Final = (
    0.1  # Seconds between two looks at the progress and at the wish to stop.
)

_IDLE: Final = 60.0
"""Seconds that idle processes are kept, so that the next run need not start any."""

# Processes share the processors already: threads within them would only compete.
_THREADS: Final = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _HereWatch:
    """Link between chains in this process and their run: steps, and a stop request."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.stopped = False
        self._tell = tell

    def stop(self) -> None:
        """Stop the chains, which keep the draws so far."""
        self.stopped = True

    def advance(self) -> None:
        """Count a step of a chain."""
        self._tell(1)


class _FileWatch:
    """Link between processes and their run: a file with a stop request and each group's steps."""

    def __init__(self, path: Path, group_index: int = 0) -> None:
        self.path = path
        self._cells = np.memmap(path, dtype=np.int64, mode="r+")
        self._cell = 1 + group_index

    @classmethod
    def started(cls, path: Path, n_groups: int) -> _FileWatch:
        """Make the file, with all steps at 0."""
        np.zeros(1 + n_groups, dtype=np.int64).tofile(path)
        return cls(path)

    @property
    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return bool(self._cells[0])

    def stop(self) -> None:
        """Stop the chains of all groups."""
        self._cells[0] = 1

    def advance(self) -> None:
        """Count a step of this group."""
        self._cells[self._cell] += 1

    @property
    def steps(self) -> int:
        """Number of steps of all groups."""
        return int(self._cells[1:].sum())


Watch = _HereWatch | _FileWatch
Work = Callable[[Any, Watch], list[Any]]
"""Runs the chains of one group, and returns what they drew, complete or not."""


def run_chains(
    work: Work, chains: Sequence[Any], *, processes: int, advance: Callable[[int], None]
) -> tuple[list[Any], bool]:
    """Run chains in groups, one group a process; the results, and whether all are complete.

    ``work(group, watch)`` runs a list of chains and returns one result a chain. Where
    ``watch.stopped`` or interrupted it tells all groups to stop and returns what is there. If there
    are several processes it must be a function of a module, whose arguments can be pickled.
    ``advance`` takes how many steps were done since it was last called.
    """
    if processes == 1:
        watch = _HereWatch(advance)
        with threadpool_limits(1, "blas"):  # as in other processes: the same bits
            return work(chains, watch), not watch.stopped
    bounds = np.linspace(0, len(chains), processes + 1).round().astype(int)
    groups = [chains[a:b] for a, b in pairwise(bounds)]
    with TemporaryDirectory(prefix="bayesrbf-", ignore_cleanup_errors=True) as folder:
        board = _FileWatch.started(Path(folder) / "board", len(groups))
        try:
            with deaf_processes():  # the one that waits passes Ctrl-C on
                executor = _executor(processes)
                runs = [
                    executor.submit(_in_group, work, group, board.path, index)
                    for index, group in enumerate(groups)
                ]
            _await(runs, board, advance)
        except BaseException:  # nobody waits for the groups any more
            board.stop()
            raise
        results = [result for run in runs for result in run.result()]
        return results, not board.stopped


def check_cores(cores: int | None) -> None:
    """ValueError if the caller asks for a number of processes below 1, before any work."""
    if cores is not None and cores < 1:
        raise ValueError(f"cores must be at least 1, or None; received {cores!r}.")


def processes_for(chains: int, seconds: float, cores: int | None, work: Sequence[object]) -> int:
    """Number of processes, from 1 to the number of chains.

    ``seconds`` is what the run is expected to take in one process, and ``work`` what would have to
    be sent to the others. None for ``cores`` means as many as there are processors, if the run is
    long enough to be worth their start.
    """
    if cores is not None:
        return min(cores, chains)
    import loky

    if chains == 1 or seconds < WORTHWHILE or not _can_be_sent(work):
        return 1
    return int(min(chains, loky.cpu_count()))


def longest_rectangle(lengths: Sequence[int]) -> int:
    """Length to which interrupted chains are cut to keep the most draws.

    It is the length L with the most draws in chains that have L or more.

    >>> longest_rectangle([100, 100, 3, 0]), longest_rectangle([90, 100, 80, 0])
    (100, 80)
    """
    return max(lengths, key=lambda least: least * sum(length >= least for length in lengths))


def _await(
    runs: list[Future[list[Any]]], board: _FileWatch, advance: Callable[[int], None]
) -> None:
    """Wait for all groups; an interrupt, or an error in a group, stops the others."""
    reported, pending = 0, set(runs)
    while pending:
        try:
            done, pending = wait(runs, timeout=_PROGRESS_PATIENCE)
            if any(run.exception() for run in done):
                board.stop()
            reported, before = board.steps, reported
            advance(reported - before)
        except KeyboardInterrupt:
            if board.stopped:  # interrupted a second time
                raise
            board.stop()


def _executor(processes: int) -> Any:
    """Pool of single-threaded processes, reused by the next run."""
    from loky import get_reusable_executor

    return get_reusable_executor(
        processes,
        timeout=_IDLE,
        # What is inherited reaches neither Windows nor processes that a thread starts.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
        env=dict.fromkeys(_THREADS, "1"),
    )


def _in_group(work: Work, group: Sequence[Any], path: Path, group_index: int) -> list[Any]:
    """Run a group of chains in another process."""
    with threadpool_limits(1, "blas"):
        return work(group, _FileWatch(path, group_index))


def _can_be_sent(work: Sequence[object]) -> bool:
    """Whether objects can be pickled and so sent to another process."""
    import cloudpickle

    try:
        cloudpickle.dumps(work)
    except (PicklingError, TypeError, AttributeError):
        return False
    return True


def seconds_of(step: Callable[[], object], repeats: int = 3) -> float:
    """Shortest time of a step in seconds, after a first run without timing."""
    step()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)


# The No-U-Turn sampler of nutpie over the log posterior of the numerics, without compiling.


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

_MIN_TUNE: Final = 10  # Draws that the windows of the adaptation need.

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
    check_numbers("nuts", least=_MIN_TUNE, tune=tune)
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
        """Draws of each chain after tuning, chain by chain, until a stop."""
        return [self._chain(seed, watch) for seed in seeds if not watch.stopped]

    def _chain(self, seed: int, watch: Watch) -> dict[str, np.ndarray]:
        """Draws and statistics of a chain; an interrupt stops all chains."""
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
    """Trace of a sampler in a background thread: complete, or as far as it got at a stop."""
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
    after_tuning = ~_column(pyarrow, stats, "tuning")
    z = pyarrow.array(values.column("z")).flatten().to_numpy().reshape(after_tuning.size, -1)
    found = {name: _column(pyarrow, stats, key)[after_tuning] for key, name in _STATS.items()}
    return {"z": z[after_tuning], **found}


def _side_by_side(
    chains: Sequence[dict[str, np.ndarray]],
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draws and statistics of all chains, cut to keep the most draws."""
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
    """The optional module nutpie; ImportError with instructions without it."""
    try:
        import nutpie
    except ImportError as error:
        raise ImportError(
            "inference='nuts' needs nutpie, which is not installed: "
            'run  pip install nutpie  or use inference="laplace".'
        ) from error
    module: ModuleType = nutpie
    return module


# Gibbs sampling: chains of a Markov kernel that the family brings.


_DISPERSION: Final = 0.5
"""Spread of the chains' starts in units of the coordinates.

It is far wider than a posterior of many rows.
"""

_ROUNDS: Final = 4
"""Number of equal rounds of the tuning.

After each round the kernel adapts to the second halves of all rounds so far.
"""


def gibbs(
    log_posterior: LogPosterior,
    start: Float[np.ndarray, " coordinate"],
    *,
    draws: int = 1000,
    tune: int = 400,
    thin: int = 4,
    chains: int = 4,
    random_state: int | np.random.Generator | None = None,
    progress_bar: bool = False,
    cores: int | None = None,
) -> Draws:
    r"""Draw from the posterior by sweeps of the family's own Markov kernel.

    A sweep draws everything latent, such as the component and the missing cells
    of every row, given :math:`\theta`, and then :math:`\theta` given all of it:

    .. math:: u \sim p(u \mid \theta, x, y), \quad \theta' \sim p(\theta \mid u, x, y).

    Each chain starts near ``start``, throws ``tune`` sweeps away and keeps one draw in ``thin``
    sweeps; ``lp`` is the log density with Jacobian. The kernel may learn from the draws of the
    tuning, of all chains together, before these are thrown away. Each chain has random numbers of
    its own, so that a seed gives the same bits on any number of processes (``cores``; None: one,
    or, where a run takes longer than starting them, one a processor). An interrupt (Ctrl-C) returns
    what was drawn, marked incomplete, or is raised before the first draw.

    See Gelfand and Smith (1990), Sampling-based approaches to calculating marginal densities, JASA
    85, 398-409; Diebolt and Robert (1994), Estimation of finite mixture distributions through
    Bayesian sampling, JRSS B 56, 363-375.
    """
    check_numbers("gibbs", draws=draws, thin=thin, chains=chains)
    check_numbers("gibbs", least=_ROUNDS, tune=tune)
    check_cores(cores)
    rngs = np.random.default_rng(random_state).spawn(chains)
    kernel = log_posterior.markov_kernel()
    states = [_Chain.started(log_posterior, start, rng) for rng in rngs]
    seen = np.zeros((0, start.size))
    processes = 1
    sweeps = tune + draws * thin
    with shown_progress("gibbs", chains * sweeps, progress_bar) as advance:
        for turn, n_sweeps in enumerate(np.diff(np.linspace(0, tune, _ROUNDS + 1).astype(int))):
            started = time.perf_counter()
            drawn, states, complete = _run(states, kernel, int(n_sweeps), 1, processes, advance)
            if not complete:
                raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
            seconds = (time.perf_counter() - started) * sweeps / n_sweeps
            seen = np.concatenate([seen, drawn[:, drawn.shape[1] // 2 :].reshape(-1, start.size)])
            kernel = kernel.adapted(seen)
            # The first round of the tuning predicts the time of the rest.
            if turn == 0:
                processes = processes_for(chains, seconds, cores, (kernel, states))
        drawn, _, complete = _run(states, kernel, draws, thin, processes, advance)
    theta = on_grid(drawn, log_posterior.variables)
    lp = log_posterior.log_densities(one_after_another(theta)).reshape(theta.shape[:2])
    about: dict[str, float | int | str] = {"tune": tune, "thin": thin}
    return Draws(theta, {"lp": lp}, "gibbs", complete, about)


@dataclass
class _Chain:
    """State of a chain, with its random generator."""

    theta: np.ndarray
    rng: np.random.Generator

    @classmethod
    def started(
        cls, log_posterior: LogPosterior, start: np.ndarray, rng: np.random.Generator
    ) -> Self:
        """A chain far from the start, but where there is a density."""
        step = _DISPERSION * log_posterior.scales * rng.standard_normal(start.size)
        while not np.isfinite(log_posterior.value_and_gradient(start + step)[0]):
            step = step / 2
        return cls(start + step, rng)


@dataclass(frozen=True)
class _Sweeping:
    """Sweeps of the chains of a group by a kernel.

    The chains of a group take turns, so that none is ahead of the others.
    """

    kernel: MarkovKernel
    draws: int
    thin: int

    def __call__(
        self, chains: Sequence[_Chain], watch: Watch
    ) -> list[tuple[list[np.ndarray], _Chain]]:
        """Draws of each chain until completion or a stop, and the final states."""
        drawn: list[list[np.ndarray]] = [[] for _ in chains]
        try:
            for _ in range(self.draws):
                for chain, chain_draws in zip(chains, drawn, strict=True):
                    if watch.stopped:
                        break
                    for _ in range(self.thin):
                        chain.theta = self.kernel.sweep(chain.theta, chain.rng)
                        watch.advance()
                    chain_draws.append(chain.theta)
        except KeyboardInterrupt:
            watch.stop()
        return list(zip(drawn, chains, strict=True))


def _run(
    states: Sequence[_Chain],
    kernel: MarkovKernel,
    draws: int,
    thin: int,
    processes: int,
    advance: Callable[[int], None],
) -> tuple[np.ndarray, list[_Chain], bool]:
    """Draws (chain, draw, coordinate), final states, and whether all draws were made."""
    sweeping = _Sweeping(kernel, draws, thin)
    results, complete = run_chains(sweeping, states, processes=processes, advance=advance)
    length = longest_rectangle([len(drawn) for drawn, _ in results])
    if length == 0:
        raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
    long = [draws for draws, _ in results if len(draws) >= length]
    drawn = np.stack([np.stack(draws[:length]) for draws in long])
    return drawn, [chain for _, chain in results], complete
