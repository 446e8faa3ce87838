"""The file of an estimator: a state as JSON and arrays, written and read without running code.

Everything that a fitted estimator holds is written with the values below. Reading
builds only these, whatever the text says: of classes, those that are ``@stored`` by name.

================ ==========================================================
value            in JSON
================ ==========================================================
None, bool, int, themselves
str, float
nan, inf         ``{"float": "nan"}``
list             a list
tuple            ``{"tuple": [...]}``
dict             ``{"dict": {...}}``, ``{"pairs": [[key, value], ...]}`` for
                 keys that are no strings
numeric array    ``{"array": ["0", 30, [2, 3]]}``: six numbers of the first
                 strip beside the JSON, which begin behind 30 others
of few values    ``{"coded": [place, place]}``: for every cell the number
                 of its value; the values
held in single   ``{"single": place}``: doubles whose bits single precision
precision        holds; ``{"coded single": [place, place]}`` where they are few
array of objects ``{"objects": ["O" or "U", shape, [...]]}``
record           ``{"record": ["Columns", {field: value}]}``
equal record     ``{"same": 3}``: the fourth record that was finished
Status           ``{"enum": ["Status", "converged"]}``
empty frame      ``{"frame": ["pandas", [[name, dtype], ...]]}``
================ ==========================================================
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import (
    Any,
    BinaryIO,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    no_type_check,
)

import numpy as np
import safetensors
import safetensors.numpy
from jaxtyping import AbstractArray, jaxtyped
from narwhals.stable.v2.dependencies import is_into_dataframe

from bayesrbf.base.files import check_regular, write_whole
from bayesrbf.base.records import ANY_NUMBER, STORED, Lawful, require
from bayesrbf.public import BESIDE, ESTIMATORS

# Arrays laid end to end, one strip for each dtype; what repeats is stored once.


Location = list[Any]
"""Name of the strip, number of cells before the array, and its shape."""

ENTRY: Final = 64
"""Approximate bytes of one location in the JSON: encodings that save fewer do not pay."""
MAX_READ: Final = 2**31
"""Maximum bytes of all decoded arrays of a file: coded arrays could expand without bound."""


class PackedArrays:
    """The arrays of one file, during packing.

    An array of few different values is stored as those values, and for every cell the number of
    its value, both in the order of their first appearance. Doubles that single precision holds bit
    by bit, cells or values, are stored in it. What draws derive from the same rows has other
    values and the same numbers, which are then stored once.
    """

    def __init__(self) -> None:
        self._locations: dict[tuple[str, tuple[int, ...], bytes], Location] = {}
        self._parts: dict[str, list[np.ndarray]] = {}
        self._lengths: dict[str, int] = {}
        self._nodes: dict[tuple[str, tuple[int, ...], bytes], dict[str, Any]] = {}

    def node(self, array: np.ndarray) -> dict[str, Any]:
        """JSON node that refers to an array, which is stored unless an equal array is.

        The array must be little-endian and in C order. The only key of the node is the encoding:
        "array", "single", "coded" or "coded single".
        """
        key = _key(array)
        if key not in self._nodes:
            coded = _coded(array)
            if coded is not None:
                numbers, values = coded
                kind = "coded single" if _is_single(values) else "coded"
                self._nodes[key] = {kind: [self._append(numbers), self._append(_narrowed(values))]}
            elif _is_single(array):
                self._nodes[key] = {"single": self._append(_narrowed(array))}
            else:
                self._nodes[key] = {"array": self._append(array)}
        return self._nodes[key]

    def _append(self, array: np.ndarray) -> Location:
        """Location of an array, appended to its strip unless an equal array is stored."""
        key = _key(array)
        if key not in self._locations:
            start = self._lengths.get(array.dtype.str, 0)
            self._parts.setdefault(array.dtype.str, []).append(array.ravel())
            self._lengths[array.dtype.str] = start + array.size
            strip = str(list(self._parts).index(array.dtype.str))
            self._locations[key] = [strip, start, list(array.shape)]
        return self._locations[key]

    @property
    def strips(self) -> dict[str, np.ndarray]:
        """One long array for each dtype."""
        return {str(i): np.concatenate(arrays) for i, arrays in enumerate(self._parts.values())}


class StoredArrays:
    """Arrays of one file, read from locations that are not trusted.

    The same node is the same array, which owns its memory.
    """

    def __init__(self, strips: Mapping[str, np.ndarray]) -> None:
        self._strips = strips
        self._read: dict[str, np.ndarray] = {}
        self._left = sum(strip.nbytes for strip in strips.values())
        self._left_decoded = MAX_READ

    def of(self, kind: str, content: Any) -> np.ndarray:
        """The array of a node of this kind; a repeated node gives the same array."""
        key = f"{kind} {content}"
        if key not in self._read:
            self._read[key] = self._made(kind, content)
        return self._read[key]

    def _made(self, kind: str, content: Any) -> np.ndarray:
        """New array with the cells that a node refers to; ValueError if the content is malformed.

        ``kind`` is "array", "single" (widened to doubles), or "coded" or "coded single" (indices of
        cells among distinct values, and these values).
        """
        if kind == "array":
            return self._copy(self._cells(content))
        if kind == "single":
            return self._widened(content)
        numbers_at, values_at = _checked_list(content, 2)
        numbers = self._cells(numbers_at)
        values = self._cells(values_at) if kind == "coded" else self._widened(values_at)
        return self._decoded(numbers, values)

    def _widened(self, location: Any) -> np.ndarray:
        """Cells in single precision as doubles."""
        cells = self._cells(location)
        if cells.dtype != np.dtype("<f4"):
            raise ValueError("its cells are not in single precision")
        self._decoding(2 * cells.nbytes)
        return cells.astype("<f8")

    def _decoded(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Value of every cell, ``values[numbers]``; ValueError unless all numbers are indices."""
        if numbers.dtype.kind != "u" or values.ndim != 1:
            raise ValueError("its numbers are not unsigned, or its values no list")
        if numbers.size and int(numbers.max()) >= values.size:
            raise ValueError("a number without a value")
        self._decoding(numbers.size * values.itemsize)
        return values[numbers]

    def _decoding(self, n_bytes: int) -> None:
        """Refuse more decoded bytes than a file may have: coded arrays expand."""
        self._left_decoded -= n_bytes
        if self._left_decoded < 0:
            raise ValueError(f"all arrays together have more than {MAX_READ} bytes")

    def _copy(self, cells: np.ndarray) -> np.ndarray:
        """A copy with memory of its own; distinct arrays share no cells, which bounds the bytes."""
        self._left -= cells.nbytes
        if self._left < 0:
            raise ValueError("all arrays together have more bytes than are stored")
        return cells.copy()

    def _cells(self, location: Any) -> np.ndarray:
        """View of the cells at a location, in its shape.

        ValueError if the location is malformed or reaches beyond its strip.
        """
        name, start, shape = _checked_list(location, 3)
        if not all(type(n) is int and n >= 0 for n in [start, *_checked_list(shape)]):
            raise ValueError(
                f"{location} is no place: it needs a start and a shape of whole numbers"
            )
        strip, size = self._strips[name], math.prod(shape)
        if start + size > strip.size:
            raise ValueError(f"{location} reaches beyond its {strip.size} cells")
        return strip[start : start + size].reshape(shape)


