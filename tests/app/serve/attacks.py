"""What is done to a server that runs, how often, and what it did not stand."""

from __future__ import annotations

import json
import random
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Final

from bayesrbf.app.serve.served import JSON
from tests.app.serve.desks import patients, write_desk
from tests.app.serve.mutations import LARGEST, SECRET, Sent, at_random, columns_of
from tests.app.serve.promises import broken
from tests.app.serve.server import LONG, Answer, Server, answer_of, gone
from tests.measured import Cell

LEAK: Final = 30
"""MiB by which a server may grow."""
UNREAD: Final = 2**16
"""Bytes of a body that the server reads at once."""
PROMPT: Final = 10.0
"""Seconds in which the server says that it is there, whatever it is doing."""
FEW, MANY = (
    json.dumps([{"age": 40 + place / n} for place in range(n)]).encode() for n in (40, 1500)
)
"""Rows of a question that takes a moment, and of one that takes seconds."""
LIMITS: Final = ("--max-bytes", str(LARGEST), "--max-rows", "50", "--timeout", "1")
Found = dict[str, Cell]


@contextmanager
def serving(*words: str) -> Iterator[Server]:
    """A server of a small model with draws and a density."""
    with Server(Path(model_folder().name), "--refer", "0.3", *words) as server:
        yield server


@cache
def model_folder() -> tempfile.TemporaryDirectory[str]:
    """Its folder, made once in a process, and removed with it."""
    folder = tempfile.TemporaryDirectory(prefix="desk")
    write_desk(Path(folder.name), patients(), refine={"method": "laplace", "draws": 50})
    return folder


def outcome(tried: int, wrong: Counter[str], **more: Cell) -> Found:
    """How many were tried and got through, and what."""
    said = "; ".join(f"{what} ({n})" if n > 1 else what for what, n in wrong.most_common(20))
    return {"tried": tried, "through": sum(wrong.values()), **more, "": said}


