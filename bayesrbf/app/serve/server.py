"""The server: addresses, guards, processes that answer, metrics."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import warnings
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import uvicorn
from loky.process_executor import ProcessPoolExecutor
from markupsafe import escape
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bayesrbf.app.serve.case import PANELS
from bayesrbf.app.serve.questions import QUESTIONS
from bayesrbf.app.serve.served import (
    HTML,
    JSON,
    Access,
    Limits,
    ModelFolder,
    ModelRequest,
    Reply,
    RequestError,
    Tally,
)

if TYPE_CHECKING:
    from bayesrbf.app.serve.served import ServedModel


# What every request passes before it is read: its host, its token, its size, and its headers.


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
OPEN: Final = "/healthz"
"""The address that needs no token: it says only that the server is there."""
MAX_QUERY: Final = 10_000
"""Bytes of a query."""


def guarded(app: App, access: Access, limits: Limits) -> App:
    """The application behind its guards."""

    async def guard(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *ours]
            await send(message)

        refused = _refused(scope, headers, access, limits)
        if refused is not None:
            await _answer(send_safely, *refused)
            return
        try:
            body = await asyncio.wait_for(_body(receive, limits.bytes), limits.seconds)
        except TimeoutError:
            await _answer(send_safely, 408, f"The body took more than {limits.seconds:g} s.")
            return
        except ConnectionError:  # who asked has gone
            return
        if body is None:
            await _answer(send_safely, 413, f"A body may have at most {limits.bytes} bytes.")
            return
        message = {"type": "http.request", "body": body, "more_body": False}
        first = iter([message])

        async def once() -> Message:
            return next(first, None) or await receive()

        await app(scope, once, send_safely)

    return guard


def _refused(
    scope: Message, headers: dict[bytes, bytes], access: Access, limits: Limits
) -> tuple[int, str] | None:
    """Status and sentence of a request that is not let in."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_own_name(host, access.names):
        return 421, (
            "The Host of the request is no address of this server; who runs it can allow the name: "
            "bayesrbf serve --allow-host NAME."
        )
    if len(scope["query_string"]) > MAX_QUERY:
        return 414, f"A query may have at most {MAX_QUERY} bytes."
    authorization = headers.get(b"authorization", b"").decode("latin-1")
    if access.token and scope["path"] != OPEN and not is_token(authorization, access.token):
        return 401, "Authorization: Bearer and the token of the server is required."
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > limits.bytes:
        return 413, f"A body may have at most {limits.bytes} bytes."
    return None


def is_own_name(host: str, names: tuple[str, ...]) -> bool:
    """Whether a Host is an address, localhost or one of some names; others may be rebound to it.

    >>> [is_own_name(host, ("desk.example",)) for host in ("127.0.0.1:8000", "[::1]", "Localhost")]
    [True, True, True]
    >>> [is_own_name(host, ("desk.example",)) for host in ("desk.example:443", "evil.example", "")]
    [True, False, False]
    """
    name = host.lower()
    if name.startswith("["):
        name, _, port = name[1:].partition("]")
        if not re.fullmatch(r"(:\d*)?", port):
            return False
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    if name == "localhost" or name in {known.lower() for known in names}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_token(authorization: str, token: str) -> bool:
    """Whether a header shows the token, as a bearer's or, from a browser, as a password.

    >>> is_token("Bearer secret", "secret"), is_token("Bearer secre", "secret")
    (True, False)
    >>> is_token("Basic " + base64.b64encode(b"any:secret").decode(), "secret")
    True
    """
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            text = base64.b64decode(text, validate=True).decode("latin-1").partition(":")[2]
        except (binascii.Error, ValueError):
            text = ""
    elif scheme.lower() != "bearer":
        text = ""
    return hmac.compare_digest(text.encode(), token.encode())


async def _body(receive: Receive, most: int) -> bytes | None:
    """The body; None where it is too long, ConnectionError where it has no end."""
    chunks = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most:
            return None
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _answer(send: Send, status: int, problem: str) -> None:
    """Refuse a request in a sentence."""
    content = json.dumps({"problems": [problem]}).encode()
    headers = [
        (b"content-type", JSON.encode()),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),  # what is left of the body is not read
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="bayesrbf", charset="UTF-8"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


# Listens at an address until it is told to end.


LOOPBACK: Final = ("127.", "::1", "localhost")