def _key(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    """Key of an array's dtype, shape and bits; -0.0 differs from 0.0."""
    return array.dtype.str, array.shape, hashlib.sha256(array).digest()


def _is_single(array: np.ndarray) -> bool:
    """Whether single precision holds all doubles of an array bit by bit, and takes less."""
    if array.dtype != np.dtype("<f8") or array.nbytes <= ENTRY:
        return False
    # Doubles beyond single precision change, which the comparison finds.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        again = array.astype("<f4").astype("<f8")
    return bool(np.array_equal(again.view("<u8"), array.view("<u8")))


def _narrowed(array: np.ndarray) -> np.ndarray:
    """Doubles as single precision where exact; any other array unchanged."""
    return array.astype("<f4") if _is_single(array) else array


def _coded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Index of each cell among the distinct values, and the values; None where that is larger.

    Values are distinct by their bits, and in the order of their first appearance.
    """
    if array.itemsize == 1 or array.size * array.itemsize <= ENTRY:
        return None
    flat = array.ravel()
    _, first, inverse = np.unique(
        flat.view(f"<u{array.itemsize}"), return_index=True, return_inverse=True
    )
    numbers_type = np.min_scalar_type(first.size - 1).newbyteorder("<")
    size = array.size * numbers_type.itemsize + first.size * array.itemsize
    if size + ENTRY >= array.nbytes:
        return None
    rank = np.empty(first.size, numbers_type)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse].reshape(array.shape), flat[np.sort(first)]


def _checked_list(content: Any, length: int | None = None) -> list[Any]:
    """The content, which must be a list, of a length."""
    if not isinstance(content, list) or (length is not None and len(content) != length):
        raise ValueError(f"a list was expected, received {content!r}"[:80])
    return content


# Checks stored records: fields have their declared types and shapes, and numbers are finite.


EXACT: Final = {"float64", "int64", "bool"}
"""Dtypes of arrays declared as reals, whole numbers or booleans: kernels read no others."""


@cache
def declared(kind: Any) -> dict[str, Any]:
    """The types of the fields of a record."""
    # Python 3.12 does not look up the type parameters of a class by itself.
    parameters = {parameter.__name__: parameter for parameter in kind.__type_params__}
    hints = get_type_hints(kind, localns=parameters)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def check_fields(record: Any) -> None:
    """ValueError unless each field has its declared type and the arrays agree in their shapes.

    Numbers must be finite unless their field may hold any number.
    """
    kind: Any = type(record)
    types = declared(kind)
    with jaxtyped("context"):  # in which one name is one length
        for field in dataclasses.fields(record):
            value, annotation = getattr(record, field.name), types[field.name]
            if not conforms(value, annotation):
                raise ValueError(f"{kind.__name__}.{field.name} is no {_words(annotation)}")
            if field.metadata != ANY_NUMBER and not all_finite(value):
                raise ValueError(f"{kind.__name__}.{field.name} holds NaN or infinity")


@no_type_check  # a check of its own would hide the lengths of the context from it
def conforms(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type, contents of tuples and mappings included.

    >>> conforms((1, 2), tuple[int, ...]), conforms((1, True), tuple[int, ...])
    (True, False)
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, object):
        return True
    if isinstance(annotation, TypeVar):
        return conforms(value, annotation.__bound__ or object)
    if annotation in (None, NoneType):
        return value is None
    if annotation is float:
        return type(value) in (int, float)
    if annotation in (int, bool, str):
        return type(value) is annotation
    if origin is Literal:
        return isinstance(value, str) and value in arguments
    if origin in (Union, UnionType):
        return any(conforms(value, argument) for argument in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _are(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(key, arguments[0]) and conforms(item, arguments[1])
            for key, item in value.items()
        )
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return isinstance(value, annotation) and _exact(value, annotation)
    plain = annotation if origin is None else origin
    return isinstance(plain, type) and isinstance(value, plain)


def all_finite(value: Any) -> bool:
    """Whether no number in arrays, tuples and mappings is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, tuple | list):
        return all(map(all_finite, value))
    return not isinstance(value, Mapping) or all(map(all_finite, value.values()))