def sent_raw(server: Server, content: bytes, seconds: float = LONG) -> Answer:
    """What comes back for some bytes, also where not all of them were read."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as line:
        with suppress(ConnectionError):  # it has answered before the end
            line.sendall(content)
        method = content.partition(b" ")[0].decode("latin-1")
        response = HTTPResponse(line, method=method)
        response.begin()
        return answer_of(response)


def fuzzed(number: int, times: int) -> Found:
    """Requests at random: answered as promised, without files left, in the same memory."""
    rng, wrong, statuses = random.Random(number), Counter[str](), Counter[str]()
    held: list[float] = []
    with serving(*LIMITS) as server:
        columns, before = columns_of(server), server.files()
        for place in range(times):
            if place in (times // 5, times * 3 // 5):
                held.append(server.memory())
            sent = at_random(rng, columns)
            try:
                answer = sent_raw(server, sent.raw())
            except (HTTPException, OSError) as error:
                # What is said before a long body was read may get lost when the line is closed.
                if isinstance(error, ConnectionResetError) and len(sent.body) > UNREAD:
                    statuses["closed"] += 1
                else:
                    wrong[f"no answer to {named(sent)}: {type(error).__name__}"] += 1
                continue
            statuses[f"{answer.status}"] += 1
            if reason := broken(sent, answer):
                wrong[f"{named(sent)}: {reason}"] += 1
        held.append(server.memory())
        wrong.update(f"left {path.name}" for path in server.files() - before)
        if SECRET in server.said():
            wrong["a cell in the log"] += 1
    first, middle, last = held
    grown = max(0.0, 2 * min(middle - first, last - middle))
    if grown > LEAK:
        wrong[f"memory grew by {grown:.0f} MiB"] += 1
    counts = " ".join(f"{status}: {n:,}," for status, n in sorted(statuses.items())).rstrip(",")
    return outcome(times, wrong, **{"MiB by which memory grew": grown, "statuses": counts})


def named(sent: Sent) -> str:
    """A request in a few words."""
    return f"{sent.method[:10]} {sent.path[:30]}"


def slow(number: int, times: int) -> Found:
    """Clients that send half of a request and wait: others are answered meanwhile."""
    wrong, rng = Counter[str](), random.Random(number)
    head = b"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
    halves = (b"", b"PO", head, head + b"\r\n", head + b"\r\n[", b"GET / HTTP/1.1\r\n")
    with serving("--timeout", "2") as server:
        lines = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(times)]
        for line in lines:
            line.sendall(rng.choice(halves))
        for _ in range(20):
            prompt(server, wrong)
            question(server, wrong)
        for line in lines:
            line.close()
        prompt(server, wrong)
    return outcome(times, wrong)


def killed_connections(number: int, times: int) -> Found:
    """Clients that ask and go before the answer: others are answered, meanwhile and then."""
    wrong, rng = Counter[str](), random.Random(number)
    asked = Sent("POST", "/api/explain").named(b"Content-Type", JSON.encode()).with_body(FEW).raw()
    with serving() as server:
        before = server.open_files()
        for _ in range(times):
            line = socket.create_connection(("127.0.0.1", server.port))
            line.sendall(asked[: rng.choice((len(asked), len(asked), 30, len(asked) - 5))])
            # Closed without a farewell, as a process that was killed leaves it.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.close()
            prompt(server, wrong)
        end = time.monotonic() + LONG
        while question(server, Counter()) == 503 and time.monotonic() < end:
            time.sleep(0.2)  # what was asked is answered, though nobody waits for it
        question(server, wrong)
        if server.open_files() > before + 2:
            wrong[f"{server.open_files() - before} files are open"] += 1
    return outcome(times, wrong)


def killed_workers(number: int, times: int) -> Found:
    """A process with the models killed while it answers: 503 in words, and the next is answered."""
    wrong = Counter[str]()
    with serving() as server:
        for place in range(times):
            idle = place % 3 == 2  # killed while nobody asks
            answers = behind([] if idle else [lambda: asked_rows(server)] * 3)
            if not idle:
                busy(server)
            for worker in server.workers():
                worker.kill()
            prompt(server, wrong)
            for answer in answers():
                sentence = json.loads(answer.content).get("problems")
                if answer.status != 503 or not sentence:
                    wrong[f"status {answer.status} of a request whose process was killed"] += 1
            if idle and question(server, Counter()) not in (200, 503):
                wrong["the first request after an idle process was killed"] += 1
            question(server, wrong)
        if len(server.workers()) != 1:
            wrong[f"{len(server.workers())} processes in place of 1"] += 1
    return outcome(times, wrong)


def told_to_end(number: int, times: int) -> Found:
    """SIGTERM with requests under way: they are answered, and no process or file is left."""
    wrong = Counter[str]()
    for _ in range(times):
        with serving() as server:
            everything = server.everything()
            answers = behind([lambda server=server: asked_rows(server)] * 4)
            busy(server)
            server.process.send_signal(signal.SIGTERM)
            wrong.update(f"status {a.status} at the end" for a in answers() if a.status != 200)
            wrong.update(f"{one} is left" for one in gone(everything))
            if code := server.process.wait(LONG):
                wrong[f"exit code {code}: {server.said()[-200:]}"] += 1
            wrong.update(f"left {path.name}" for path in (server.scratch / "tmp").iterdir())
    return outcome(times, wrong)


def killed_servers(number: int, times: int) -> Found:
    """The server killed, with a request under way or without: its processes end, too."""
    wrong = Counter[str]()
    for place in range(times):
        with serving() as server:
            everything = server.everything()
            answers = behind([lambda server=server: asked_rows(server)] * (place % 2))
            if place % 2:
                busy(server)
            server.process.kill()
            wrong.update(f"{one} is left" for one in gone(everything, 30.0))
            answers()
    return outcome(times, wrong)


def prompt(server: Server, wrong: Counter[str]) -> None:
    """Ask whether the server is there."""
    line = server.connection(PROMPT)
    try:
        line.request("GET", "/healthz")
        if line.getresponse().status != 200:
            wrong["/healthz does not say that all is well"] += 1
    except OSError as error:
        wrong[f"/healthz: {type(error).__name__}"] += 1
    finally:
        line.close()


def question(server: Server, wrong: Counter[str]) -> int:
    """Ask for the probabilities of a row; the status."""
    status = server.ask("POST", "/api/predict", b'{"age": 50}', JSON).status
    if status != 200:
        wrong[f"/api/predict: status {status}"] += 1
    return status


def asked_rows(server: Server) -> Answer:
    """The answer to a question that takes a while; status 0 where there was none."""
    try:
        return server.ask("POST", "/api/explain", MANY, JSON)
    except (HTTPException, OSError):
        return Answer(0, {}, b"{}")


def busy(server: Server) -> None:
    """Wait until a process of the server works."""
    (worker,), end = server.workers(), time.monotonic() + LONG
    used = worker.cpu_times().user
    while worker.cpu_times().user < used + 0.05 and time.monotonic() < end:
        time.sleep(0.01)


def behind(works: list[Callable[[], Answer]]) -> Callable[[], list[Answer]]:
    """Works that run beside this one; their answers when they have them."""
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda work=work: answers.append(work())) for work in works]
    for thread in threads:
        thread.start()

    def all_of_them() -> list[Answer]:
        for thread in threads:
            thread.join()
        return answers

    return all_of_them


ATTACKS: Final = (fuzzed, slow, killed_connections, killed_workers, told_to_end, killed_servers)


if __name__ == "__main__":
    function = {attack.__name__: attack for attack in ATTACKS}[sys.argv[1]]
    print(json.dumps(function(*map(int, sys.argv[2:]))))
