"""The command line run in this process, and what it said."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any
from unittest.mock import patch

from bayesrbf.app import commands
from bayesrbf.app.report import run


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def command(*words: object) -> Said:
    """Run a command. No fit is timed first."""
    out, err, code = StringIO(), StringIO(), 0
    with (
        patch.object(run, "seconds_of", lambda job: 1.0),
        patch.object(sys, "argv", ["bayesrbf", *map(str, words)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            commands.main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def printed(*words: object, code: int = 0) -> str:
    """What a command that ends as it should prints."""
    said = command(*words)
    assert said.code == code, said
    return said.out


def answer(*words: object, code: int = 0) -> Any:
    """The one JSON object that such a command prints."""
    return json.loads(printed(*words, "--json", code=code))


def refused(*words: object) -> str:
    """The one sentence of a command that is refused: a line on stderr that ends like one."""
    said = command(*words)
    assert (said.code, said.out) == (2, ""), said
    assert said.err.startswith("bayesrbf: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    assert said.err.rstrip()[-1] in ".?"
    return said.err
