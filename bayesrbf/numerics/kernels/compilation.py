"""How every kernel is compiled, in one place.

Only the entry points are cached on disk. Numba compares a cached function with its own
source file and knows nothing of the files it calls into, so each entry point closes over
:data:`SOURCES`, which Numba counts into its key: an edit of any kernel file compiles anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from numba import njit

FAST: Final = frozenset({"contract", "reassoc", "nsz", "arcp", "afn"})
"""Licences that loops need to run in vector registers.

Never ``nnan`` and ``ninf``: missing cells are NaN, impossible rows are -inf, and both must be seen.
"""

EXACT: Final = frozenset({"contract"})
"""Licences for arithmetic that counts on the order it is written in."""

SOURCES: Final = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()
"""Fingerprint of all kernel files."""


def kernel[F: Callable[..., object]](function: F) -> F:
    """Compile a building block: fast floating point, IEEE division, no interpreter lock.

    It has no wrappers that only Python needs, which take longer to compile than many a loop: the
    result must be called from compiled code alone.
    """
    compiled = njit(  # type: ignore[call-overload]  # the two wrappers are not in its stubs
        nogil=True,
        error_model="numpy",
        fastmath=set(FAST),
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    return cast(F, compiled)


def inlined[F: Callable[..., object]](function: F) -> F:
    """Compile a building block into its caller: for functions that only put kernels in order.

    LLVM compiles a function anew at every level that calls it, so that fewer levels are compiled
    sooner.
    """
    compiled = njit(nogil=True, error_model="numpy", fastmath=set(FAST), inline="always")
    return cast(F, compiled(function))


def exact_kernel[F: Callable[..., object]](function: F) -> F:
    """Compile a function of numbers whose additions must not be reordered.

    Python may call it, too.
    """
    return cast(F, njit(nogil=True, error_model="numpy", fastmath=set(EXACT))(function))


def entry_point[F: Callable[..., object]](function: F) -> F:
    """Compile a kernel that Python calls, and keep the machine code on disk where there is room.

    The function closes over :data:`SOURCES`.
    """
    # Files on disk take this name: those of other sources, whose types may have moved since, would
    # be opened otherwise, and an index that names a module which is gone cannot be read.
    cast(Any, function).__qualname__ += f"-{SOURCES[:16]}"
    compiled = njit(nogil=True, error_model="numpy", fastmath=set(FAST))(function)
    with suppress(RuntimeError):  # no folder to write to: every process compiles for itself
        compiled.enable_caching()
    return cast(F, compiled)
