"""From a tree of JSON and numeric arrays, which are not trusted, back to a state."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from bayesrbf.artefact.arrays import StoredArrays
from bayesrbf.artefact.conforming import check_fields
from bayesrbf.artefact.packing import FRAME_DTYPES, FRAMES, StateError
from bayesrbf.public import BESIDE, ESTIMATORS
from bayesrbf.records.stored import STORED, Lawful, require


def unpack(tree: Any, strips: Mapping[str, np.ndarray]) -> Any:
    """Build the state that :func:`pack` took apart; the tree is not trusted.

    StateError where it holds anything outside the table of :mod:`bayesrbf.artefact`.

    >>> from bayesrbf.artefact import pack
    >>> unpack(*pack({"levels": ("a", True, 2, float("inf"))}))
    {'levels': ('a', True, 2, inf)}
    """
    return _unpack(tree, _Read(StoredArrays(strips), []))


class _Read(NamedTuple):
    """Arrays, and the records that were built so far, in the order in which they were finished."""

    arrays: StoredArrays
    records: list[Any]


def _unpack(tree: Any, read: _Read) -> Any:
    """Build one value."""
    if isinstance(tree, list):
        return [_unpack(item, read) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1 or (tag := next(iter(tree))) not in _READERS:
        raise StateError(f"unknown keys {', '.join(sorted(tree)) or '(none)'} in the state")
    try:
        return _READERS[tag](tree[tag], read)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"a {tag!r} of the state is malformed ({error})") from error


def _read_float(content: Any, read: _Read) -> float:
    """A float that JSON cannot write as a number."""
    if content not in ("nan", "inf", "-inf"):
        raise StateError(f"unknown float {content!r} in the state")
    return float(content)


def _read_pairs(content: Any, read: _Read) -> dict[Any, Any]:
    """A dict with other keys; a duplicate key is refused."""
    pairs = [(_unpack(key, read), _unpack(value, read)) for key, value in _list(content)]
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StateError("duplicate keys in the state")
    return result


def _read_objects(content: Any, read: _Read) -> np.ndarray:
    """An array of strings or objects, whose shape must match its listed cells."""
    kind, shape, cells = _list(content)
    values = [_unpack(cell, read) for cell in _list(cells)]
    if kind not in ("O", "U") or math.prod(shape) != len(values) or min(shape, default=0) < 0:
        raise StateError(f"an array of kind {kind!r} and shape {shape} has {len(values)} cells")
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape) if kind == "O" else flat.astype(str).reshape(shape)


def _read_record(content: Any, read: _Read) -> Any:
    """A record with exactly the fields of its class, and within its laws."""
    name, fields = _list(content)
    cls: Any = _class_named(name)
    if cls is None or issubclass(cls, Enum):
        raise StateError(f"unknown record {name!r} in the state")
    if odd := {field.name for field in dataclasses.fields(cls)} ^ set(fields):
        raise StateError(
            f"the record {name} has unknown or missing fields: {', '.join(sorted(odd))}"
        )
    record = cls(**{key: _unpack(value, read) for key, value in fields.items()})
    check_record(record)
    read.records.append(record)
    return record


def _class_named(name: str) -> type | None:
    """The class that files know by a name; it is unknown only after every estimator is there."""
    if name not in STORED:
        for home in (*ESTIMATORS.values(), BESIDE):
            import_module(home)
    return STORED.get(name)


def check_record(record: Any) -> None:
    """ValueError that says what a stored record lacks to be one that a fit makes."""
    check_fields(record)
    if isinstance(record, Lawful):
        require(record.__laws__(), f"a {type(record).__name__}")


def _read_same(content: Any, read: _Read) -> Any:
    """A record that was built before."""
    if type(content) is not int or not 0 <= content < len(read.records):
        raise StateError(f"no record {content!r} comes before the one that is the same")
    return read.records[content]


def _read_enum(content: Any, read: _Read) -> Enum:
    """A member of an enumeration."""
    name, value = _list(content)
    cls = _class_named(name)
    if cls is None or not issubclass(cls, Enum):
        raise StateError(f"unknown enumeration {name!r} in the state")
    return cls(value)


def _read_frame(content: Any, read: _Read) -> Any:
    """An empty frame of a library that is installed."""
    import narwhals.stable.v2 as nw

    library, columns = _list(content)
    if library not in FRAMES or any(dtype not in FRAME_DTYPES for _, dtype in columns):
        raise StateError(f"unknown frame {content!r} in the state")
    names = [tuple(name) if isinstance(name, list) else name for name, _ in columns]
    keys = (
        [str(place) for place in range(len(names))]
        if library == "pandas"
        else list(map(str, names))
    )
    series = {
        key: nw.new_series(key, [], getattr(nw, dtype)(), backend=library)
        for key, (_, dtype) in zip(keys, columns, strict=True)
    }
    frame = nw.from_dict(series).to_native()
    if library == "pandas":
        frame.columns = names
    return frame


def _list(content: Any) -> list[Any]:
    """The content, which must be a list: a string or dict could pass for one."""
    if not isinstance(content, list):
        raise StateError(f"a list was expected in the state, received {type(content).__name__}")
    return content


_READERS: Final[Mapping[str, Callable[[Any, _Read], Any]]] = {
    "float": _read_float,
    "tuple": lambda content, read: tuple(_unpack(item, read) for item in _list(content)),
    "dict": lambda content, read: {k: _unpack(v, read) for k, v in content.items()},
    "pairs": _read_pairs,
    "array": lambda content, read: read.arrays.at(content),
    "coded": lambda content, read: read.arrays.decoded(content),
    "coded single": lambda content, read: read.arrays.decoded_widened(content),
    "single": lambda content, read: read.arrays.widened(content),
    "objects": _read_objects,
    "record": _read_record,
    "same": _read_same,
    "enum": _read_enum,
    "frame": _read_frame,
}
