"""Gibbs sampling: chains of a Markov kernel that the family brings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Final, Self

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.draws import Draws, on_grid
from bayesrbf.inference.protocol import LogPosterior, MarkovKernel, SweptPosterior

_DISPERSION: Final = 0.5
"""Chains start this many units of the coordinates away: far wider than a posterior of many rows."""

_ROUNDS: Final = 4
"""Equal parts of the tuning; the second halves of all so far teach the kernel for the next."""

_PATIENCE: Final = 0.1
"""Seconds after which the waiting thread looks for an interrupt: not every lock hears one."""


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
) -> Draws:
    r"""Draw from the posterior by sweeps of the family's own Markov kernel.

    A sweep draws everything latent, such as the component and the missing cells
    of every row, given :math:`\theta`, and then :math:`\theta` given all of it:

    .. math:: u \sim p(u \mid \theta, x, y), \quad \theta' \sim p(\theta \mid u, x, y).

    The kernel may learn from the draws of the tuning, of all chains together,
    before these are thrown away. Chains run in parallel, each on random numbers
    of its own, so that a seed gives the same bits on any number of threads. An
    interrupt (Ctrl-C) returns what all running chains have drawn, marked
    incomplete.

    Parameters
    ----------
    log_posterior : SweptPosterior
        The density, which brings its kernel.
    start : ndarray of shape (dimension,)
        Around which the chains start, such as the MAP estimate.
    draws : int
        Draws of each chain after tuning.
    tune : int
        Sweeps of each chain that are thrown away.
    thin : int
        Sweeps for each draw that is kept.
    chains : int
        Number of chains.
    random_state : int, numpy.random.Generator or None
        Source of randomness; a number gives the same bits again.
    progress_bar : bool
        Show a progress bar.

    Returns
    -------
    Draws
        Stats ``lp``, the log density with Jacobian.

    Raises
    ------
    ValueError
        If ``draws``, ``thin`` or ``chains`` is below 1, ``tune`` below 4, the
        family has no kernel, or the rows have weights that it cannot take.
    KeyboardInterrupt
        If interrupted before the first draw.

    References
    ----------
    Gelfand and Smith (1990), Sampling-based approaches to calculating marginal
    densities, JASA 85, 398-409; Diebolt and Robert (1994), Estimation of finite
    mixture distributions through Bayesian sampling, JRSS B 56, 363-375.
    """
    if not isinstance(log_posterior, SweptPosterior):
        raise ValueError(
            "Gibbs sampling needs a model whose latent variables have known conditionals, such as "
            f"a mixture or exemplars; received a {type(log_posterior).__name__}: use "
            "refine('nuts')."
        )
    for name, value, least in (
        ("draws", draws, 1),
        ("tune", tune, _ROUNDS),
        ("thin", thin, 1),
        ("chains", chains, 1),
    ):
        if value < least:
            raise ValueError(f"gibbs({name}=...) must be at least {least}; received {value!r}.")
    rngs = np.random.default_rng(random_state).spawn(chains)
    kernel = log_posterior.markov_kernel()
    runs = [_Chain.started(log_posterior, start, rng) for rng in rngs]
    with _progress(chains * (tune + draws * thin), progress_bar) as advance:
        seen = np.zeros((0, start.size))
        for part in np.diff(np.linspace(0, tune, _ROUNDS + 1).astype(int)):
            drawn, complete = _run(runs, kernel, int(part), 1, advance)
            if not complete:
                raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
            seen = np.concatenate([seen, drawn[:, drawn.shape[1] // 2 :].reshape(-1, start.size)])
            kernel = kernel.adapted(seen)
        drawn, complete = _run(runs, kernel, draws, thin, advance)
    theta = on_grid(drawn, log_posterior.variables)
    about: dict[str, float | int | str] = {"tune": tune, "thin": thin}
    return Draws(theta, {"lp": _log_densities(log_posterior, theta)}, "gibbs", complete, about)


@dataclass(frozen=True)
class _Signs:
    """What the waiting thread tells its chains.

    None starts before all are known: a chain runs far while the next one is made,
    and what an interrupt found there would be lost.
    """

    start: Event = field(default_factory=Event)
    stop: Event = field(default_factory=Event)


@dataclass
class _Chain:
    """Where a chain is, and the random numbers that are its own."""

    theta: np.ndarray
    rng: np.random.Generator

    @classmethod
    def started(
        cls, log_posterior: SweptPosterior, start: np.ndarray, rng: np.random.Generator
    ) -> Self:
        """A chain far from the start, but where there is a density."""
        step = _DISPERSION * log_posterior.scales * rng.standard_normal(start.size)
        while not np.isfinite(log_posterior.value_and_gradient(start + step)[0]):
            step = step / 2
        return cls(start + step, rng)

    def run(
        self, kernel: MarkovKernel, draws: int, thin: int, advance: Callable[[], None], signs: _Signs
    ) -> list[np.ndarray]:
        """From the start, draw until all are drawn or someone says stop; an error says it."""
        drawn: list[np.ndarray] = []
        signs.start.wait()
        try:
            while len(drawn) < draws and not signs.stop.is_set():
                for _ in range(thin):
                    self.theta = kernel.sweep(self.theta, self.rng)
                    advance()
                drawn.append(self.theta)
        except Exception:
            signs.stop.set()
            raise
        return drawn


def _run(
    chains: list[_Chain], kernel: MarkovKernel, draws: int, thin: int, advance: Callable[[], None]
) -> tuple[np.ndarray, bool]:
    """Draws (chain, draw, coordinate) of all chains side by side, and whether they are all."""
    signs, complete, runs = _Signs(), True, []
    with ThreadPoolExecutor(len(chains), "bayesrbf-gibbs") as pool:
        try:
            for chain in chains:
                runs.append(pool.submit(chain.run, kernel, draws, thin, advance, signs))
            signs.start.set()
            while wait(runs, timeout=_PATIENCE).not_done:
                pass
        except KeyboardInterrupt:
            complete = False
        finally:  # also where a thread could not be started: the others wait for their sign
            signs.stop.set()
            signs.start.set()
    drawn = [part for part in (run.result() for run in runs) if part]
    length = min((len(part) for part in drawn), default=0)
    if length == 0:
        raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
    return np.stack([np.stack(part[:length]) for part in drawn]), complete


def _log_densities(log_posterior: SweptPosterior, theta: np.ndarray) -> np.ndarray:
    """Log density, with Jacobian, of every draw of every chain."""

    def of_chain(points: np.ndarray) -> list[float]:
        return [log_posterior.value_and_gradient(point)[0] for point in points]

    with ThreadPoolExecutor(len(theta), "bayesrbf-gibbs") as pool:
        return np.array(list(pool.map(of_chain, theta)))


@contextmanager
def _progress(total: int, shown: bool) -> Iterator[Callable[[], None]]:
    """What to call after every sweep."""
    if not shown:
        yield lambda: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task("gibbs", total=total)
        yield lambda: bar.advance(task)
