"""Altered manifests are refused or read: ``python -m tests.fuzzing 1000000`` tries a million.

Each is sealed with the digest that it should have, so that what reads it is what is tried, and goes
through ``load_state`` as a file does. Anything but a state or an ArtefactError is a find.
"""

from __future__ import annotations

import copy
import json
import marshal
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.base.artefact import PROTOCOL, ArtefactError, load_state, save_state
from tests.forgeries import assemble, compact, parts, sealed

STATE: Final = {
    "a": np.arange(4.0).reshape(2, 2),
    "b": (1, None, "x", True, 0.5, float("nan")),
    "c": {"n": [np.array([True, False]), {"k": "v"}]},
}
TOKENS: Final = (
    *("{}", "[]", "[", "]", "{", "}", ",", ":", '"', "\\", "null", "true", "NaN", "-0", "1e999"),
    *("-1", "9" * 400, '"\\u0000"', '"\\ud800"', '{"array":["0",0,[2]]}', '{"tuple":[]}'),
    *('{"array":["9",0,[1]]}', '{"coded":[["1",0,[2]],["0",1,[2]]]}', '["0",-1,[2]]'),
    *('{"dict":{}}', '{"float":"nan"}', '{"record":["os",{}]}', '{"enum":["x","y"]}', "0.5", "é"),
    *(f'"protocol":{PROTOCOL},', '"kind":"Thing",', "[" * 50, '{"a":' * 50),
    *('"__class__"', '"__import__"'),
)
"""What is put where it does not belong."""
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**63, 10**30, 0.5, 1e308, "", "0", "Thing", "x" * 300, [], {}, [[]]),
    *({"array": ["0", 1, [2]]}, {"array": ["1", 1, [2]]}, {"array": 0}, {"tuple": [1]}, {"x": 1}),
    *({"coded": [["1", 0, [2]], ["0", 0, [2]]]}, {"coded": [1]}, {"dict": {"a": 1}}),
    *({"float": "inf"}, {"float": "x"}, {"record": ["Standardisation", {}]}, {"record": 1}),
    *(
        ["F64", [2, 2]],
        ["F64", [-1]],
        ["BOOL", [2]],
        ["F64", [2**62, 2**62]],
        {"array": ["0", 0, [2]], "b": 1},
        ["0", 0, [2**62, 0]],
        ["0", 2**62, [2]],
    ),
)
"""What stands in the place of a value."""
SLOW: Final = 1.0
"""Seconds that no input may take."""


class Target:
    """One file that is written anew for every input, and read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = self.path.read_bytes()
        self.header, self.manifest, self.data = parts(self.content)
        self.text = compact(self.manifest)
        self.tree = marshal.dumps(self.manifest)

    def file(self, text: str) -> bytes:
        """A file with this manifest and the right digest."""
        return assemble(self.header, text, self.data)

    def outcome(self, content: bytes) -> str:
        """What becomes of a file: "read", "refused", or what was found."""
        with open(self.path, "wb", buffering=0) as file:
            file.write(content)
        began = time.monotonic()
        try:
            load_state(self.path)
            said = "read"
        except ArtefactError:
            said = "refused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return said if time.monotonic() - began < SLOW else "slow"


def small(folder: Path) -> Target:
    """A file of a small state."""
    path = folder / "fuzzed"
    save_state(path, "Thing", STATE)
    return Target(path)


def at_random(target: Target, rng: random.Random) -> bytes:
    """A file whose manifest, or bytes, were changed in a few places."""
    how = rng.random()
    if how < 0.45:
        return target.file(_text(target.text, rng))
    if how < 0.9:
        return target.file(compact(_tree(marshal.loads(target.tree), rng)))
    return _bytes(target.content, rng)


def _text(text: str, rng: random.Random) -> str:
    """Tokens put in, pieces cut out, repeated or moved."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 1, 2, 5, 20, 100)))
        piece = rng.choice(
            (rng.choice(TOKENS), text[start:end] * 2, "", chr(rng.randrange(0xD7FF)))
        )
        text = text[:start] + piece + text[end:]
    return text


def _tree(tree: Any, rng: random.Random) -> Any:
    """Values replaced, removed, or moved to another place."""
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice(_places(tree))
        do = rng.random()
        if do < 0.6:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif do < 0.75:
            del holder[key]
        elif do < 0.9:
            other, place = rng.choice(_places(tree))
            holder[key] = marshal.loads(marshal.dumps(other[place]))
        elif isinstance(holder, dict):
            holder[rng.choice(("state", "array", "x", "", "dict", "record"))] = holder.pop(key)
        if not tree or not _places(tree):
            return tree
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every value of a tree, as its holder and its key."""
    found, waiting = [], [tree]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys if isinstance(holder[key], dict | list)]
    return found


def _bytes(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, cut out or put in, and sealed where that is still possible."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        changed[at : at + rng.choice((0, 1, 1, 1, 8))] = rng.randbytes(rng.choice((0, 1, 1, 8)))
    return sealed(bytes(changed))


def in_memory(work: Callable[[Path], Any]) -> Any:
    """Run some work in a folder that is kept in memory, where there is one."""
    quick = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=quick) as folder:
        return work(Path(folder))


def fuzz(times: int, seed: int = 0) -> dict[str, Any]:
    """So many inputs: counts of outcomes, seconds, and how much the memory grew (MiB)."""

    def work(folder: Path) -> dict[str, Any]:
        target, rng, found = small(folder), random.Random(seed), Counter[str]()
        assert target.outcome(target.file(target.text)) == "read"
        began, before = time.monotonic(), 0
        for number in range(times):
            found[target.outcome(at_random(target, rng))] += 1
            if number == times // 10:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        return {"found": found, "seconds": time.monotonic() - began, "grown": grown}

    said: dict[str, Any] = in_memory(work)
    return said


if __name__ == "__main__":
    print(json.dumps(fuzz(*map(int, sys.argv[1:3]))))