def listen(
    app: App, access: Access, port: int, *, grace: int, connections: int, opens: bool
) -> None:
    """Serve an application; OSError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
    # Named TCP: asyncio lets no other socket send at once, which costs 40 ms an answer.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((access.host, port))
        except OSError as error:
            raise OSError(
                f"{access.host} port {port} cannot be listened at ({error.strerror or error}); "
                "choose another by --port, or 0 for a free one."
            ) from None
        listening.listen()
        at = f"[{access.host}]" if ":" in access.host else access.host
        address = f"http://{at}:{listening.getsockname()[1]}/"
        if not access.host.startswith(LOOPBACK):
            print(warning(access), file=sys.stderr, flush=True)
        print(f"Serving at {address} (Ctrl-C ends it)", flush=True)
        if opens:
            webbrowser.open(address)  # whose connection waits until the models are there
        config = uvicorn.Config(
            app,
            lifespan="on",
            access_log=False,  # addresses of cases are nobody's business
            log_level="warning",
            server_header=False,
            limit_concurrency=connections,
            timeout_graceful_shutdown=grace,
            ws="none",
        )
        signal.set_wakeup_fd(-1)  # the command line would give what is under way four seconds
        with suppress(KeyboardInterrupt):  # raised when all is answered
            uvicorn.Server(config).run(sockets=[listening])


def warning(access: Access) -> str:
    """Warning about a server that other machines may ask."""
    login = "a token is asked for" if access.token else "there is no login (--token-file asks one)"
    return (
        f"bayesrbf: {access.host} can be reached from other machines: nothing is encrypted, and "
        f"{login}. Put a server with TLS in front."
    )


# Counts of requests and answers, for Prometheus.


BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper ends, in seconds, of the classes of the histogram."""


