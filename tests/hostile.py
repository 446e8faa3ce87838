"""Hostile model files, one for each kind of check, with the words by which each must be refused.

``python -m tests.hostile`` reads them all and prints what became of them as JSON: what was not
refused by the package's own error, what was opened or imported, the most memory and seconds.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.base.artefact import (
    PROTOCOL,
    ArtefactError,
    encode,
    load_state,
    pack,
    save_state,
    unpack,
)
from tests.forgeries import Forgery, assemble, compact, forge, parts, put
from tests.fuzzing import STATE
from tests.mutations import fitted

DAMAGED: Final = "is damaged or no artefact of bayesrbf"
UNREADABLE: Final = "its manifest cannot be read"
MAX_MEMORY: Final = 64 * 2**20
"""Bytes that reading one of them may take."""
MAX_WORDS: Final = 2000
"""Characters of an error: what a file says may not fill the screen."""
RUNS: Final = ("os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
"""Events of programs and connections, which neither reading nor predicting makes."""
WATCHED: Final = (
    *RUNS,
    *("open", "import", "ctypes.dlopen", "pickle.find_class"),
    *("os.remove", "os.rename", "os.mkdir"),
)
"""Events of what reading may not do; a first prediction loads compiled kernels by them."""


@dataclass(frozen=True)
class Hostile:
    """How a file comes about, and words of its error."""

    write: Callable[[Path], object]
    says: str = DAMAGED


def holding(content: bytes, says: str = DAMAGED) -> Hostile:
    """A file of these bytes."""
    return Hostile(lambda path: path.write_bytes(content), says)


def headed(header: bytes, says: str = UNREADABLE) -> Hostile:
    """A file of a header and nothing else."""
    return holding(len(header).to_bytes(8, "little") + header, says)


def forged(change: Forgery, says: str = DAMAGED) -> Hostile:
    """A small state after a change of header and manifest, with the right digest."""

    def write(path: Path) -> None:
        save_state(path, "Thing", STATE)
        forge(path, change)

    return Hostile(write, says)


def of_array(says: str, **items: Any) -> Hostile:
    """A small state, of whose first array header and manifest say something else."""

    def change(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        header["0"].update(items)
        manifest["arrays"]["0"] = [header["0"]["dtype"], header["0"]["shape"]]

    return forged(change, says)


def worded(tail: str, says: str) -> Hostile:
    """A small file whose manifest ends in this text."""

    def write(path: Path) -> None:
        save_state(path, "Thing", STATE)
        header, manifest, data = parts(path.read_bytes())
        del manifest["state"]
        path.write_bytes(assemble(header, compact(manifest)[:-1] + "," + tail, data))

    return Hostile(write, says)


def holding_state(tree: object, says: str) -> Hostile:
    return forged(put(state=tree), says)


@cache
def density() -> tuple[str, Any]:
    """Kind and state of a fitted density."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        fitted("density")[0].save(path)
        return load_state(path)


def changed(place: str, value: Any, says: str) -> Hostile:
    """A density with something else at a place: a tree, or a function of the array there."""

    def write(path: Path) -> None:
        kind, state = density()
        tree, arrays = pack(state)
        *way, last = (int(key) if key.isdigit() else key for key in place.split("."))
        holder = inside(tree)
        for key in way:
            holder = inside(holder[key])
        if callable(value):
            array = np.ascontiguousarray(value(unpack(holder[last], arrays)))
            holder[last] = {"array": ["other", 0, list(array.shape)]}
            arrays["other"] = array.ravel()
        else:
            holder[last] = value
        path.write_bytes(encode(kind, tree, arrays, str(path)))

    return Hostile(write, says)


def inside(tree: Any) -> Any:
    """What a tag holds."""
    for tag, content in tree.items() if isinstance(tree, dict) and len(tree) == 1 else ():
        if tag in ("dict", "tuple"):
            return content
        if tag == "record":
            return content[1]
    return tree


