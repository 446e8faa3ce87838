"""One BLAS thread inside a fit: the matrices are small, and threads are used over rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit the loaded BLAS to one thread within a block."""
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The loaded BLAS, looked up once: the search costs more than a small fit."""
    return ThreadpoolController()
