"""A server as the command starts it, in a process of its own, and what can be asked of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Self

import psutil

from tests.measured import ROOT

LONG: Final = 120.0
"""Seconds that nothing takes: who waits so long has found a defect."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]  # By their names in small letters.
    content: bytes

    @property
    def media_type(self) -> str:
        """Its content type without parameters."""
        return self.headers.get("content-type", "").partition(";")[0]


def answer_of(response: HTTPResponse) -> Answer:
    """A response, read to its end."""
    headers = {name.lower(): text for name, text in response.getheaders()}
    return Answer(response.status, headers, response.read())


class Server:
    """``bayesrbf serve`` at a free port, with a folder of its own for all that it might write."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="desk")
        self.scratch = Path(self._scratch.name)
        (self.scratch / "tmp").mkdir()
        self._said = (self.scratch.parent / f"{self.scratch.name}.stderr").open("w+")
        places = {"TMPDIR": str(self.scratch / "tmp"), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "ignore", "-m", "bayesrbf", "serve", str(folder)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--no-browser", *words],
            cwd=self.scratch,
            env={**os.environ, **places},
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,  # what ends this process is no signal to the server
        )
        assert self.process.stdout is not None
        lines = []
        while line := self.process.stdout.readline():
            lines.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
                self.port = int(found[1])
                break
        else:
            raise RuntimeError(f"The server did not start: {lines} {self.said()}")
        self.family = psutil.Process(self.process.pid)

    def __enter__(self) -> Self:
        """Wait until the models are there."""
        try:
            assert self.ask("GET", "/healthz").status == 200
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End whatever is left."""
        if self.process.poll() is None:
            left = [self.family, *self.family.children(recursive=True)]
            for one in left:
                one.kill()
            psutil.wait_procs(left, LONG)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._said.close()
        Path(self._said.name).unlink()
        self._scratch.cleanup()

    def connection(self, seconds: float = LONG) -> HTTPConnection:
        """A new connection."""
        return HTTPConnection("127.0.0.1", self.port, timeout=seconds)

    def ask(
        self, method: str, path: str, body: bytes | None = None, media_type: str = ""
    ) -> Answer:
        """One request by a connection of its own."""
        connection = self.connection()
        try:
            headers = {"Content-Type": media_type} if media_type else {}
            connection.request(method, path, body, headers)
            return answer_of(connection.getresponse())
        finally:
            connection.close()

    def workers(self) -> list[psutil.Process]:
        """The processes that have the models."""
        children = self.family.children(recursive=True)
        return [one for one in children if any("popen_loky" in word for word in one.cmdline())]

    def everything(self) -> list[psutil.Process]:
        """The server, its workers, and what helps them."""
        return [self.family, *self.family.children(recursive=True)]

    def memory(self) -> float:
        """MiB that the server and its workers hold."""
        return sum(one.memory_info().rss for one in (self.family, *self.workers())) / 2**20

    def open_files(self) -> int:
        """Files and connections that the server has open."""
        return int(self.family.num_fds())

    def files(self) -> set[Path]:
        """All that lies where the server might write."""
        return set(self.scratch.rglob("*"))

    def said(self) -> str:
        """What it wrote on stderr."""
        return Path(self._said.name).read_text()


def gone(processes: list[psutil.Process], seconds: float = LONG) -> list[psutil.Process]:
    """Those of some processes that have not ended after so many seconds."""
    end = monotonic() + seconds
    while (left := [one for one in processes if is_there(one)]) and monotonic() < end:
        sleep(0.05)
    return left


def is_there(process: psutil.Process) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
