"""Methods that change an estimator at their end, in one step."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast


def works_on[F: Callable[..., Any]](begin: Callable[[Any], Any]) -> Callable[[F], F]:
    """Let a method work on a copy, whose state the estimator takes over when all is done.

    Whatever is interrupted or fails leaves the estimator as it was.

    Parameters
    ----------
    begin : callable
        Makes the copy of the estimator: ``copy``, or one that leaves something out.

    Returns
    -------
    callable
        Decorator of a method that changes ``self`` and returns it.
    """

    def decorate(method: F) -> F:
        @wraps(method)
        def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
            beside = begin(self)
            method(beside, *args, **kwargs)
            self.__dict__ = beside.__dict__  # one assignment: no interrupt falls within it
            return self

        return cast(F, changed)

    return decorate
