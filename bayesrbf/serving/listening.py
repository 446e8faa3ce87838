"""Listens at an address until it is told to end."""

from __future__ import annotations

import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from typing import Final

import uvicorn

from bayesrbf.serving.guards import App
from bayesrbf.serving.settings import Access

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
    """What somebody should know who lets other machines ask."""
    login = "a token is asked for" if access.token else "there is no login (--token-file asks one)"
    return (
        f"bayesrbf: {access.host} can be reached from other machines: nothing is encrypted, and "
        f"{login}. Put a server with TLS in front."
    )
