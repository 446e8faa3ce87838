"""A section of docs/trust.md: what was attacked, how often, and what got through."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Tried:
    """One kind of attack, or one law that was tried."""

    what: str
    tried: int
    through: int = 0
    remark: str = ""  # What came out beside the counts; of what got through, which.


def portion(number: int) -> int:
    """So many in the long form, or the share of it that ``BAYESRBF_SHARE`` names; at least one."""
    return max(1, round(number * float(os.environ.get("BAYESRBF_SHARE", "1"))))


@dataclass(frozen=True)
class Section:
    """A part of the page that runs by itself.

    ``run`` is told whether to take the long form. What it yields is a line of the table, or
    Markdown that stands below the table.
    """

    name: str  # In ``python -m tests.trust --only NAME``.
    title: str
    run: Callable[[bool], Iterator[Tried | str]]


def written(section: Section, long: bool) -> tuple[str, int]:
    """The section as Markdown, printed line by line as it comes, and what got through."""
    lines, below, through = [f"## {section.title}", ""], [], 0
    lines += ["| attack | tried | held | got through |", "|---|---:|---:|---:|"]
    for one in section.run(long):
        if isinstance(one, str):
            below += ["", one]
            print(one, flush=True)
            continue
        remark = f" ({one.remark})" if one.remark else ""
        lines.append(
            f"| {one.what}{remark} | {one.tried} | {one.tried - one.through} | {one.through} |"
        )
        through += one.through
        print(lines[-1], flush=True)
    if long and portion(10_000) < 10_000:
        below += ["", f"Run with {portion(10_000) / 100:g} % of the repetitions of the long form."]
    return "\n".join([*lines, *below]) + "\n", through


def suite(what: str, *files: str, long: bool = True, chosen: str = "") -> Tried:
    """The tests of some files, counted; ``chosen`` is an expression for ``-k``."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [] if long else ["-m", "not slow"]
    command += ["-k", chosen] if chosen else []
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    last = (done.stdout.splitlines() or [""])[-1]
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", last)}
    tried = sum(counts.values())
    if not tried:
        raise RuntimeError(f"no test of {', '.join(files)} was run: {done.stdout}{done.stderr}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
    return Tried(what, tried, tried - counts.get("passed", 0), ", ".join(failed))


def program(module: str, *words: object) -> Any:
    """What a module of the tests prints as JSON, run in a process of its own.

    What it says on the way is shown as it comes.
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}.")
    return json.loads(done.stdout)
