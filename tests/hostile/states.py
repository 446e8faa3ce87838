"""States that hold what no packed value is."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.artefact.state_file import encode
from tests.forgeries import put
from tests.hostile.corpus import DAMAGED, MOST_MEMORY, Hostile, forged


def state(tree: object, says: str = DAMAGED) -> Hostile:
    return forged(put(state=tree), says)


def with_arrays(
    tree: object, says: str = DAMAGED, memory: int = MOST_MEMORY, **arrays: np.ndarray
) -> Hostile:
    """A state that names arrays of its own."""

    def write(path: Path) -> None:
        path.write_bytes(encode("Thing", tree, arrays, str(path)))

    return Hostile(write, says, memory)


def place(*content: object) -> Hostile:
    return state({"array": list(content)})


BYTES: Final = np.zeros(2**20, np.uint8)

TREES: Final = {
    "an unknown tag": state({"object": "os.system"}),
    "a tag of pickle": state({"py/reduce": ["os.system", "touch got-in"]}),
    "two tags": state({"tuple": [], "dict": {}}),
    "no tag": state({}),
    "an unknown tag of control characters": state({"\x1b[2J": 1}),
    "an unknown tag of a hundred thousand characters": state({"x" * 100_000: 1}),
    "a thousand unknown tags": state({str(i): 1 for i in range(10_000)}),
    "a float that is none": state({"float": "1e5"}),
    "a float that is a list": state({"float": [1]}),
    "a tuple that is a text": state({"tuple": "ab"}),
    "a tuple that is an object": state({"tuple": {"a": 1}}),
    "a dict that is a list": state({"dict": [1]}),
    "pairs of one": state({"pairs": [[1]]}),
    "pairs of three": state({"pairs": [[1, 2, 3]]}),
    "pairs with the same key": state({"pairs": [[1, 2], [1, 3]]}),
    "pairs with keys that are equal": state({"pairs": [[1, 2], [True, 3]]}),
    "pairs whose key is a list": state({"pairs": [[[1], 2]]}),
    "pairs whose key is an array": state({"pairs": [[{"array": ["0", 0, [4]]}, 2]]}),
}

PLACES: Final = {
    "on no strip": place("9", 0, [1]),
    "on a strip that is a number": place(0, 0, [1]),
    "that begins before its strip": place("0", -1, [1]),
    "that begins behind its strip": place("0", 2**62, [1]),
    "that ends behind its strip": place("0", 3, [2]),
    "that begins at a fraction": place("0", 0.5, [1]),
    "of a negative shape": place("0", 0, [-1]),
    "of two negative axes": place("0", 0, [-2, -2]),
    "of a huge axis without cells": place("0", 0, [2**62, 0]),
    "of a huge axis": place("0", 0, [2**62]),
    "of a thousand axes": place("0", 0, [1] * 1000),
    "of a shape that is a number": place("0", 0, 4),
    "of a shape of booleans": place("0", 0, [True]),
    "without a shape": place("0", 0),
    "with more than a shape": place("0", 0, [1], 1),
    "that is a text": state({"array": "0"}),
    "that is an object": state({"array": {"0": 1}}),
    "named until they are more than any file": with_arrays(
        [{"array": ["0", i, [2**20 - i]]} for i in range(3000)],
        "arrays together have",
        **{"0": BYTES},
    ),
}

CODES: Final = {
    "that are signed": state({"coded": [["0", 0, [2]], ["0", 0, [4]]]}),
    "without a value": with_arrays(
        {"coded": [["0", 0, [2]], ["1", 0, [1]]]},
        **{"0": np.array([0, 1], np.uint8), "1": np.ones(1)},
    ),
    "of values in two dimensions": with_arrays(
        {"coded": [["0", 0, [2]], ["1", 0, [1, 2]]]},
        **{"0": np.array([0, 1], np.uint8), "1": np.ones(2)},
    ),
    "without values": state({"coded": [["0", 0, [2]]]}),
    "that are a text": state({"coded": "ab"}),
    "that grow to more than two GiB": with_arrays(
        [{"coded": [["0", 0, [2**20 - i]], ["1", 0, [1]]]} for i in range(400)],
        "arrays together have",
        2**31 + MOST_MEMORY,  # as much as a file may be large
        **{"0": BYTES, "1": np.ones(1)},
    ),
}

OBJECTS: Final = {
    "of another kind": state({"objects": ["V", [1], ["a"]]}),
    "of more cells than their shape": state({"objects": ["O", [1], ["a", "b"]]}),
    "of a huge shape": state({"objects": ["O", [2**62], ["a"]]}),
    "of a huge shape without cells": state({"objects": ["O", [2**62, 0], []]}),
    "of a negative shape": state({"objects": ["O", [-1, -1], ["a"]]}),
    "of a shape that is a text": state({"objects": ["O", "1", ["a"]]}),
    "that are a text": state({"objects": ["O", [1], "a"]}),
    "without a shape": state({"objects": ["O"]}),
}

RECORDS: Final = {
    "of no such name": state({"record": ["os", {}]}),
    "of a private name": state({"record": ["__builtins__", {}]}),
    "of a name with a path": state({"record": ["bayesrbf.files.write_whole", {}]}),
    "of a name that is a list": state({"record": [["Fit"], {}]}),
    "of an enumeration": state({"record": ["Status", {}]}),
    "without its fields": state({"record": ["Standardisation", {}]}),
    "with a field more": state(
        {"record": ["Standardisation", {"location": 1, "scale": 1, "x": 1}]}
    ),
    "with a private field": state({"record": ["Standardisation", {"__class__": 1, "scale": 1}]}),
    "with a field of control characters": state({"record": ["Standardisation", {"\x1b[2J": 1}]}),
    "with fields that are a list": state({"record": ["Standardisation", ["location", "scale"]]}),
    "with fields of another type": state(
        {"record": ["Standardisation", {"location": "a", "scale": {"tuple": []}}]}
    ),
    "that is a text": state({"record": "Fit"}),
    "the same as none": state({"same": 0}),
    "the same as one before the first": state({"same": -1}),
    "the same as a boolean": state({"same": False}),
    "the same as a text": state({"same": "0"}),
    "of an enumeration of no such name": state({"enum": ["Enum", "x"]}),
    "of an enumeration without such a value": state({"enum": ["Status", "x"]}),
    "of an enumeration with a list as value": state({"enum": ["Status", []]}),
}

FRAMES: Final = {
    "of another library": state({"frame": ["os", []]}),
    "of a library that is not installed": state({"frame": ["modin", []]}),
    "of a private type": state({"frame": ["pandas", [["a", "__class__"]]]}),
    "of a type that holds others": state({"frame": ["pandas", [["a", "List"]]]}),
    "of columns that are texts": state({"frame": ["pandas", ["ab c"]]}),
    "of columns that are a number": state({"frame": ["pandas", 7]}),
    "of a column of three": state({"frame": ["pandas", [["a", "String", 1]]]}),
    "that is an object": state({"frame": {"pandas": 1}}),
}

CORPUS: Final[dict[str, dict[str, Any]]] = {
    "value": TREES,
    "place of an array": PLACES,
    "codes": CODES,
    "array of texts": OBJECTS,
    "record": RECORDS,
    "frame": FRAMES,
}
