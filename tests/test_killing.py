"""A command that is ended while it writes leaves its old output or its new one, never half."""

from __future__ import annotations

import os

import pytest

from tests.programs import program

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX"),
]


def test_commands_ended_at_touches_of_the_disk_leave_old_output_or_new() -> None:
    """At every eighth touch by each signal; ``python -m tests.killing 1`` takes them all."""
    for command, (tried, wrong) in program("tests.killing", 8).items():
        assert tried >= 6, command
        assert wrong == [], command


def test_a_process_killed_while_it_saves_leaves_a_whole_model() -> None:
    tried, wrong = program("tests.killing_saves", 20)
    assert tried == 20
    assert wrong == []
