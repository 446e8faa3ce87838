"""From a state to a tree for JSON with numeric arrays beside it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe

from bayesrbf.artefact.arrays import PackedArrays
from bayesrbf.records.stored import STORED

FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def pack(state: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a state into a tree for ``json.dumps`` and one strip of numbers for each dtype.

    The values are those in the table of :mod:`bayesrbf.artefact`; StateError names the place of any
    other.

    >>> pack({"scale": np.ones(2), "cv": None})[0]
    {'dict': {'scale': {'array': ['0', 0, [2]]}, 'cv': None}}
    """
    store = _Store()
    return _pack(state, "state", store), store.arrays.strips


@dataclasses.dataclass
class _Store:
    """Everything packed so far; equal arrays and equal records are stored once."""

    arrays: PackedArrays = dataclasses.field(default_factory=PackedArrays)
    records: dict[str, int] = dataclasses.field(default_factory=dict)
    """Number of every record by its JSON, in the order in which they were finished."""
    numbers: dict[int, int] = dataclasses.field(default_factory=dict)
    """Number of every record by the identity of its packed form, which the tree keeps alive."""


def _pack(value: Any, where: str, store: _Store) -> Any:
    """One value as JSON; ``where`` is its path, for the message."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, where, store)
    if isinstance(value, list | tuple):
        items = [_pack(item, f"{where}[{i}]", store) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        return _pack_mapping(value, where, store)
    if STORED.get(type(value).__name__) is type(value):  # the class itself, not only its name
        if isinstance(value, Enum):
            return {"enum": [type(value).__name__, value.value]}
        return _pack_record(value, where, store)
    if is_into_dataframe(value):
        return {"frame": _pack_frame(value, where)}
    raise StateError(
        f"{where} is a {type(value).__name__}, which a file cannot hold; use numbers, strings, "
        "None, arrays, or lists and dicts of them (for random_state: an int or None)."
    )


def _pack_array(value: np.ndarray, where: str, store: _Store) -> dict[str, Any]:
    """A numeric array beside the tree, an array of strings or objects inside it."""
    if value.dtype.kind in "OU":
        cells = [_pack(cell, where, store) for cell in value.ravel().tolist()]
        return {"objects": [value.dtype.kind, list(value.shape), cells]}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise StateError(
            f"{where} is an array of dtype {value.dtype}, which a file cannot hold; "
            "convert it to float64, int64 or bool."
        )
    # safetensors writes bytes as they are: only C order and little-endian read back right.
    return store.arrays.node(np.array(value, dtype=value.dtype.newbyteorder("<"), order="C"))


def _pack_mapping(value: Mapping[Any, Any], where: str, store: _Store) -> dict[str, Any]:
    """A dict: an object of JSON where all keys are strings, else a list of pairs."""
    if all(type(key) is str for key in value):
        return {"dict": {k: _pack(v, f"{where}.{k}", store) for k, v in value.items()}}
    pairs = [[_pack(k, where, store), _pack(v, f"{where}[{k!r}]", store)] for k, v in value.items()]
    return {"pairs": pairs}


def _pack_record(value: Any, where: str, store: _Store) -> dict[str, Any]:
    """A record, or the number of an equal one that was packed before."""
    packed = {"record": [type(value).__name__, _pack_fields(value, where, store)]}
    number = len(store.records)
    first = store.records.setdefault(json.dumps(_numbered(packed, store)), number)
    if first < number:
        return {"same": first}
    store.numbers[id(packed)] = number
    return packed


def _numbered(tree: Any, store: _Store) -> Any:
    """A tree with numbers in the place of its records: one text for all that are equal."""
    if isinstance(tree, list):
        return [_numbered(item, store) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if id(tree) in store.numbers:
        return {"same": store.numbers[id(tree)]}
    return {key: _numbered(item, store) for key, item in tree.items()}


def _pack_fields(value: Any, where: str, store: _Store) -> dict[str, Any]:
    """The fields of a record, by name."""
    names = [field.name for field in dataclasses.fields(value)]
    return {name: _pack(getattr(value, name), f"{where}.{name}", store) for name in names}


def _pack_frame(value: Any, where: str) -> list[Any]:
    """A frame without rows: library, column names and dtypes."""
    import narwhals.stable.v2 as nw

    frame = nw.from_native(value, eager_only=True)
    library = frame.implementation.value
    if len(frame) or library not in FRAMES:
        raise StateError(
            f"{where} is a {library} frame of {len(frame)} rows, which a file cannot hold; "
            f"only empty frames of {' or '.join(FRAMES)} can be stored."
        )
    dtypes = [type(dtype).__name__ for dtype in frame.schema.values()]
    dtypes = ["Categorical" if dtype == "Enum" else dtype for dtype in dtypes]
    stored = [dtype if dtype in FRAME_DTYPES else "String" for dtype in dtypes]
    return [library, [list(pair) for pair in zip(map(_title, frame.columns), stored, strict=True)]]


def _title(name: object) -> object:
    """The name of a column as JSON has it: a list for a tuple, text for what is no plain value."""
    if isinstance(name, tuple):
        return list(map(_title, name))
    return name if isinstance(name, str | int | float) else str(name)
