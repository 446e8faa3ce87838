"""One BLAS thread inside a fit: the matrices are small, and threads are used over rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, wraps

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit the loaded BLAS to one thread within a block."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


def on_one_blas_thread[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Limit the loaded BLAS to one thread within a function.

    Threads that wait for each other spin: beside other work on two cores, a fit of hundreds of
    small products took fifty times as long.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_blas_thread():
            return function(*args, **kwargs)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The loaded BLAS, looked up once: the search costs more than a small fit."""
    return ThreadpoolController()