class Metrics:
    """Counts of requests since the server started."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        labels, of_model = ("model", "question"), ("model",)
        self._requests = Counter(
            "bayesrbf_requests", "Requests.", (*labels, "status"), registry=registry
        )
        self._seconds = Histogram(
            "bayesrbf_seconds", "From request to answer.", labels, buckets=BOUNDS, registry=registry
        )
        self._rows = Counter("bayesrbf_rows", "Rows answered.", labels, registry=registry)
        self._judged = Counter(
            "bayesrbf_judged_rows", "Rows whose novelty was computed.", of_model, registry=registry
        )
        self._novel = Counter(
            "bayesrbf_novel_rows", "Rows unlike the training table.", of_model, registry=registry
        )
        self._predicted = Counter(
            "bayesrbf_predicted_rows", "Rows with class probabilities.", of_model, registry=registry
        )
        self._probability = Counter(
            "bayesrbf_probability",
            "Sum of the class probabilities: over the predicted rows, their mean.",
            (*of_model, "class"),
            registry=registry,
        )

    def count(self, model: str, question: str, status: int, seconds: float, tally: Tally) -> None:
        """Count one answered request."""
        self._requests.labels(model, question, status).inc()
        self._seconds.labels(model, question).observe(seconds)
        self._rows.labels(model, question).inc(tally.rows)
        self._judged.labels(model).inc(tally.judged)
        self._novel.labels(model).inc(tally.novel)
        if tally.probability:
            self._predicted.labels(model).inc(tally.rows)
        for label, total in tally.probability.items():
            self._probability.labels(model, label).inc(total)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


# What a process of the pool does: it has the models, and answers requests one by one.


WATCHED_EVERY: Final = 2.0
"""Seconds after which a process looks whether its server is still there."""
_models: Final[dict[str, ServedModel]] = {}


def begin(folders: Sequence[ModelFolder], server: int) -> None:
    """Begin a process of a server, which ends when its server does."""
    # Whoever signals the whole group means the server, which answers what it has before it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(server,), daemon=True).start()
    warnings.simplefilter("ignore")  # they have cells, and are told to who asked, not to a log
    load_models(folders)


def load_models(folders: Sequence[ModelFolder]) -> None:
    """Load the models that this process answers for."""
    from bayesrbf.app.serve.served import ServedModel

    for folder in folders:
        _models[folder.name] = ServedModel.of(folder)


def _watch(server: int) -> None:
    """End this process when the server process is gone."""
    while os.getppid() == server:
        time.sleep(WATCHED_EVERY)
    os.kill(os.getpid(), signal.SIGKILL)


def perform(request: ModelRequest, limits: Limits) -> Reply:
    """Reply to one request; problems of the request are replies, too."""
    from bayesrbf.app.serve import page as pages
    from bayesrbf.app.serve.interface import reply_to

    served = _models[request.model]
    is_page = request.task not in (*QUESTIONS, "model")
    refuse = pages.refusal if is_page else pages.problems
    try:
        if request.task in QUESTIONS:
            return reply_to(served, request, limits)
        page: Callable[[ServedModel, ModelRequest, Limits], Reply] = pages.PAGES[request.task]
        return page(served, request, limits)
    except RequestError as error:
        return refuse(error.status, error.problems)
    except TimeoutError:
        return refuse(
            503, [f"The answer takes more than {limits.seconds:g} s; ask for fewer rows."]
        )
    except ValueError as error:  # what the model refuses
        return refuse(422, [str(error)])
    except Exception as error:  # a defect; what it says may have cells, so only its place is logged
        frame = extract_tb(error.__traceback__)[-1]
        print(f"{type(error).__name__} at {frame.filename}:{frame.lineno}", file=sys.stderr)
        return refuse(500, ["The server failed to answer this; its log says where."])


# Processes that answer requests: how many may wait, how long one may take, what if one dies.


THREADS: Final = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"
# Arrays over draws come and go; a process that grew by 300 MB would else be started again.
ENVIRONMENT: Final = dict.fromkeys(THREADS, "1") | {"LOKY_MAX_MEMORY_LEAK_SIZE": "2e9"}
LATE: Final = 5.0
"""Seconds beyond its time after which an answer is not waited for: blocks of rows end by then."""


class Pool:
    """Processes with the models; requests are answered in the order in which they come."""

    def __init__(self, folders: Sequence[ModelFolder], workers: int, limits: Limits) -> None:
        self.limits = limits
        self._folders = tuple(folders)
        self._workers = workers
        self._under_way = 0
        self._executor = self._started()

    def _started(self) -> Any:
        return ProcessPoolExecutor(
            self._workers,
            initializer=begin,
            initargs=(self._folders, os.getpid()),
            env=ENVIRONMENT,
        )

    async def ready(self) -> None:
        """Wait until a process has the models and has answered once, however long that takes."""
        for folder in self._folders:
            request = ModelRequest(folder.name, "page", query={"row": "1"})
            await asyncio.wrap_future(self._executor.submit(perform, request, self.limits))

    async def ask(self, request: ModelRequest) -> Reply:
        """The answer; RequestError with 503 where too many wait, or it takes too long."""
        if self._under_way >= self._workers + self.limits.waiting:
            raise RequestError(503, "Too many requests are waiting; ask again later.")
        executor = self._executor
        self._under_way += 1
        try:
            future = executor.submit(perform, request, self.limits)
            # Time in the queue counts, too: who asked has waited that long.
            return await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds + LATE)
        except TimeoutError:
            raise RequestError(
                503, f"There was no answer within {self.limits.seconds:g} s; ask again later."
            ) from None
        except BrokenExecutor:
            if executor is self._executor:  # the first to notice starts new processes
                self._executor = self._started()
            raise RequestError(503, "The process that answered ended; ask again.") from None
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(wait=True, kill_workers=True)


# The server: addresses, and what a browser or a program gets from each.


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
            address = str(request.base_url)
            to_model = ModelRequest(model, task, body, media_type, query, address)
            try:
                reply = await pools[0].ask(to_model)
            except RequestError as error:
                content = json.dumps({"problems": error.problems}).encode()
                reply = Reply(content, JSON, error.status)
            seconds = time.perf_counter() - began
            metrics.count(model or "model", task, reply.status, seconds, reply.tally)
            headers = dict(reply.headers) | ({"Retry-After": "1"} if reply.status == 503 else {})
            return Response(reply.content, reply.status, headers, reply.media_type)

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
        posts |= {f"/parts/{panel.name}": f"part-{panel.name}" for panel in PANELS}
        posts |= {f"/api/{question}": question for question in QUESTIONS}
        routes += [
            Route(at + path, asks(model, task), methods=["POST"]) for path, task in posts.items()
        ]
        routes.append(Route(f"{at}/api/model", asks(model, "model")))
    if all(folder.name for folder in folders):
        routes.append(Route("/", _constant(_index(folders), HTML)))
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _odd})
    return guarded(app, access, limits)


async def _odd(request: Request, error: Exception) -> Response:
    """Reply to an unknown address or method."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"problems": [error.detail]}, error.status_code, error.headers)


def _constant(content: bytes, media_type: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=media_type)

    return endpoint


def _static() -> dict[str, tuple[bytes, str]]:
    """Style and script of the pages, read once: no request touches the disk."""
    serve_files, report = files("bayesrbf.app.serve"), files("bayesrbf.app.report")
    style = (report / "templates" / "report.css").read_bytes()
    style += (serve_files / "static" / "desk.css").read_bytes()
    script = (serve_files / "static" / "desk.js").read_bytes()
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
