"""Compiles kernels, and decides how they are cached; elementary functions for their loops."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from numba import config, njit
from numba.core import event

# Compiles all kernels, and decides how they are cached.
#
# Only the entry points are cached on disk. Numba compares a cached function with its own source
# file and ignores the files it calls into. So the name of an entry point, which files on disk have,
# ends in :data:`SOURCES`: an edit of any kernel file compiles anew.
#
# An entry point contains all that it calls. Called functions would stand beside it under names that
# other entry points have, too, each optimised anew, and which of them is run would depend on what
# was compiled or loaded before: a first process would have other last bits than later ones. Hence
# building blocks are inlined into their callers, and no entry point calls another.


FAST: Final = frozenset({"contract", "reassoc", "nsz", "arcp", "afn"})
"""Fast-math flags that loops need to run in vector registers.

Never ``nnan`` and ``ninf``: missing cells are NaN, impossible rows are -inf, and both must be seen.
"""

EXACT: Final = frozenset({"contract"})  # Fast-math flags for arithmetic that depends on its order.

PACKAGE: Final = Path(__file__).parents[1]
SOURCES: Final = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("compiled*.py")))
).hexdigest()
"""Fingerprint of all files of kernels, whose names begin with *compiled*."""


ENDING: Final = [
    signal.Signals(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGALRM")
    if hasattr(signal, name)  # Windows has no alarm
]
"""Signals that end a run."""


class Announcement(event.Listener):
    """Tells once, through the log, what the first fit after an installation waits for."""

    reported = False

    def on_start(self, event: Any) -> None:
        """Log a warning when the first kernel is compiled; none if it is read from the disk."""
        if not self.reported and _is_ours(event):
            self.reported = True
            logging.getLogger("bayesrbf").warning(
                "bayesrbf compiles its kernels, which takes half a minute; later processes load "
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
        """Replace the handlers of ending signals when a compilation starts in the main thread."""
        in_main = threading.current_thread() is threading.main_thread()
        if self._compiling is None and in_main and _is_ours(event):
            self._compiling = event.data["dispatcher"]
            for number in ENDING:
                if callable(signal.getsignal(number)):
                    self._before[number] = signal.signal(number, self._keep)

    def on_end(self, event: Any) -> None:
        """Restore the handlers after a compilation, and handle the first signal that was kept."""
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

    The qualified name of ``function`` gets the fingerprint of all kernels.
    """
    # Files on disk take this name. Otherwise files of other sources would be opened, and an
    # index that names a moved type or a deleted module cannot be read.
    cast(Any, function).__qualname__ += f"-{SOURCES[:16]}"
    compiled: Any = njit(nogil=True, error_model="numpy", fastmath=set(FAST))(function)
    with suppress(RuntimeError, OSError):  # without a folder to write to, every process compiles
        _keep_on_disk(compiled)
        path = Path(compiled.stats.cache_path, f"{compiled.__qualname__}.lock")
        compiled.compile = partial(_compiled_once, path, compiled.compile)
    return cast(F, compiled)


def _keep_on_disk(compiled: Any) -> None:
    """Enable Numba's disk cache: beside the package or in the home, or else among temporary files.

    PermissionError if the temporary folder is not of this user alone.
    """
    try:
        compiled.enable_caching()
    except RuntimeError:
        options: Any = config
        chosen = options.CACHE_DIR
        options.CACHE_DIR = str(_private_folder())
        try:
            compiled.enable_caching()
        finally:
            options.CACHE_DIR = chosen


