"""Docstrings of what the reference documents, validated: ``python -m tests.reference``.

The names are those of ``docs/api/index.md``; of an estimator, its public methods count as well,
wherever in the package they are written. Everything else in the package is internal and says what
it does in a sentence.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parent.parent
MODULE = re.compile(r"currentmodule:: (\S+)")


def documented() -> Iterator[str]:
    """Import paths of everything in the reference that can be imported here."""
    module = ""
    for line in (ROOT / "docs" / "api" / "index.md").read_text().splitlines():
        named = MODULE.search(line)
        module = named[1] if named else module
        entry = re.fullmatch(r"   (\w+)", line)
        if not entry or (module == "bayesrbf.torch" and find_spec("torch") is None):
            continue
        path = f"{module}.{entry[1]}"
        yield path
        thing = getattr(import_module(module), entry[1])
        if inspect.isclass(thing) and not dataclasses.is_dataclass(thing):
            yield from (f"{path}.{name}" for name in own_members(thing))


def own_members(kind: type) -> list[str]:
    """Public methods and properties that a class has from this package."""
    return [
        name
        for base in kind.__mro__
        if base.__module__.startswith("bayesrbf")
        for name, member in vars(base).items()
        if not name.startswith("_")
        and (inspect.isfunction(inspect.unwrap(getattr(member, "__func__", member))))
    ]


def is_record(path: str) -> bool:
    """Whether a name is that of a frozen dataclass, which documents its attributes."""
    module, _, name = path.rpartition(".")
    return module == "bayesrbf" and dataclasses.is_dataclass(getattr(import_module(module), name))


def findings() -> Iterator[str]:
    """What numpydoc has to say, less the checks that ``pyproject.toml`` takes out."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    left_out = set(settings["checks"]) - {"all"}
    for path in dict.fromkeys(documented()):
        for code, message in validate(path)["errors"]:
            if code not in left_out and not (code == "PR01" and is_record(path)):
                yield f"{path}: {code} {message}"


def main() -> int:
    """Print the findings; the exit status is 1 if there are any."""
    found = list(findings())
    print("\n".join(found) or "The docstrings of the reference are sound.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
