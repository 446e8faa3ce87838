"""What is served, where, and how much of it one request may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

QUESTIONS: Final = ("predict", "uncertainty", "explain", "acquire", "surprise", "decide")
"""What the interface answers about rows, by the names of the estimators' methods."""
PARTS: Final = ("answer", "decision", "odd", "along", "why", "next")
"""Parts of the page that answer a case, in the order in which they are asked and shown."""
JSON: Final = "application/json"
CSV: Final = "text/csv"
PARQUET: Final = "application/vnd.apache.parquet"
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True)
class ModelFolder:
    """A folder that report or fit wrote, and how its model is served."""

    name: str  # Empty for the only one, which is at the root.
    folder: Path
    costs: Mapping[str, float] = field(default_factory=dict)
    """Of a mistaken row by class, in place of those in the folder."""
    refer: float | None = None
    """Cost of referring a row to somebody else; None where that is no choice."""

    @property
    def prefix(self) -> str:
        """Beginning of the addresses of its pages."""
        return f"/{self.name}" if self.name else ""


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for, and how many may wait."""

    rows: int = 10_000
    bytes: int = 10_000_000
    seconds: float = 30.0
    waiting: int = 64
    """Requests that wait for a process; one more is refused."""


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    """Names under which the server may be addressed, beside addresses and localhost."""
    token: str = ""
    """What a request has to show; empty where nothing."""


@dataclass(frozen=True)
class Asked:
    """A request as a process of the pool takes it."""

    model: str
    task: str
    body: bytes = b""
    media_type: str = JSON
    query: Mapping[str, str] = field(default_factory=dict)
    address: str = "http://127.0.0.1:8000/"
    """Where the server was reached."""


@dataclass(frozen=True)
class Tally:
    """What is counted of an answer."""

    rows: int = 0
    novel: int = 0  # Of those judged, unlike the training table.
    judged: int = 0
    probability: Mapping[str, float] = field(default_factory=dict)  # Sums over the rows, by class.


NOTHING: Final = Tally()


@dataclass(frozen=True)
class Reply:
    """What a process answers."""

    content: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)  # Beside those of every reply.
    tally: Tally = NOTHING


class RequestError(ValueError):
    """A request that cannot be answered: the status, and every problem of it."""

    def __init__(self, status: int, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.status = status
        self.problems = problems
