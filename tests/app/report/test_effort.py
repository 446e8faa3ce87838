"""What a run is estimated to take, and what a time limit leaves of it."""

from __future__ import annotations

import dataclasses
from itertools import count
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bayesrbf.app.report import run as effort
from bayesrbf.app.report.families import FAMILIES, choose_method, refitted_as
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.options import ALL_CORES
from bayesrbf.app.report.run import (
    PROCESS_START,
    processes,
    quicker,
    seconds_of,
    seconds_of_run,
    within,
)
from tests.app.report.test_collect import job

SLOWNESS = effort.slowness


@pytest.fixture
def mixture(monkeypatch: pytest.MonkeyPatch) -> Job:
    """A mixture whose fit takes ten seconds, and five if it is quick."""
    monkeypatch.setattr(effort, "seconds_of", lambda one: 5.0 if one.quick else 10.0)
    return job("auto", family="mixture", folds=5)


def test_the_fullest_form_within_the_limit_is_taken(mixture):
    full = seconds_of_run(mixture, 10.0, True)
    bare = seconds_of_run(dataclasses.replace(mixture, inference="map"), 10.0, True)
    quick = seconds_of_run(quicker(mixture), 5.0, True)
    assert quick < bare < full
    assert within(mixture, None)[0] == mixture
    assert within(mixture, 2.1 * full)[0] == mixture
    chosen, _ = within(mixture, 1.9 * full)
    assert (chosen.inference, chosen.quick, chosen.folds) == ("map", False, 5)
    assert "--time-limit allows" in chosen.notes[0]
    chosen, line = within(mixture, 1.0)
    assert (chosen.inference, chosen.quick, chosen.folds) == ("map", True, 3)
    assert "more than --time-limit 1;" in line
    assert "--time-limit" not in within(mixture, 2.1 * full)[1]
    assert chosen.notes[0].startswith("Made with --quick, because --time-limit allows 1 seconds")


def test_refits_and_tables_of_the_curve_take_a_fit_each_and_of_a_stack_two_thirds(mixture):
    for own, share in ((mixture, 1.0), (job("auto", family="stack", folds=5), 4 / 6)):
        before = seconds_of_run(own, 10.0, True)
        more = seconds_of_run(dataclasses.replace(own, stability=12), 10.0, True)
        rows = 12 + 2 * (1 / 2 + 1 + 2 + 4)
        assert more - before == pytest.approx(10 * rows * share)


def test_a_stack_is_refitted_with_fewer_folds_and_says_so(mixture):
    own, sentence = refitted_as(mixture)
    assert (own.folds, sentence) == (5, "Each refit made every choice of the model anew.")
    assert own.groups.tolist() == list(range(len(mixture.X)))
    given = np.arange(len(mixture.X)) // 2
    stack = job("auto", family="stack", folds=5, groups=given)
    own, sentence = refitted_as(stack)
    assert (own.folds, own.groups is given) == (3, True)
    assert "on 3 folds, where the model has 5" in sentence
    assert "every choice" in refitted_as(dataclasses.replace(stack, folds=3))[1]


def test_a_stack_has_one_form(monkeypatch):
    """Its folds are those of its own fit, and its draws take no fit more."""
    monkeypatch.setattr(effort, "seconds_of", lambda one: 10.0)
    stack = job("auto", family="stack", folds=5)
    for form in (quicker(stack), within(stack, 1.0)[0]):
        assert (form.inference, form.folds, form.notes) == ("auto", 5, ())
    bare = dataclasses.replace(stack, inference="map")
    assert seconds_of_run(bare, 10.0, True) == seconds_of_run(stack, 10.0, True)


def test_a_method_that_was_asked_for_stays(mixture):
    asked = dataclasses.replace(mixture, inference="laplace")
    assert quicker(asked).inference == "laplace"
    assert within(asked, 1.0)[0].inference == "laplace"