@no_type_check
def _are(values: tuple[Any, ...], annotations: tuple[Any, ...]) -> bool:
    """Whether the items of a tuple are of its types."""
    if annotations[1:] == (...,):
        return all(conforms(value, annotations[0]) for value in values)
    return len(values) == len(annotations) and all(map(conforms, values, annotations))


def _exact(value: Any, annotation: Any) -> bool:
    """Whether the dtype is exactly the declared one; an annotation of several accepts each."""
    named = annotation.dtypes if isinstance(annotation.dtypes, tuple) else ()
    return len(EXACT.intersection(named)) != 1 or value.dtype.name in EXACT


def _words(annotation: Any) -> str:
    """A type in words."""
    return getattr(annotation, "__name__", str(annotation)).replace("jaxtyping.", "")


# From a state to a tree for JSON with numeric arrays beside it.


FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical", "Datetime")
ALIKE: Final = {"Enum": "Categorical", "Date": "Datetime"}
"""Dtypes stored as another dtype that accepts the same cells."""


class StateError(ValueError):
    """A value that a file cannot store, or stored text that is not a state."""


class OtherVersionError(StateError):
    """A record or field of an intact file that this version does not know, or does not find."""


def pack(state: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a state into a tree for ``json.dumps`` and one strip of numbers for each dtype.

    The values are those in the table of this module; StateError names the place of any other.

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
    """JSON of a value, whose arrays and records go into ``store``.

    ``where`` is the path of the value, for error messages. StateError if a file cannot hold it.
    """
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
        "None, arrays, or lists and dicts of them (for random_state: an int or None). Pickle an "
        "estimator that holds one of another library."
    )


