"""What every test stands on: checked shapes, the data folder, benchmarks behind a flag."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, Final

import beartype.typing  # noqa: F401  the checker below is evaluated from its text
import jaxtyping
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent

# Functions whose types are checked, as below, cannot be sent to other processes.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# Graphs of PyTensor are many objects, and looking through all of them takes a tenth of the time.
gc.set_threshold(50_000, 20, 20)


def checked_modules() -> Iterator[str]:
    """Every module of the package and of examples/reproduce but the compiled kernels.

    Those cannot be wrapped. The files are walked and not imported: the hook must be there
    first. It matches by prefix, so packages are left out; they define nothing.
    """
    for path, start in ((ROOT, "bayesrbf"), (ROOT / "examples", "reproduce")):
        for folder, _, files in (path / start).walk(follow_symlinks=True):
            package = folder.relative_to(path).parts
            for file in files:
                hidden = file.startswith(("__", "compiled")) or "tests" in package
                if file.endswith(".py") and not hidden:
                    yield ".".join((*package, file.removesuffix(".py")))


CHECKED: Final = 2
"""Calls of a function that are checked in one test. Those of a long loop are alike, and checking
all of them takes as long as everything else together."""
calls: Counter[str] = Counter()
every_call = jaxtyping.jaxtyped


def first_calls(function: Any = None, *, typechecker: Any = None) -> Any:
    """Check types and shapes of the first calls; the hook below puts this in front of everything.

    Functions are made ready when they are first called, for most are never called in a run. Of a
    dataclass it is ``__init__`` that is called: a fit makes some records thousands of times.
    """
    if function == "context":
        return every_call("context")
    if function is None:
        return lambda each: first_calls(each, typechecker=typechecker)
    if isinstance(function, type):
        if is_dataclass(function) and not hasattr(function.__init__, "__wrapped__"):
            made = first_calls(function.__init__, typechecker=typechecker)
            function.__init__ = made  # type: ignore[method-assign]
        return function
    name = f"{function.__module__}.{function.__qualname__}"

    @cache
    def checked() -> Callable[..., Any]:
        return every_call(function, typechecker=typechecker)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return (checked() if calls[name] <= CHECKED else function)(*args, **kwargs)

    return call


@pytest.fixture(autouse=True)
def count_calls_anew() -> None:
    calls.clear()


# Machines are slow at times, which is no defect; and a run that fails must fail again.
settings.register_profile("bayesrbf", deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("bayesrbf"), max_examples=15)
settings.load_profile("bayesrbf")

# beartype sees methods one by one, without the class that Self stands for.
SELF = "beartype.FrozenDict({beartype.typing.Self: object})"
BENCHMARK = "--benchmark"
if BENCHMARK not in sys.argv:  # a check of every call would be timed with the call
    jaxtyping.jaxtyped = first_calls  # type: ignore[assignment]  # what the hook writes is this
    jaxtyping.install_import_hook(
        list(checked_modules()),
        f"beartype.beartype(conf=beartype.BeartypeConf(hint_overrides={SELF}))",
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        BENCHMARK, action="store_true", help="collect examples/bench, which print figures"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    benchmark = (ROOT / "examples" / "bench") in (collection_path, *collection_path.parents)
    return True if benchmark and not config.getoption(BENCHMARK) else None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """The name of an argument, numbered, for bytes and for texts that are long or no plain text.

    Workers compare the names of their tests, so bytes that hold a clock stopped a run.
    """
    if isinstance(val, bytes) or (isinstance(val, str) and not plain(val)):
        return argname
    return None


def plain(text: str, longest: int = 80) -> bool:
    """Whether a text may stand in the name of a test: short, and the same where it is typed."""
    return len(text) <= longest and text.isascii() and text.isprintable() and "\\" not in text


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of tests that cannot be typed: workers compare them."""
    odd = [item.nodeid for item in items if not plain(item.nodeid.partition("[")[2], 121)]
    if odd:
        raise pytest.UsageError(f"no short and plain name: {odd}")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of benchmark tables that BAYESRBF_DATA names; the test is skipped without it.

    A name that leads nowhere fails: where the data are promised, as by make and in CI,
    no test may pass by not running.
    """
    name = os.environ.get("BAYESRBF_DATA")
    if not name:
        pytest.skip("needs the benchmark tables: set BAYESRBF_DATA to their folder")
    folder = Path(name)
    if not folder.is_dir():
        pytest.fail(f"BAYESRBF_DATA names {name}, which is not a folder")
    return folder
