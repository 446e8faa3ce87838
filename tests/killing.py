"""End ``fit``, ``report`` and ``predict`` at every touch of the disk; a program, see test_killing.

Every call on the folder that the system tells an audit hook, and every ``fsync``, is a touch. A
copy of this process runs the command and tells itself to end there: at once (SIGKILL), as a
terminal does (SIGINT), or as a machine that shuts down does (SIGTERM). Fits are made once before.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesrbf.app import commands as cli
from bayesrbf.app.report import collect, families, run
from bayesrbf.app.report import families as sampling
from bayesrbf.base.files import UNFINISHED, writing_together
from tests.app.report.tables import mixed_table

TOUCHES = ("open", "os.", "shutil.")
CODES = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}
"""What is told, and the exit code then."""
COMMANDS = ("fit", "report", "predict")

Work = Callable[[], None]
Files = dict[str, bytes]


class Watch:
    """Counts touches of a folder, and sends a signal to its own process at one of them."""

    def __init__(self) -> None:
        self.folder, self.at, self.seen, self.number = "", 0, 0, 0
        sys.addaudithook(self._told)
        real = os.fsync

        def fsync(handle: int) -> None:
            self._touched()
            real(handle)

        os.fsync = fsync  # type: ignore[assignment]

    def begin(self, folder: Path, at: int = 0, number: int = 0) -> None:
        """Watch a folder, and all that is beside it."""
        self.folder, self.at, self.number = str(folder.parent), at, number

    def _told(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder and event.startswith(TOUCHES):
            paths = [os.fsdecode(a) for a in arguments[:2] if isinstance(a, str | bytes | Path)]
            if any(path.startswith(self.folder) for path in paths):
                self._touched()

    def _touched(self) -> None:
        self.seen += bool(self.folder)
        if self.seen == self.at and self.number:
            number, self.number = self.number, 0
            os.kill(os.getpid(), number)


def in_a_copy(work: Work) -> int:
    """The exit code of some work in a copy of this process, negative for a signal."""
    child = os.fork()
    if not child:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        code = 99
        try:
            work()
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def commanded(*words: object) -> Work:
    """A command, as the shell would run it."""

    def work() -> None:
        sys.argv = ["bayesrbf", *map(str, words)]
        cli.main()

    return work


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives its first result for ever."""
    found: list[Any] = []

    def first(*arguments: Any, **options: Any) -> Any:
        if not found:
            found.append(function(*arguments, **options))
        return found[0]

    return first


def compute_once() -> None:
    """Fits and checks on rows held out do not touch the disk: they are made once."""
    run.collect = once(collect.collect)  # type: ignore[attr-defined]
    sampling.draw_posterior = once(sampling.draw_posterior)
    own = families.FAMILIES["mixture"]
    fitted = once(lambda job: once(own.procedure(job)))
    families.FAMILIES["mixture"] = replace(own, procedure=fitted)


def files(folder: Path) -> Files:
    """The files of a folder that can be seen."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and p.name[0] != "."}


def hidden(folder: Path) -> list[str]:
    """What was left in the folder or beside it."""
    return sorted(p.name for p in (*folder.parent.iterdir(), *folder.iterdir()) if p.name[0] == ".")


def restored(folder: Path, old: Files) -> None:
    """Bring the folder back to what it was."""
    shutil.rmtree(folder.parent)
    folder.mkdir(parents=True)
    for name, content in old.items():
        (folder / name).write_bytes(content)


def attack(watch: Watch, work: Work, folder: Path, every: int) -> tuple[int, list[str]]:
    """End a command at every so many-th touch: how often, and what was then wrong."""
    old = files(folder)
    with tempfile.TemporaryFile() as counted:

        def whole() -> None:
            watch.begin(folder)
            with suppress(SystemExit):
                work()
            os.write(counted.fileno(), str(watch.seen).encode())

        assert in_a_copy(whole) == 0
        counted.seek(0)
        last = int(counted.read())
    new = files(folder)
    tried, wrong = 0, []
    for number, code in CODES.items():
        for at in range(1, last + 1, every):
            restored(folder, old)

            def ended(at: int = at, number: int = number) -> None:
                watch.begin(folder, at, number)
                work()

            said = in_a_copy(ended)
            problem = judged(folder, old, new, said, code)
            tried += 1
            if problem:
                wrong.append(f"{signal.Signals(number).name} at {at} of {last}: {problem}")
    restored(folder, old)
    return tried, wrong


def judged(folder: Path, old: Files, new: Files, said: int, code: int) -> str:
    """What is wrong with a folder after its writer was ended; empty where nothing is."""
    if said != code and not (said == 0 and files(folder) == new):
        return f"exit code {said}"
    if said == -signal.SIGKILL:
        here = files(folder)
        mixed = {n for n in here if n in old and n in new and old[n] != new[n]}
        if len({here[name] == new[name] for name in mixed}) > 1:
            return "new files beside old ones"
        if files(folder) not in (old, new) and not (folder / UNFINISHED).is_dir():
            return "no sign that it was not finished"
        with suppress(ZeroDivisionError), writing_together(folder, ()):  # as the next writer
            _ = 1 / 0
    elif hidden(folder):
        return f"left {hidden(folder)}"
    return "" if files(folder) in (old, new) else "mixed"


def main(every: int = 1, *chosen: str) -> dict[str, Any]:
    """Attack some commands, or each of them, in a folder that holds an earlier result."""
    said: dict[str, Any] = {}
    watch = Watch()
    with tempfile.TemporaryDirectory() as top:
        table, new = Path(top, "table.csv"), Path(top, "new.csv")
        mixed_table(40).to_csv(table, index=False)
        mixed_table(20, seed=1).to_csv(new, index=False)
        options = ["--target", "outcome", "--model", "mixture", "--inference", "map"]
        compute_once()
        for command in chosen or COMMANDS:
            folder = Path(top, command, "out")
            words = {
                "fit": ["fit", table, *options, "--out", folder],
                "report": ["report", table, *options, "--out", folder],
                "predict": ["predict", folder, new],
            }
            for warm in ("fit" if command == "predict" else command, command):
                with suppress(SystemExit), open(os.devnull, "w") as sys.stdout:
                    commanded(*words[warm])()
                sys.stdout = sys.__stdout__
            for path in folder.iterdir():  # an earlier result, that can be told from the new one
                if command != "predict" or path.suffix == ".csv":
                    path.write_bytes(b"old " + path.name.encode())
            (folder / "mine").write_bytes(b"mine")
            said[command] = attack(watch, commanded(*words[command]), folder, every)
    return said


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:2]), *sys.argv[2:])))
