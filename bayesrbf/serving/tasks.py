"""What a process of the pool does: it has the models, and answers requests one by one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from traceback import extract_tb
from typing import TYPE_CHECKING, Final, NoReturn

from bayesrbf.serving.settings import (
    JSON,
    QUESTIONS,
    Asked,
    Limits,
    ModelFolder,
    Reply,
    RequestError,
)

if TYPE_CHECKING:
    from bayesrbf.serving.served_model import ServedModel

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
    from bayesrbf.serving.served_model import ServedModel

    for folder in folders:
        _models[folder.name] = ServedModel.of(folder)


def _watch(server: int) -> None:
    """End where the server was killed."""
    while os.getppid() == server:
        time.sleep(WATCHED_EVERY)
    os.kill(os.getpid(), signal.SIGKILL)


def perform(asked: Asked, limits: Limits) -> Reply:
    """Answer one request; what is wrong with it is an answer, too."""
    from bayesrbf.serving import pages

    served = _models[asked.model]
    is_page = asked.task not in (*QUESTIONS, "model")
    refuse = pages.refusal if is_page else pages.problems
    try:
        if asked.task in QUESTIONS:
            return _interface(served, asked, limits)
        page: Callable[[ServedModel, Asked, Limits], Reply] = pages.PAGES[asked.task]
        return page(served, asked, limits)
    except RequestError as error:
        return refuse(error.status, error.problems)
    except TimeoutError:
        return refuse(
            503, [f"The answer takes more than {limits.seconds:g} s; ask for fewer rows."]
        )
    except ValueError as error:  # what the model refuses
        return refuse(422, [str(error)])
    except Exception as error:  # a defect; what it says may have cells, so only its place is logged
        place = extract_tb(error.__traceback__)[-1]
        print(f"{type(error).__name__} at {place.filename}:{place.lineno}", file=sys.stderr)
        return refuse(500, ["The server failed to answer this; its log says where."])


def _refuse_with(error: RequestError, read: Callable[[], object]) -> NoReturn:
    """Refuse a request for one error, and for what else is found in it."""
    try:
        read()
    except RequestError as other:
        raise RequestError(other.status, *error.problems, *other.problems) from None
    raise error


def _interface(served: ServedModel, asked: Asked, limits: Limits) -> Reply:
    """An answer of the interface."""
    from bayesrbf.serving.answers import Options, answer, content_of, warned
    from bayesrbf.serving.rows import rows_of

    media_type = asked.media_type or JSON
    try:
        options = Options.of(asked.query, served, asked.task)
    except RequestError as error:
        _refuse_with(error, lambda: rows_of(served, asked.body, media_type, limits.rows))
    rows = rows_of(served, asked.body, media_type, limits.rows)
    answered = answer(served, asked.task, rows, options, limits.seconds)
    content, headers = content_of(served, answered, media_type), warned(answered)
    return Reply(content, media_type, headers=headers, tally=answered.tally)
