"""Commands that are ended while they write: what is left on the disk."""

from __future__ import annotations

from functools import partial

from tests.killing import COMMANDS
from tests.trust.sections import Line, Row, Section, program


def lines(long: bool) -> list[Line]:
    """Each command is an attack."""
    return [
        Line(
            f"`{command}` ended by SIGKILL, SIGINT and SIGTERM at touches of the disk",
            partial(ended, command, 1 if long else 16),
        )
        for command in COMMANDS
    ]


def ended(command: str, every: int, number: int, times: int) -> Row:
    """A command ended at every so many-th touch of the disk."""
    tried, wrong = program("tests.killing", every, command)[command]
    return {"tried": tried, "through": len(wrong), "": "; ".join(wrong)}


SECTION = Section("command-line", lines)
