"""Chains in several processes give the draws of one process, stop on an interrupt, pass errors on.

Budget: 20 seconds, most of it the start of two processes.
"""

from __future__ import annotations

import _thread
import threading
from dataclasses import dataclass, replace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.base.tasks import shown_progress
from bayesrbf.inference.nuts import WORTHWHILE, gibbs, longest_rectangle, processes_for, run_chains
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import first_quick, hyperparameters, structure, table

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def mixture() -> MixtureLogPosterior:
    specification = structure("diag", False, (0, 1), 2, (3,))
    rows = replace(table(specification, n_obs=30), weights=np.ones(30))
    return MixtureLogPosterior(rows, specification, hyperparameters(specification))


@pytest.mark.slow
def test_gibbs_gives_the_same_bits_in_two_processes(mixture):
    start = np.zeros(mixture.dimension)
    size = {"draws": 3, "tune": 8, "thin": 2, "chains": 3, "random_state": 5}
    here, there = (gibbs(mixture, start, **size, cores=cores) for cores in (1, 2))
    assert here.complete
    assert there.complete
    np.testing.assert_array_equal(here.theta, there.theta)
    np.testing.assert_array_equal(here.stats["lp"], there.stats["lp"])


@pytest.mark.slow
def test_nuts_gives_the_same_bits_in_two_processes(mixture):
    pytest.importorskip("nutpie", reason="nutpie is an extra")
    from bayesrbf.inference.nuts import nuts

    start = np.zeros(mixture.dimension)
    size = {"draws": 5, "tune": 20, "chains": 2, "random_state": 5}
    here, there = (nuts(mixture, start, **size, cores=cores) for cores in (1, 2))
    np.testing.assert_array_equal(here.theta, there.theta)
    for name, values in here.stats.items():
        np.testing.assert_array_equal(values, there.stats[name])


@dataclass
class Counting:
    """Counts to a number and ends early if told so; one group may fail."""

    until: int
    failing: int | None = None

    def __call__(self, chains, watch):
        counts = dict.fromkeys(chains, 0)
        while not watch.stopped and min(counts.values()) < self.until:
            for chain in chains:
                counts[chain] += 1
                watch.advance()
                if chain == self.failing:
                    raise ZeroDivisionError("in a chain")
        return list(counts.items())


@pytest.mark.parametrize("processes", first_quick([1, 2]))
def test_all_chains_return_in_their_order_and_every_step_is_told(processes):
    told = []
    found, complete = run_chains(
        Counting(7), [10, 11, 12], processes=processes, advance=told.append
    )
    assert found == [(10, 7), (11, 7), (12, 7)]
    assert complete
    assert sum(told) == 21


def test_an_interrupt_reaches_other_processes():
    pressed = threading.Event()

    def press_once_they_run(steps: int) -> None:
        if steps and not pressed.is_set():
            pressed.set()
            _thread.interrupt_main()

    found, complete = run_chains(Counting(10**12), [0, 1], processes=2, advance=press_once_they_run)
    assert not complete
    assert [chain for chain, _ in found] == [0, 1]
    assert sum(count for _, count in found) > 0


def test_an_error_in_another_process_ends_all():
    with pytest.raises(ZeroDivisionError, match="in a chain"):
        run_chains(Counting(10**12, failing=1), [0, 1], processes=2, advance=lambda steps: None)


def test_other_processes_are_for_long_runs_that_can_travel(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    here = threading.Lock()  # stays where it is
    assert processes_for(4, WORTHWHILE / 2, None, ()) == 1
    assert processes_for(4, WORTHWHILE * 2, None, ()) == 2
    assert processes_for(1, WORTHWHILE * 2, None, ()) == 1
    assert processes_for(4, WORTHWHILE * 2, None, (here,)) == 1
    assert processes_for(4, 0.0, 3, ()) == 3
    assert processes_for(2, 0.0, 3, ()) == 2


@pytest.mark.parametrize("sampler", ["gibbs", "nuts"])
def test_no_process_is_refused_before_any_work(sampler, mixture, monkeypatch):
    module = pytest.importorskip(f"bayesrbf.inference.{sampler}")
    worked = Mock(side_effect=AssertionError("a density was asked for"))
    monkeypatch.setattr(MixtureLogPosterior, "value_and_gradient", worked)
    with pytest.raises(ValueError, match="cores must be at least 1, or None; received 0"):
        getattr(module, sampler)(mixture, np.zeros(mixture.dimension), cores=0)


def test_groups_do_not_go_on_when_their_start_is_interrupted(monkeypatch):
    boards = []

    class Interrupted:
        def submit(self, work, chain_work, group, path, place):
            boards.append(np.memmap(path, dtype=np.int64, mode="r"))
            if place == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr("bayesrbf.inference.nuts._executor", lambda processes: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run_chains(Counting(1), [0, 1], processes=2, advance=lambda steps: None)
    assert boards[0][0] == 1, "the group that was started is told to stop"


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_the_rectangle_keeps_most_draws(lengths):
    kept = [least * sum(length >= least for length in lengths) for least in range(21)]
    least = longest_rectangle(lengths)
    assert least * sum(length >= least for length in lengths) == max(kept)


def test_progress_is_shown(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress("chains", 3, shown=True) as advance:
        advance(3)
    assert "chains" in capsys.readouterr().out