def _private_folder() -> Path:
    """Path of a temporary folder of this user alone, made if absent; PermissionError if it is not.

    Whoever can write to the folder can have code run as this user.
    """
    if not hasattr(os, "getuid"):
        raise PermissionError("who owns a folder is not known on this system")
    folder = Path(tempfile.gettempdir(), f"bayesrbf-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode != stat.S_IFDIR | 0o700:
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


def _compiled_once(path: Path, compile_or_load: Callable[..., Any], *types: Any) -> Any:
    """Result of ``compile_or_load(*types)``, called while the file ``path`` is locked.

    Three processes that start at once would compile the same for minutes: two of them load what the
    first has compiled. The system lets go of the lock when its process ends, however it ends.
    """
    with ExitStack() as held:
        with suppress(ImportError, OSError):  # Windows, or a file system without locks
            import fcntl

            fcntl.flock(held.enter_context(path.open("w")), fcntl.LOCK_EX)
        return compile_or_load(*types)


# Exponential and logarithm as polynomials, for loops that run in vector registers.
#
# The C library's functions take one number at a time, and cost more than all the rest of an
# E-step over a table with few columns.
#
# **Exponential.** With :math:`n = \lfloor x / \ln 2 + 1/2 \rfloor` and
# :math:`r = x - n \ln 2`, :math:`|r| \le 0.347`,
#
# .. math:: e^x = 2^n \sum_{i=0}^{13} r^i / i! ,
#
# whose truncation error is below :math:`0.347^{14}/14! < 5 \cdot 10^{-18}`. The logarithm of 2
# is split into a part short enough that n times it is exact and a remainder, so that r is
# exact to rounding. In all: within 2 units in the last place. Below :data:`NEGLIGIBLE` the
# result is exactly 0.
#
# **Logarithm.** With :math:`x = 2^e m`, :math:`m \in [\sqrt{1/2}, \sqrt 2)` and
# :math:`s = (m - 1)/(m + 1)`, :math:`|s| \le 0.172`,
#
# .. math:: \ln x = e \ln 2 + 2 \sum_{i=0}^{10} s^{2i+1} / (2i + 1) ,
#
# whose truncation error is below :math:`2 |s| \cdot s^{22}/23 < 4 \cdot 10^{-18} |\ln m|`: within
# 4 units in the last place for every positive normal number.
#
# The kernels do not compile under free reassociation, which would fold the two parts of
# :math:`\ln 2` into one.


NEGLIGIBLE: Final = -72.0
"""Log of the smallest responsibility that is not zero, 5e-32, the square of the rounding error.

Nothing is lost beside a component of responsibility one, nor from the sums of a component that has
any weight beside its prior, and rows cost no second moments where they do not belong.
"""

INVERSE_LN_2: Final = 1 / math.log(2)
LN_2: Final = math.log(2)
LN_2_HIGH: Final = float.fromhex("0x1.62e42feep-1")
LN_2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")

SHIFT: Final = 1.5 * 2.0**52 + 1023
"""Added to a small whole number n, it leaves n + 1023, a biased exponent, in the low bits."""

FRACTION_BITS: Final = np.int64(52)
SQRT_HALF_BITS: Final = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))

EXPONENTIAL_TERMS: Final = tuple(1 / math.factorial(i) for i in range(13, -1, -1))
LOGARITHM_TERMS: Final = tuple(2.0 / (2 * i + 1) for i in range(10, 0, -1))


@exact_kernel
def exponential(x: float) -> float:
    """Compute e^x of a number that is not positive; 0 below :data:`NEGLIGIBLE`."""
    # Bounded before the exponent is built from bits, though the result is 0 there anyway.
    bounded = max(x, NEGLIGIBLE)
    n = np.floor(bounded * INVERSE_LN_2 + 0.5)
    r = (bounded - n * LN_2_HIGH) - n * LN_2_LOW
    series = 0.0
    for term in EXPONENTIAL_TERMS:
        series = series * r + term
    bits = np.float64(n + SHIFT).view(np.int64)
    power = np.int64(bits << FRACTION_BITS).view(np.float64)
    return series * power if x > NEGLIGIBLE else 0.0


@exact_kernel
def logarithm(x: float) -> float:
    """Compute the natural logarithm of a positive normal number."""
    bits = np.float64(x).view(np.int64)
    # The bits of positive doubles rise with their values: counted from sqrt(1/2) they give the
    # exponent that leaves m between sqrt(1/2) and sqrt(2).
    exponent = (bits - SQRT_HALF_BITS) >> FRACTION_BITS
    m = np.int64(bits - (exponent << FRACTION_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = 0.0
    for term in LOGARITHM_TERMS:
        series = series * square + term
    return exponent * LN_2 + (series * square * s + 2.0 * s)
