"""Hostile model files, each with a name and the words by which it must be refused.

``python -m tests.hostile.corpus`` reads them all and prints what became of them as JSON: what was
not refused by the package's own error, what was opened or imported, the most memory and seconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bayesrbf.artefact.state_file import ArtefactError, save_state
from tests.forgeries import Forgery, forge
from tests.fuzzing import STATE

DAMAGED: Final = "is damaged or no artefact of bayesrbf"
MOST_MEMORY: Final = 64 * 2**20
"""Bytes that reading one of them may take."""
MOST_WORDS: Final = 2000
"""Characters of an error: what a file says may not fill the screen."""
WATCHED: Final = (
    *("open", "import", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"),
    *("socket.connect", "ctypes.dlopen", "pickle.find_class", "os.remove", "os.rename", "os.mkdir"),
)


@dataclass(frozen=True)
class Hostile:
    """How a file comes about, and words of its error."""

    write: Callable[[Path], object]
    says: str = DAMAGED
    memory: int = MOST_MEMORY


def holding(content: bytes, says: str = DAMAGED) -> Hostile:
    """A file of these bytes."""
    return Hostile(lambda path: path.write_bytes(content), says)


def forged(change: Forgery, says: str = DAMAGED) -> Hostile:
    """A small state after a change of header and manifest, with the right digest."""

    def write(path: Path) -> None:
        save_state(path, "Thing", STATE)
        forge(path, change)

    return Hostile(write, says)


def corpus() -> dict[str, Hostile]:
    """All of them by name."""
    from tests.hostile import manifests, models, other_files, states

    return {
        f"{what}: {name}": one
        for module in (other_files, manifests, states, models)
        for what, files in module.CORPUS.items()
        for name, one in files.items()
    }


@dataclass(frozen=True)
class Read:
    """What became of reading one file."""

    said: str
    touched: tuple[str, ...]
    memory: int
    seconds: float

    def wrong(self, one: Hostile, path: Path) -> str:
        """What may not be; empty where all is well."""
        if one.says not in self.said:
            return self.said[:200]
        if not self.said.replace(str(path), "").isprintable():
            return "control characters in the error"
        if len(self.said) > MOST_WORDS:
            return f"an error of {len(self.said)} characters"
        if self.memory > one.memory:
            return f"{self.memory} bytes of memory"
        return " ".join(self.touched)


told: list[str] | None = None
"""What is touched, while something is read."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if told is not None and event in WATCHED:
        told.append(f"{event} {arguments[0]!r}")


def read(one: Hostile, path: Path, load: Callable[[Path], Any]) -> Read:
    """Write a file and read it, watched."""
    global told
    one.write(path)
    tracemalloc.start()
    began, told = time.process_time(), []
    try:
        load(path)
        said = "nothing was refused"
    except ArtefactError as error:
        said = str(error)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    touched, told = told, None
    seconds, memory = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    opened = f"open {str(path)!r}"
    return Read(
        said, tuple(t for t in touched if t not in (opened, f"open {path!r}")), memory, seconds
    )


def main() -> dict[str, Any]:
    """Read them all, after a sound file of every kind has brought its modules.

    A name that no module has registered lets the package import all of its own that may, a fixed
    list; those of them that sound files have no use for are imported here.
    """
    import bayesrbf
    from bayesrbf.public import BESIDE
    from tests.mutations import FAMILIES, fitted

    warnings.simplefilter("ignore")
    import_module(BESIDE)
    wrong, memory, seconds, files = [], 0, 0.0, corpus()
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            fitted(family)[0].save(Path(folder) / "sound")
            bayesrbf.load(Path(folder) / "sound")
        sys.addaudithook(_watch)
        for number, (name, one) in enumerate(files.items()):
            path = Path(folder) / str(number)
            found = read(one, path, bayesrbf.load)
            seconds = max(seconds, found.seconds)
            memory = max(memory, found.memory if one.memory == MOST_MEMORY else 0)
            problem = found.wrong(one, path)
            wrong += [f"{name}: {problem}"] if problem else []
            if path.is_file() and not path.is_symlink():
                os.remove(path)
    return {"tried": len(files), "wrong": wrong, "memory": memory / 2**20, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(main()))
