"""One BLAS thread inside a fit: the matrices are small, and threads are used over rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold the loaded BLAS to one thread for the time of a block.

    Returns
    -------
    context manager
        What was set before is set again at its end.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The loaded BLAS, looked up once: the search costs more than a small fit."""
    return ThreadpoolController()