def _pack_array(value: np.ndarray, where: str, store: _Store) -> dict[str, Any]:
    """JSON node of an array: numbers go into strips, strings and objects into the node itself.

    StateError for any other dtype.
    """
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
    """JSON node of a record; ``{"same": number}`` if an equal record was packed before."""
    packed = {"record": [type(value).__name__, _pack_fields(value, where, store)]}
    number = len(store.records)
    first = store.records.setdefault(json.dumps(_numbered(packed, store)), number)
    if first < number:
        return {"same": first}
    store.numbers[id(packed)] = number
    return packed


def _numbered(tree: Any, store: _Store) -> Any:
    """A tree with each record replaced by its number, so that equal trees give equal text."""
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
    """Library of a frame without rows, and a pair [name, dtype] for each column.

    StateError if the frame has rows or is of another library.
    """
    import narwhals.stable.v2 as nw

    frame = nw.from_native(value, eager_only=True)
    library = frame.implementation.value
    if len(frame) or library not in FRAMES:
        raise StateError(
            f"{where} is a {library} frame of {len(frame)} rows, which a file cannot hold; "
            f"only empty frames of {' or '.join(FRAMES)} can be stored."
        )
    dtypes = [type(dtype).__name__ for dtype in frame.schema.values()]
    dtypes = [ALIKE.get(dtype, dtype) for dtype in dtypes]
    stored = [dtype if dtype in FRAME_DTYPES else "String" for dtype in dtypes]
    return [library, [list(pair) for pair in zip(map(_title, frame.columns), stored, strict=True)]]


def _title(name: object) -> object:
    """Name of a column for JSON: tuples as lists, any other object as text."""
    if isinstance(name, tuple):
        return list(map(_title, name))
    return name if isinstance(name, str | int | float) else str(name)


# JSON that somebody else wrote, read strictly and without recursion.


STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, up to the end of the text if unclosed; possessive, so that matching is linear."""
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def depth(text: str) -> int:
    """Depth of brackets outside strings, without recursion."""
    outside = STRING.sub("", text).encode("ascii", "replace")
    steps = _STEPS[np.frombuffer(outside, np.uint8)]
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def strict_json(text: str, most_depth: int) -> Any:
    """JSON of bounded depth without duplicate keys, NaN, Infinity or overflowing numbers."""
    if depth(text) > most_depth:
        raise StateError(f"its JSON is nested deeper than {most_depth} levels")
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys are distinct."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StateError("an object of its JSON has duplicate keys")
    return result


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise StateError(f"its JSON holds {constant}")


def _finite(text: str) -> float:
    """A float that does not overflow."""
    value = float(text)
    if not math.isfinite(value):
        raise StateError(f"its JSON holds the number {text}")
    return value


# From a tree of JSON and numeric arrays, which are not trusted, back to a state.


def unpack(tree: Any, strips: Mapping[str, np.ndarray]) -> Any:
    """Rebuild the state that :func:`pack` split, from an untrusted tree.

    StateError where it holds anything outside the table of this module.

    >>> from bayesrbf.base.artefact import pack
    >>> unpack(*pack({"levels": ("a", True, 2, float("inf"))}))
    {'levels': ('a', True, 2, inf)}
    """
    return _unpack(tree, _Read(StoredArrays(strips), []))


class _Read(NamedTuple):
    """Arrays and records built so far, in the order of completion."""

    arrays: StoredArrays
    records: list[Any]


def _unpack(tree: Any, read: _Read) -> Any:
    """Value that a JSON tree stands for; StateError if the tree is malformed.

    Records that are built are appended to ``read.records``.
    """
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
    """Array of strings (kind U) or objects (kind O); StateError if shape and cells disagree."""
    kind, shape, cells = _list(content)
    values = [_unpack(cell, read) for cell in _list(cells)]
    if kind not in ("O", "U") or math.prod(shape) != len(values) or min(shape, default=0) < 0:
        raise StateError(f"an array of kind {kind!r} and shape {shape} has {len(values)} cells")
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape) if kind == "O" else flat.astype(str).reshape(shape)


def _read_record(content: Any, read: _Read) -> Any:
    """Record with the fields of its class, checked, and appended to ``read.records``.

    A field that has a default may be absent: an older version did not know it. OtherVersionError if
    the class or a field is unknown, or another field is absent.
    """
    name, fields = _list(content)
    cls: Any = _class_named(name)
    if cls is None or issubclass(cls, Enum):
        raise OtherVersionError(f"has the unknown record {name!r}")
    known = {field.name: _has_default(field) for field in dataclasses.fields(cls)}
    if unknown := set(fields) - set(known):
        raise OtherVersionError(f"has unknown fields of a {name}: {', '.join(sorted(unknown))}")
    needed = {name for name, has_default in known.items() if not has_default}
    if lacking := needed - set(fields):
        raise OtherVersionError(f"lacks fields of a {name}: {', '.join(sorted(lacking))}")
    record = cls(**{key: _unpack(value, read) for key, value in fields.items()})
    check_record(record)
    read.records.append(record)
    return record


def _has_default(field: dataclasses.Field[Any]) -> bool:
    """Whether a record can be made without a field."""
    absent = dataclasses.MISSING
    return field.default is not absent or field.default_factory is not absent


def _class_named(name: str) -> type | None:
    """The stored class of this name, after importing every estimator if needed; else None."""
    if name not in STORED:
        for home in (*ESTIMATORS.values(), BESIDE):
            import_module(home)
    return STORED.get(name)


def check_record(record: Any) -> None:
    """ValueError that names the requirement that a stored record fails."""
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
        raise OtherVersionError(f"has the unknown enumeration {name!r}")
    return cls(value)


def _read_frame(content: Any, read: _Read) -> Any:
    """Frame of pandas or polars without rows; StateError if library or dtypes are unknown."""
    import narwhals.stable.v2 as nw

    library, columns = _list(content)
    if library not in FRAMES or any(dtype not in FRAME_DTYPES for _, dtype in columns):
        raise StateError(f"unknown frame {content!r} in the state")
    names = [tuple(name) if isinstance(name, list) else name for name, _ in columns]
    keys = (
        [str(position) for position in range(len(names))]
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
    """The content, which must be a list; strings and dicts are refused, though they iterate."""
    if not isinstance(content, list):
        raise StateError(f"a list was expected in the state, received {type(content).__name__}")
    return content


_READERS: Final[Mapping[str, Callable[[Any, _Read], Any]]] = {
    "float": _read_float,
    "tuple": lambda content, read: tuple(_unpack(item, read) for item in _list(content)),
    "dict": lambda content, read: {k: _unpack(v, read) for k, v in content.items()},
    "pairs": _read_pairs,
    "array": lambda content, read: read.arrays.of("array", content),
    "coded": lambda content, read: read.arrays.of("coded", content),
    "coded single": lambda content, read: read.arrays.of("coded single", content),
    "single": lambda content, read: read.arrays.of("single", content),
    "objects": _read_objects,
    "record": _read_record,
    "same": _read_same,
    "enum": _read_enum,
    "frame": _read_frame,
}


# The artefact: one .safetensors file that holds a state and runs nothing.
#
# Arrays are in the file's data section, everything else in one JSON manifest in its metadata, with
# the protocol number first. Reading checks before it builds: sizes, depth, keys, names, dtypes,
# shapes, and a SHA-256 of every byte of the file, taken with zeros in the place of its own digits.


PROTOCOL: Final = 4
"""Rises where files of earlier versions are no longer read, or no longer mean the same.

