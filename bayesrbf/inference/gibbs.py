"""Gibbs sampling: chains of a Markov kernel that the family brings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Float

from bayesrbf.base.log_posterior import LogPosterior, MarkovKernel
from bayesrbf.base.tasks import shown_progress
from bayesrbf.inference.draws import Draws, check_numbers, on_grid, one_after_another
from bayesrbf.inference.nuts import Watch, check_cores, longest_rectangle, processes_for, run_chains

_DISPERSION: Final = 0.5
"""Spread of the chains' starts in units of the coordinates.

It is far wider than a posterior of many rows.
"""

_ROUNDS: Final = 4
"""Number of equal parts of the tuning.

After each part the kernel learns from the second halves of all parts so far.
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
    seen, processes, sweeps = np.zeros((0, start.size)), 1, tune + draws * thin
    with shown_progress("gibbs", chains * sweeps, progress_bar) as advance:
        for turn, part in enumerate(np.diff(np.linspace(0, tune, _ROUNDS + 1).astype(int))):
            begun = time.perf_counter()
            drawn, states, complete = _run(states, kernel, int(part), 1, processes, advance)
            if not complete:
                raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
            seconds = (time.perf_counter() - begun) * sweeps / part
            seen = np.concatenate([seen, drawn[:, drawn.shape[1] // 2 :].reshape(-1, start.size)])
            kernel = kernel.adapted(seen)
            # The first part of the tuning tells how long the rest takes.
            if turn == 0:
                processes = processes_for(chains, seconds, cores, (kernel, states))
        drawn, _, complete = _run(states, kernel, draws, thin, processes, advance)
    theta = on_grid(drawn, log_posterior.variables)
    lp = log_posterior.log_densities(one_after_another(theta)).reshape(theta.shape[:2])
    about: dict[str, float | int | str] = {"tune": tune, "thin": thin}
    return Draws(theta, {"lp": lp}, "gibbs", complete, about)


@dataclass
class _Chain:
    """Where a chain is, and the random numbers that are its own."""

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
    """How chains are swept.

    The chains of a group take turns, so that none is ahead of the others.
    """

    kernel: MarkovKernel
    draws: int
    thin: int

    def __call__(
        self, chains: Sequence[_Chain], watch: Watch
    ) -> list[tuple[list[np.ndarray], _Chain]]:
        """Draws of each chain until all are drawn or the run is stopped, and where it ends."""
        drawn: list[list[np.ndarray]] = [[] for _ in chains]
        try:
            for _ in range(self.draws):
                for chain, mine in zip(chains, drawn, strict=True):
                    if watch.stopped:
                        break
                    for _ in range(self.thin):
                        chain.theta = self.kernel.sweep(chain.theta, chain.rng)
                        watch.advance()
                    mine.append(chain.theta)
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
    """Draws (chain, draw, coordinate), the states of the chains, and whether all were drawn."""
    sweeping = _Sweeping(kernel, draws, thin)
    results, complete = run_chains(sweeping, states, processes=processes, advance=advance)
    length = longest_rectangle([len(drawn) for drawn, _ in results])
    if length == 0:
        raise KeyboardInterrupt("Gibbs sampling was interrupted before its first draw.")
    drawn = np.stack([np.stack(one[:length]) for one, _ in results if len(one) >= length])
    return drawn, [chain for _, chain in results], complete
