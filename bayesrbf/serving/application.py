"""The server: addresses, and what a browser or a program gets from each."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from markupsafe import escape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bayesrbf.serving.guards import App, guarded
from bayesrbf.serving.metrics import Metrics
from bayesrbf.serving.pool import Pool
from bayesrbf.serving.settings import (
    HTML,
    JSON,
    PARTS,
    QUESTIONS,
    Access,
    Asked,
    Limits,
    ModelFolder,
    Reply,
    RequestError,
)

GETS: Final = {"/": "page", "/card": "card", "/api": "api", "/api/openapi.json": "openapi"}
"""Pages by their addresses below that of their model."""
Endpoint = Callable[[Request], Awaitable[Response]]


def application(
    folders: Sequence[ModelFolder], workers: int, access: Access, limits: Limits
) -> App:
    """The server of some models; the processes start with it and end with it."""
    metrics, pools = Metrics(), list[Pool]()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pools.append(Pool(folders, workers, limits))
        try:
            await pools[0].ready()  # who is let in finds the models loaded
            yield
        finally:
            pools.pop().close()

    def asks(model: str, task: str) -> Endpoint:
        """An address whose content a process makes."""

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
            body, query = await request.body(), dict(request.query_params)
            asked = Asked(model, task, body, media_type, query, str(request.base_url))
            try:
                reply = await pools[0].ask(asked)
            except RequestError as error:
                reply = _refused(error)
            seconds = time.perf_counter() - began
            metrics.count(model or "model", task, reply.status, seconds, reply.tally)
            return _response(reply)

        return endpoint

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def counts(request: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def nothing(request: Request) -> Response:
        return Response(status_code=204)

    routes = [Route("/healthz", health), Route("/metrics", counts), Route("/favicon.ico", nothing)]
    for name, (content, media_type) in _static().items():
        routes.append(Route(f"/static/{name}", _constant(content, media_type)))
    for folder in folders:
        at, model = folder.prefix, folder.name
        routes += [Route(at + path, asks(model, task)) for path, task in GETS.items()]
        posts = {"/": "answered", "/case.json": "export"}
        posts |= {f"/parts/{part}": f"part-{part}" for part in PARTS}
        posts |= {f"/api/{question}": question for question in QUESTIONS}
        routes += [
            Route(at + path, asks(model, task), methods=["POST"]) for path, task in posts.items()
        ]
        routes.append(Route(f"{at}/api/model", asks(model, "model")))
    if all(folder.name for folder in folders):
        routes.append(Route("/", _constant(_index(folders), HTML)))
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _odd})
    return guarded(app, access, limits)


def _response(reply: Reply) -> Response:
    """A reply as a browser or a program gets it."""
    headers = dict(reply.headers)
    if reply.status == 503:
        headers["Retry-After"] = "1"
    return Response(reply.content, reply.status, headers, reply.media_type)


def _refused(error: RequestError) -> Reply:
    """Why nothing was asked of a process."""
    return Reply(json.dumps({"problems": error.problems}).encode(), JSON, error.status)


async def _odd(request: Request, error: Exception) -> Response:
    """An address or a method that there is not."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"problems": [error.detail]}, error.status_code, error.headers)


def _constant(content: bytes, media_type: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return endpoint


def _static() -> dict[str, tuple[bytes, str]]:
    """Style and script of the pages, read once: no request touches the disk."""
    own, report = files("bayesrbf.serving"), files("bayesrbf.report")
    style = (report / "templates" / "report.css").read_bytes()
    style += (own / "static" / "desk.css").read_bytes()
    script = (own / "static" / "desk.js").read_bytes()
    return {"desk.css": (style, "text/css"), "desk.js": (script, "text/javascript")}


def _index(folders: Sequence[ModelFolder]) -> bytes:
    """The page that names the models."""
    items = "".join(
        f'<li><a href="{quote(folder.name)}/">{escape(folder.name)}</a></li>' for folder in folders
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Models</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="static/desk.css"></head>'
        f"<body><main><h1>Models</h1><ul>{items}</ul></main></body></html>"
    ).encode()