def ending_in(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """The array with something else in its last cell."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.reshape(-1)[-1] = value
        return array

    return change


class Runs:
    """A pickle of it runs a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch got-in",)


FILES: Final = {
    "a pickle that runs a command": holding(pickle.dumps(Runs())),
    "seven bytes": holding(bytes(7), "cut short or too long"),
    "a header longer than the file": holding(b"\xff" * 64, "cut short or too long"),
    "a pipe that nobody writes": Hostile(lambda path: os.mkfifo(path), "no plain file"),
    "a link to zeros without an end": Hostile(
        lambda path: path.symlink_to("/dev/zero"), "no plain file"
    ),
    "a header that is no UTF-8": headed(b"\xff\xfe"),
    "a header without a manifest": headed(b"{}"),
    "a header that says everything twice": headed(
        b'{"__metadata__":{},"__metadata__":{}}', "duplicate keys"
    ),
    "a header of four MiB of brackets": headed(b"[" * 2**22, "nested deeper than"),
    "a header of ten thousand and one arrays": headed(
        json.dumps(
            {"__metadata__": {"bayesrbf": "{}"}} | dict.fromkeys(map(str, range(10_001)))
        ).encode(),
        "at most 10000 arrays",
    ),
}

MANIFESTS: Final = {
    "a newer protocol": forged(
        put(protocol=PROTOCOL + 1),
        f"was written by protocol {PROTOCOL + 1}, this version reads {PROTOCOL}",
    ),
    "a protocol of true": forged(put(protocol=True), "was written by protocol True"),
    "a protocol that clears the screen": forged(put(protocol="\x1b[2J"), "by protocol ?[2J"),
    "one key more": forged(put(also=1), "unknown or missing keys"),
    "a digest in another place": forged(
        lambda header, manifest: manifest.update(sha256=manifest.pop("sha256")),
        "unknown or missing keys",
    ),
    "a digest of another file": forged(put(sha256="A" * 64), "SHA-256 of its manifest"),
    "a kind that is nothing": forged(put(kind=None), "which is no name"),
    "a kind of the standard library": forged(put(kind="os.system"), "unknown estimator"),
    "NaN": worded('"state":NaN}', "its JSON holds NaN"),
    "a number that overflows": worded('"state":1e999}', "holds the number 1e999"),
    "an integer of five thousand digits": worded(f'"state":{"9" * 5000}}}', UNREADABLE),
    "the same key twice, escaped once": worded('"state":1,"st\\u0061te":2}', "duplicate keys"),
    "forty-one levels": worded(f'"state":{"[" * 41}{"]" * 41}}}', "40 levels of nesting"),
    "more than one MiB": worded(f'"state":"{"x" * 2**20}"}}', "bytes of manifest"),
    "more than ten thousand arrays": worded(
        f'"state":[{",".join(['{"array":["0",0,[4]]}'] * 10_001)}]}}', "at most 10000 arrays"
    ),
}

ARRAYS: Final = {
    "of the manifest alone": forged(
        lambda header, manifest: manifest["arrays"].update(also=["F64", [0]]),
        "not those of its manifest",
    ),
    "with one key more": of_array("unknown or missing keys", also=1),
    "of another dtype in the manifest": forged(
        lambda header, manifest: header["0"].update(dtype="I64"), "not as the manifest describes"
    ),
    "of objects": of_array("not as the manifest describes", dtype="O"),
    "of a negative shape": of_array("a negative shape or offset", shape=[-2, -2]),
    "of a shape of booleans": of_array("a negative shape or offset", shape=[True, 4]),
    "of offsets that are not its size": of_array("as offsets of shape", data_offsets=[0, 24]),
    "of offsets that overlap": of_array(DAMAGED, data_offsets=[1, 33]),
}

STATES: Final = {
    "an unknown tag": holding_state({"py/reduce": ["os.system", "touch got-in"]}, "unknown keys"),
    "a text in the place of a list": holding_state({"tuple": "ab"}, "a list was expected"),
    "a record with a path for a name": holding_state(
        {"record": ["bayesrbf.base.files.write_whole", {}]}, "unknown record"
    ),
    "a record that is an enumeration": holding_state({"record": ["Status", {}]}, "unknown record"),
    "a private field": holding_state(
        {"record": ["Standardisation", {"__class__": 1, "scale": 1}]},
        "unknown fields of a Standardisation: __class__",
    ),
    "the same as a record before the first": holding_state({"same": -1}, "no record -1"),
    "arrays that lie on each other": holding_state(
        [{"array": ["0", i, [4 - i]]} for i in range(3)], "more bytes than are stored"
    ),
    "a frame of another library": holding_state(
        {"frame": ["os", []]}, "of bayesrbf: unknown frame"
    ),
}

MODEL: Final = "no state of a"
TABLE, PARAMETERS = "fitted.table", "fitted.model.parameters"
MODELS: Final = {
    "with details of another": changed("fitted.details", None, MODEL),
    "with an argument that no fit takes": changed("arguments.n_components", -1, MODEL),
    "of weights of a sum of two": changed(f"{PARAMETERS}.weights", lambda a: a * 2, "needs"),
    "of means that are NaN": changed(f"{PARAMETERS}.means", ending_in(np.nan), "holds NaN"),
    "of means in single precision": changed(
        f"{PARAMETERS}.means", lambda a: a.astype(np.float32), "means is no Float"
    ),
    "of columns of a level less": changed(
        f"{TABLE}.columns.kinds.2.levels", {"tuple": ["blue", "red"]}, "needs"
    ),
    "of codes beyond the levels": changed(f"{TABLE}.rows.codes", ending_in(9), "needs"),
}

CORPUS: Final = {
    f"{what}: {name}": one
    for what, files in {
        "file": FILES,
        "manifest": MANIFESTS,
        "array": ARRAYS,
        "state": STATES,
        "model": MODELS,
    }.items()
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
        if len(self.said) > MAX_WORDS:
            return f"an error of {len(self.said)} characters"
        if self.memory > MAX_MEMORY:
            return f"{self.memory} bytes of memory"
        return " ".join(self.touched)


told: list[str] | None = None
"""What is touched, while something is read."""


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Hear of what a process does, for ``sys.addaudithook``; it is silent where nothing is read."""
    if told is not None and event in WATCHED:
        told.append(f"{event} {arguments[0]!r}")


def read(path: Path, load: Callable[[Path], Any]) -> Read:
    """Read a file, watched."""
    global told
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
    own = f"open {str(path)!r}", f"open {path!r}"
    return Read(said, tuple(t for t in touched if t not in own), memory, seconds)


def main() -> dict[str, Any]:
    """Read them all, after a sound file has brought its modules.

    A name that no module has registered lets the package import all of its own that may, a fixed
    list; they are imported here.
    """
    import bayesrbf
    from bayesrbf.public import BESIDE, ESTIMATORS

    warnings.simplefilter("ignore")
    for module in (*ESTIMATORS.values(), BESIDE):
        import_module(module)
    wrong, memory, seconds = [], 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "sound"
        fitted("density")[0].save(sound)
        bayesrbf.load(sound)
        sys.addaudithook(watch)
        for number, (name, one) in enumerate(CORPUS.items()):
            path = Path(folder) / str(number)
            one.write(path)
            found = read(path, bayesrbf.load)
            seconds, memory = max(seconds, found.seconds), max(memory, found.memory)
            problem = found.wrong(one, path)
            wrong += [f"{name}: {problem}"] if problem else []
    return {"tried": len(CORPUS), "wrong": wrong, "memory": memory / 2**20, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(main()))