A field with a default, a record or an argument that is added needs no other protocol: files without
it are read as before, and earlier versions refuse a file with it by its name.
"""
MANIFEST: Final = "bayesrbf"
MAX_BYTES: Final = 2**20
"""Most bytes of the manifest; the header, which contains it escaped, may have four times that."""
MAX_DEPTH: Final = 40
"""Maximum nesting of the JSON, far below Python's recursion limit."""
MAX_ARRAYS: Final = 10_000
"""Maximum number of arrays and of references to arrays."""
MAX_FILE: Final = 2**31
"""Maximum bytes of a file, which is read into memory whole."""
MAX_SHOWN: Final = 500
"""Maximum characters of a file that an error repeats."""

_NODE: Final = re.compile(r'\{"(?:array|coded|coded single|single)":')
"""Start of a node that refers to an array."""
_SEAL: Final = b'\\"sha256\\":\\"'
"""Text in front of the digest in the file; its first occurrence, as texts are escaped twice."""
_NONE: Final = "0" * 64
"""Placeholder of the digest while it is computed."""

DTYPES: Final = {
    "BOOL": np.dtype(bool),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
}


class ArtefactError(ValueError):
    """A file that is no artefact, is damaged, or was written by another protocol."""


def shown(message: object) -> str:
    """A message on one line, without characters that control a terminal."""
    text = str(message)[:MAX_SHOWN]
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def of_other_version(path: str | os.PathLike[str], problem: object) -> ArtefactError:
    """Error on a problem of an intact file from another version, with a remedy."""
    return ArtefactError(
        f"{path} {shown(problem)}. It is not of this version of bayesrbf: load it with the version "
        "that wrote it, or fit again and save the fit with this one."
    )


def save_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> str:
    """Write a state to one file, whole or not at all, and return its SHA-256.

    ArtefactError where the state exceeds the limits of the format, ValueError where it holds
    something that a file cannot.
    """
    content = encode(kind, *pack(state), str(path))
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()


def encode(kind: str, tree: Any, arrays: dict[str, np.ndarray], path: str) -> bytes:
    """Content of a file in safetensors' format: arrays, and a manifest with the state and a seal.

    ArtefactError beyond the limits of a file; ``path`` is for its message.
    """
    manifest = {
        "protocol": PROTOCOL,
        "kind": kind,
        "sha256": _NONE,
        "arrays": {name: _description(array) for name, array in arrays.items()},
        "state": tree,
    }
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":"))
    content: bytes = safetensors.numpy.save(arrays, metadata={MANIFEST: text})
    _check_limits(text, len(arrays), len(content), path)
    return content.replace(_SEAL + _NONE.encode(), _SEAL + seal(content).encode(), 1)


def seal(content: bytes) -> str:
    """SHA-256 of a file's bytes with zeros in place of the digest that it contains."""
    start = content.find(_SEAL) + len(_SEAL)
    hashed = hashlib.sha256(content[:start] + _NONE.encode())
    hashed.update(memoryview(content)[start + len(_NONE) :])
    return hashed.hexdigest()


def load_state(path: str | os.PathLike[str], digest: str | None = None) -> tuple[str, Any]:
    """Read the kind and the state that :func:`save_state` wrote.

    ArtefactError where the file is damaged, is no artefact, or has another digest than the given
    one.
    """
    check_regular(path, ArtefactError)
    try:
        with open(path, "rb") as file:
            manifest, content = _read(file, str(path))
        actual = hashlib.sha256(content).hexdigest()
        if digest is not None and digest.lower() != actual:
            raise ArtefactError(f"{path} must have the SHA-256 {digest}, but has {actual}.")
        if seal(content) != manifest["sha256"]:
            raise StateError("its bytes do not have the SHA-256 of its manifest")
        arrays = {name: _array(name, entry) for name, entry in _deserialize(content)}
        kind = manifest["kind"]
        if kind in ESTIMATORS:  # whose module brings the records of its files
            import_module(ESTIMATORS[kind])
        return kind, unpack(manifest["state"], arrays)
    except OtherVersionError as error:
        raise of_other_version(path, error) from error
    except (StateError, safetensors.SafetensorError, RecursionError) as error:
        message = f"{path} is damaged or no artefact of bayesrbf: {shown(error)}."
        raise ArtefactError(message) from error