def test_quick_is_a_mixture_without_intervals_and_says_so(mixture):
    quick, _ = within(quicker(mixture), None)
    assert choose_method(quick, None) == ("map", "because --quick was asked for.")


def test_a_fit_is_shorter_than_a_report(mixture):
    assert seconds_of_run(mixture, 10.0, False) < seconds_of_run(mixture, 10.0, True)


def test_what_holds_rows_out_and_looks_at_cells_takes_its_time(mixture):
    """Folds by time cost a stack as many fits; a report of more cells or classes takes longer."""
    stack = job("auto", family="stack", folds=5)
    by_time = dataclasses.replace(stack, times=np.arange(len(stack.X), dtype=float))
    usual = seconds_of_run(stack, 10.0, True)
    assert seconds_of_run(by_time, 10.0, True) >= usual + 2 * 10.0
    wide = dataclasses.replace(stack, X=pd.concat(100 * [stack.X], axis=1))
    assert seconds_of_run(wide, 10.0, True) > usual
    assert seconds_of_run(wide, 10.0, False) == seconds_of_run(stack, 10.0, False)


@pytest.mark.parametrize("family", FAMILIES)
def test_larger_tables_take_longer_but_less_than_in_proportion(family):
    small = job(family=family)
    wide = dataclasses.replace(small, X=pd.concat(100 * [small.X], axis=1))
    assert seconds_of(small) < seconds_of(wide) < 100 * seconds_of(small)


def test_a_slower_machine_takes_longer(monkeypatch):
    small, usual = job(family="mixture"), effort.USUAL_WORK
    monkeypatch.setattr(effort, "slowness", lambda: 1.0)
    before = seconds_of(small)
    clock = count(step=10 * usual)
    monkeypatch.setattr(effort, "time", SimpleNamespace(perf_counter=clock.__next__))
    monkeypatch.setattr(effort, "slowness", SLOWNESS.__wrapped__)
    assert seconds_of(small) == pytest.approx(10 * before)


def test_nothing_is_fitted_before_the_time_is_told(monkeypatch):
    def procedure(one):
        raise AssertionError("a fit")

    family = dataclasses.replace(FAMILIES["stack"], procedure=procedure)
    monkeypatch.setitem(FAMILIES, "stack", family)
    assert "on this machine." in within(job(family="stack"), 10.0)[1]


def test_a_limit_that_cannot_be_held_comes_with_what_would(monkeypatch):
    monkeypatch.setattr(effort, "seconds_of", lambda one: 0.5 if one.family == "mixture" else 100.0)
    stack = job("auto", family="stack", folds=5)
    _, line = within(stack, 20.0, judged=False)
    limit = int(line.removesuffix(".").split("--time-limit ")[-1])
    assert "Enough would be --model mixture --inference map or --time-limit" in line
    assert "Enough" not in within(stack, float(limit), judged=False)[1]
    assert "--model" not in within(stack, 0.1, judged=False)[1]


def test_all_cores_are_taken_where_that_is_quicker_and_others_as_asked(monkeypatch):
    monkeypatch.setattr(effort, "cpu_count", lambda: 4)
    assert processes(ALL_CORES, PROCESS_START) == (1, PROCESS_START)
    number, seconds = processes(ALL_CORES, 1000.0)
    assert number == 4
    assert 250.0 < seconds < 1000.0
    assert processes(2, 1.0)[0] == 2
    assert processes(1, 1000.0) == (1, 1000.0)
    monkeypatch.setattr(effort, "cpu_count", lambda: 1)
    assert processes(ALL_CORES, 1000.0) == (1, 1000.0)


def test_a_job_says_how_many_processes_it_takes(mixture, monkeypatch):
    monkeypatch.setattr(effort, "cpu_count", lambda: 4)
    asked = dataclasses.replace(mixture, jobs=ALL_CORES)
    assert within(asked, None)[0].jobs == 4
    monkeypatch.setattr(effort, "seconds_of", lambda one: 0.01)
    assert within(dataclasses.replace(asked, inference="map"), None)[0].jobs == 1
