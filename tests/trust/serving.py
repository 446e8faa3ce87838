"""The server: wrong requests, clients that wait or go, processes that are killed, its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.trust.sections import Line, Row, Section, program


@dataclass(frozen=True)
class Attack:
    """A function of tests/app/serve/attacks.py, and how often it is repeated."""

    what: str
    function: str
    long: int
    short: int
    unit: str
    size: int = 0  # Repetitions of a part.


ATTACKS: Final = (
    Attack(
        "requests at random, made from the OpenAPI description: wrong cells, texts, bytes, sizes, "
        "pieces, addresses, methods, queries, headers and content types",
        *("fuzzed", 10_000, 300, "requests", 2_500),
    ),
    Attack("half of a request and no more", "slow", 200, 20, "clients"),
    Attack("connections killed before the answer", "killed_connections", 200, 20, "connections"),
    Attack(
        "processes with the model killed, with requests under way and without",
        *("killed_workers", 20, 3, "processes"),
    ),
    Attack("SIGTERM with four requests under way", "told_to_end", 5, 1, "ends"),
    Attack("server killed, with a request under way and without", "killed_servers", 5, 2, "ends"),
)


def lines(long: bool) -> list[Line]:
    """Each attack meets servers of its own."""
    return [
        Line(
            one.what,
            partial(attacked, one.function),
            one.long if long else one.short,
            one.unit,
            one.size if long else 0,
        )
        for one in ATTACKS
    ]


def attacked(name: str, number: int, times: int) -> Row:
    """What an attack found."""
    found: Row = program("tests.app.serve.attacks", name, number, times)
    return found


SECTION = Section("serve", lines)
