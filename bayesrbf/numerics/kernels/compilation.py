"""Compiles all kernels, and decides how they are cached.

Only the entry points are cached on disk. Numba compares a cached function with its own source file
and ignores the files it calls into, so each entry point closes over :data:`SOURCES`, which Numba
counts into its key: an edit of any kernel file compiles anew.

An entry point contains all that it calls. Called functions would stand beside it under names that
other entry points have, too, each optimised anew, and which of them is run would depend on what was
compiled or loaded before: a first process would have other last bits than later ones. Hence
building blocks are inlined into their callers, and no entry point calls another.
"""

from __future__ import annotations

import hashlib
import logging
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from numba import njit
from numba.core import event

FAST: Final = frozenset({"contract", "reassoc", "nsz", "arcp", "afn"})
"""Fast-math flags that loops need to run in vector registers.

Never ``nnan`` and ``ninf``: missing cells are NaN, impossible rows are -inf, and both must be seen.
"""

EXACT: Final = frozenset({"contract"})  # Fast-math flags for arithmetic that depends on its order.

SOURCES: Final = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()
"""Fingerprint of all kernel files."""


ENDING: Final = [
    signal.Signals(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGALRM")
    if hasattr(signal, name)  # Windows has no alarm
]
"""What ends a run."""


class Announcement(event.Listener):
    """Tells once, through the log, what the first fit after an installation waits for."""

    said = False

    def on_start(self, event: Any) -> None:
        """Announce the compilation; an entry point that is read from the disk is not compiled."""
        if not self.said and _is_ours(event):
            self.said = True
            logging.getLogger("bayesrbf").warning(
                "bayesrbf compiles its kernels, which takes some 40 seconds; later processes load "
                "them from the disk."
            )

    def on_end(self, event: Any) -> None:
        """Do nothing: only the start is announced."""


class Postponement(event.Listener):
    """Keeps interrupts until a compilation in the main thread is over.

    The compiler calls back into Python in places where an exception is printed and lost: the fit
    would go on as if nobody had pressed Ctrl-C.
    """

    def __init__(self) -> None:
        self._compiling: Any = None
        self._before: dict[signal.Signals, Any] = {}
        self._kept: list[signal.Signals] = []

    def on_start(self, event: Any) -> None:
        """Keep what Python handles from now on."""
        in_main = threading.current_thread() is threading.main_thread()
        if self._compiling is None and in_main and _is_ours(event):
            self._compiling = event.data["dispatcher"]
            for number in ENDING:
                if callable(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._keep)

    def on_end(self, event: Any) -> None:
        """Let the first that came do what it would have done."""
        if event.data["dispatcher"] is not self._compiling:
            return
        before, kept = self._before, self._kept
        self._compiling, self._before, self._kept = None, {}, []
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in kept[:1]:
            before[number](number, None)

    def _keep(self, number: int, _: object) -> None:
        """Note a signal."""
        self._kept.append(signal.Signals(number))


def _is_ours(event: Any) -> bool:
    """Whether an entry point of ours is compiled: others compile, too, and not only functions."""
    return SOURCES[:16] in getattr(event.data["dispatcher"], "__qualname__", "")


ANNOUNCEMENT: Final = Announcement()
for listener in (ANNOUNCEMENT, Postponement()):
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]


def kernel[F: Callable[..., object]](function: F) -> F:
    """Compile a building block: fast floating point, IEEE division, no interpreter lock.

    It has no wrappers for calls from Python, which take longer to compile than many a loop: the
    result must be called from compiled code alone.
    """
    compiled = njit(  # type: ignore[call-overload]  # the two wrappers are not in its stubs
        nogil=True,
        error_model="numpy",
        fastmath=set(FAST),
        forceinline=True,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return cast(F, compiled)


def inlined[F: Callable[..., object]](function: F) -> F:
    """Compile a building block into its caller: for functions that only call kernels in order.

    LLVM compiles a function again at every level that calls it, so fewer levels compile faster.
    """
    compiled = njit(nogil=True, error_model="numpy", fastmath=set(FAST), inline="always")
    return cast(F, compiled(function))


def exact_kernel[F: Callable[..., object]](function: F) -> F:
    """Compile a function of numbers whose additions keep their order; Python may call it, too."""
    return cast(
        F, njit(nogil=True, error_model="numpy", fastmath=set(EXACT), forceinline=True)(function)
    )


def entry_point[F: Callable[..., object]](function: F) -> F:
    """Compile a kernel that Python calls, and keep the machine code on disk if possible.

    The function closes over :data:`SOURCES`.
    """
    # Files on disk take this name. Otherwise files of other sources would be opened, and an
    # index that names a moved type or a deleted module cannot be read.
    cast(Any, function).__qualname__ += f"-{SOURCES[:16]}"
    compiled = njit(nogil=True, error_model="numpy", fastmath=set(FAST))(function)
    with suppress(RuntimeError):  # without a folder to write to, every process compiles
        compiled.enable_caching()
    return cast(F, compiled)
