"""The command that serves models as a page and an interface."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from bayesrbf.commands.typed_arguments import REPORT_PACKAGES, Names, costs_in, need

PACKAGES: Final = ("starlette", "uvicorn", "prometheus_client")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
RESERVED: Final = ("static", "healthz", "metrics")
LEAST_TOKEN: Final = 16
"""Letters of a token."""
GRACE: Final = 30
"""Seconds in which requests under way are answered before the server ends."""
MOST_CONNECTIONS: Final = 1000

Models = Annotated[tuple[str, ...], Parameter(consume_multiple=False, negative="")]
Quiet = Annotated[bool, Parameter(negative="")]


def serve(
    folder: Path | None = None,
    /,
    *,
    model: Models = (),
    cost: Names = (),
    refer: float | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    allow_host: Names = (),
    token_file: Path | None = None,
    workers: int = 1,
    max_rows: int = 10_000,
    max_bytes: int = 10_000_000,
    timeout: float = 30.0,
    no_browser: Quiet = False,
) -> None:
    """Serve the model of a folder: a page to ask about a case, and an interface for programs.

    The page is at /, the interface at /api. Nothing that is asked is stored or logged. Ctrl-C
    ends the server after it has answered what is under way.

    Parameters
    ----------
    folder : Path, optional
        Folder of an earlier report or fit.
    model : tuple of str
        NAME=FOLDER: a model of this name at /NAME; repeated for several.
    cost : tuple of str
        What it costs to mistake a row of a class: sick=10,well=1 or repeated; by default what
        report or fit was told. The page then says the decision of least expected cost.
    refer : float, optional
        What it costs to refer a row to somebody else, in the units of the costs.
    host : str
        Address to listen at; by default only programs on this machine can ask.
    port : int
        Port; 0 takes a free one.
    allow_host : tuple of str
        Name under which the server is reached, such as that of a proxy, beside its addresses
        and localhost; repeated for several.
    token_file : Path, optional
        File with a token of at least 16 letters. Requests must have it as
        "Authorization: Bearer ..."; a browser asks for it as a password.
    workers : int
        Processes that answer; each has the models.
    max_rows : int
        Most rows of one request.
    max_bytes : int
        Most bytes of one request.
    timeout : float
        Seconds after which a request is given up.
    no_browser : bool
        Do not open the page where this is a terminal.
    """
    need((*REPORT_PACKAGES, *PACKAGES), "server")
    from bayesrbf.report.output import MODEL
    from bayesrbf.serving.settings import Access, Limits, ModelFolder

    named = _named(folder, model)
    for name, value in {
        "--workers": workers,
        "--max-rows": max_rows,
        "--max-bytes": max_bytes,
    }.items():
        if value < 1:
            raise ValueError(f"{name} takes a whole number above 0; got {value}.")
    if not 0 < timeout < float("inf"):
        raise ValueError(f"--timeout takes a number of seconds above 0; got {timeout:g}.")
    if not 0 <= port < 2**16:
        raise ValueError(f"--port takes a number from 0 to 65535; got {port}.")
    costs = costs_in(cost)
    if refer is not None and not 0 <= refer < float("inf"):
        raise ValueError(f"--refer takes a cost of at least 0; got {refer:g}.")
    token = _token(token_file)
    folders = tuple(ModelFolder(name, path, costs, refer) for name, path in named.items())
    for one in folders:
        (one.folder / MODEL).stat()
    from bayesrbf.serving.served_model import ServedModel

    for one in folders:
        ServedModel.of(one)  # what cannot be served is said before anything listens
    access, limits = Access(host, allow_host, token), Limits(max_rows, max_bytes, timeout)
    from bayesrbf.serving.application import application
    from bayesrbf.serving.listening import listen

    listen(
        application(folders, workers, access, limits),
        access,
        port,
        grace=GRACE,
        connections=MOST_CONNECTIONS,
        opens=sys.stdout.isatty() and not no_browser,
    )


def _named(folder: Path | None, models: tuple[str, ...]) -> dict[str, Path]:
    """Folders by the names of their models; the empty name for the only one."""
    if (folder is None) == (not models):
        raise ValueError(
            "serve takes one folder, such as: bayesrbf serve report; or several with names: "
            "bayesrbf serve --model heart=report --model liver=other"
        )
    if folder is not None:
        return {"": folder}
    named: dict[str, Path] = {}
    for text in models:
        name, _, path = text.partition("=")
        if not (NAME.fullmatch(name) and path) or name in RESERVED or name in named:
            raise ValueError(
                f"--model takes NAME=FOLDER, each name once, of letters, digits, '_', '-' and '.', "
                f"and none of {', '.join(RESERVED)}; got {text!r}."
            )
        named[name] = Path(path)
    return named


def _token(file: Path | None) -> str:
    """The token in a file; empty without one."""
    if file is None:
        return ""
    token = file.read_text("utf-8").strip()
    if len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(
            f"--token-file {file} must hold one token of at least {LEAST_TOKEN} plain letters; "
            "make one by: python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token