def _read(file: BinaryIO, path: str) -> tuple[dict[str, Any], bytes]:
    """Manifest and all bytes of a file; the data are read only if the header describes them."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)  # safetensors: the length of the header, little-endian
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, 4 * MAX_BYTES):
        raise StateError("its header is cut short or too long")
    text = file.read(length)
    header, manifest = _read_header(text, size, path)
    _check_arrays(header, manifest["arrays"], size - 8 - length)
    return manifest, start + text + file.read()


def _read_header(content: bytes, size: int, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries of the arrays, and the manifest, both read strictly; the file has this size."""
    try:
        header = strict_json(content.decode("utf-8"), MAX_DEPTH)
        text = header.pop("__metadata__")[MANIFEST]
        _check_limits(text, len(header), size, path)
        manifest = strict_json(text, MAX_DEPTH)
        protocol = manifest["protocol"]
    except (ArtefactError, StateError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(f"its manifest cannot be read ({error!r})") from error
    if protocol != PROTOCOL or type(protocol) is not int:
        raise ArtefactError(
            f"{path} was written by protocol {shown(protocol)}, this version reads {PROTOCOL}; "
            "use the version of bayesrbf that wrote it."
        )
    if list(manifest) != ["protocol", "kind", "sha256", "arrays", "state"]:
        raise StateError(f"its manifest has unknown or missing keys: {', '.join(manifest)}")
    if not isinstance(manifest["kind"], str):
        raise StateError(f"its kind is {manifest['kind']!r}, which is no name")
    return header, manifest


def _check_limits(text: str, n_arrays: int, size: int, path: str) -> None:
    """ArtefactError if a file, its manifest ``text``, nesting or number of arrays is too large."""
    for count, most, unit in (
        (size, MAX_FILE, "bytes"),
        (len(text.encode()), MAX_BYTES, "bytes of manifest"),
        (depth(text), MAX_DEPTH, "levels of nesting"),
        (n_arrays + len(_NODE.findall(text)), MAX_ARRAYS, "arrays"),
    ):
        if count > most:
            raise ArtefactError(f"{path} may have at most {most} {unit}; it has {count}.")


def _description(array: np.ndarray) -> list[Any]:
    """Dtype and shape of an array, as the manifest states them."""
    name = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    return [name, list(array.shape)]


def _check_arrays(header: dict[str, Any], described: Any, n_bytes: int) -> None:
    """StateError if arrays differ from the manifest, or their dtypes and shapes from the data."""
    if not isinstance(described, dict) or set(described) != set(header):
        raise StateError("its arrays are not those of its manifest")
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise StateError(f"the header of its array {name!r} has unknown or missing keys")
        dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if described[name] != [dtype, shape] or dtype not in list(DTYPES):
            raise StateError(f"its array {name!r} is not as the manifest describes it")
        both_lists = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
        if not both_lists or not all(type(n) is int and n >= 0 for n in shape + offsets):
            raise StateError(f"its array {name!r} has a negative shape or offset")
        if math.prod(shape) * DTYPES[dtype].itemsize != offsets[1] - offsets[0]:
            raise StateError(f"its array {name!r} has {offsets} as offsets of shape {shape}")
    if max((entry["data_offsets"][1] for entry in header.values()), default=0) != n_bytes:
        raise StateError(f"its arrays do not fill its {n_bytes} bytes of data")


_deserialize: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = safetensors.deserialize


def _array(name: str, entry: dict[str, Any]) -> np.ndarray:
    """Array with memory of its own, from an entry that safetensors deserialised."""
    if entry["dtype"] == "BOOL" and max(entry["data"], default=0) > 1:
        raise StateError(f"its array {name!r} holds booleans that are neither 0 nor 1")
    return np.frombuffer(entry["data"], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
