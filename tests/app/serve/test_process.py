"""A server in a process of its own: how it answers, and how it and its workers end."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bayesrbf.app.serve.server import HEADERS
from tests.app.serve import attacks
from tests.app.serve.mutations import Sent, at_random
from tests.app.serve.promises import broken
from tests.app.serve.server import Answer

SAFE = {name.lower(): text for name, text in HEADERS.items()}
QUESTION = Sent("POST", "/api/predict")


def answer(status: int, media_type: str, content: bytes) -> Answer:
    return Answer(status, SAFE | {"content-type": media_type}, content)


KEPT = answer(200, "application/json", b'{"answers": []}')


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "times"),
    [
        (attacks.fuzzed, 200),
        (attacks.slow, 20),
        (attacks.killed_connections, 10),
        (attacks.killed_workers, 3),
        (attacks.told_to_end, 1),
        (attacks.killed_servers, 2),
    ],
)
def test_a_server_stands_what_is_done_to_it(
    attack: Callable[[int, int], attacks.Found], times: int
) -> None:
    found = attack(7, times)
    assert found["tried"] == times
    assert found["through"] == 0, found[""]


def test_an_answer_as_promised_is_accepted() -> None:
    assert broken(QUESTION, KEPT) == ""
    assert broken(QUESTION, answer(422, "application/json", b'{"problems": ["no"]}')) == ""
    assert broken(Sent("GET", "/"), answer(200, "text/html; charset=utf-8", b"<p>5 &lt; 6")) == ""


@pytest.mark.parametrize(
    "wrong",
    [
        replace(KEPT, status=500),
        replace(KEPT, headers={"content-type": "application/json"}),
        replace(KEPT, content=b'{"answers": [NaN]}'),
        replace(KEPT, content=b"\xff"),
        replace(KEPT, content=b""),
        answer(503, "application/json", b'{"problems": []}'),
        answer(422, "text/plain", b"no"),
        answer(200, "text/csv", b"a,b\n1,2\n"),
        answer(422, "text/html", b"<img src=http://attacker.invalid/a.png>"),
    ],
)
def test_an_answer_that_breaks_a_promise_is_found(wrong: Answer) -> None:
    assert broken(QUESTION, wrong)


def test_tables_that_are_none_are_found() -> None:
    asked = QUESTION.named(b"Content-Type", b"text/csv")
    assert broken(asked, answer(200, "text/csv", b"a,b\n1,2\n")) == ""
    assert broken(asked, answer(200, "text/csv", b"a,b\n1\n"))
    parquet = QUESTION.named(b"Content-Type", b"application/vnd.apache.parquet")
    assert broken(parquet, answer(200, "application/vnd.apache.parquet", b"PAR1PAR1"))


def test_requests_at_random_are_of_all_kinds_and_the_same_again() -> None:
    columns = {"age": (), "ward": ("a", "b", None)}

    def some() -> list[Sent]:
        rng = random.Random(3)
        return [at_random(rng, columns) for _ in range(300)]

    sent = some()
    assert sent == some()
    assert len({one.media_type for one in sent}) > 10
    assert len({one.method for one in sent}) > 8
    assert {b"\r\n\r\n" in one.raw() for one in sent} == {True}
