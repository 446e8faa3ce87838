"""What every request passes before it is read: its host, its token, its size, and its headers."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from bayesrbf.serving.settings import JSON, Access, Limits

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
MOST_QUERY: Final = 10_000
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
                own = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
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
    if len(scope["query_string"]) > MOST_QUERY:
        return 414, f"A query may have at most {MOST_QUERY} bytes."
    given = headers.get(b"authorization", b"").decode("latin-1")
    if access.token and scope["path"] != OPEN and not is_token(given, access.token):
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
    if name == "localhost" or name in {own.lower() for own in names}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_token(given: str, token: str) -> bool:
    """Whether a header shows the token, as a bearer's or, from a browser, as a password.

    >>> is_token("Bearer secret", "secret"), is_token("Bearer secre", "secret")
    (True, False)
    >>> is_token("Basic " + base64.b64encode(b"any:secret").decode(), "secret")
    True
    """
    scheme, _, text = given.partition(" ")
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
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


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
