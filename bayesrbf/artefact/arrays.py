"""Arrays laid end to end, one strip for each dtype; what repeats is stored once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

Place = list[Any]
"""Name of the strip, number of cells before the array, and its shape."""

ENTRY: Final = 64
"""Bytes, nearly, that one place takes in the JSON."""
MOST_READ: Final = 2**31
"""Bytes of all arrays of a file together."""


class PackedArrays:
    """The arrays of one file while they are being packed.

    An array of few different values is stored as those values, and for every cell the number of
    its value, both in the order of their first appearance. Doubles that single precision holds bit
    by bit, cells or values, are stored in it. What draws derive from the same rows has other
    values and the same numbers, which are then stored once.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[str, tuple[int, ...], bytes], Place] = {}
        self._parts: dict[str, list[np.ndarray]] = {}
        self._lengths: dict[str, int] = {}
        self._nodes: dict[tuple[str, tuple[int, ...], bytes], dict[str, Any]] = {}

    def node(self, array: np.ndarray) -> dict[str, Any]:
        """Where a little-endian array in C order is stored, as JSON."""
        key = _key(array)
        if key not in self._nodes:
            coded = _coded(array)
            if coded is not None:
                numbers, values = coded
                kind = "coded single" if _is_single(values) else "coded"
                self._nodes[key] = {kind: [self._place(numbers), self._place(_narrowed(values))]}
            elif _is_single(array):
                self._nodes[key] = {"single": self._place(_narrowed(array))}
            else:
                self._nodes[key] = {"array": self._place(array)}
        return self._nodes[key]

    def _place(self, array: np.ndarray) -> Place:
        """Put an array at the end of its strip, if no equal one was."""
        key = _key(array)
        if key not in self._places:
            start = self._lengths.get(array.dtype.str, 0)
            self._parts.setdefault(array.dtype.str, []).append(array.ravel())
            self._lengths[array.dtype.str] = start + array.size
            strip = str(list(self._parts).index(array.dtype.str))
            self._places[key] = [strip, start, list(array.shape)]
        return self._places[key]

    @property
    def strips(self) -> dict[str, np.ndarray]:
        """One long array for each dtype."""
        return {str(i): np.concatenate(parts) for i, parts in enumerate(self._parts.values())}


class StoredArrays:
    """Arrays of one file as they are read; places are not trusted.

    The same node is the same array, which owns its memory.
    """

    def __init__(self, strips: Mapping[str, np.ndarray]) -> None:
        self._strips = strips
        self._read: dict[str, np.ndarray] = {}
        self._left = sum(strip.nbytes for strip in strips.values())
        self._left_decoded = MOST_READ

    def at(self, place: Any) -> np.ndarray:
        """The array at a place."""
        return self._once(str(place), lambda: self._copy(self._cells(place)))

    def decoded(self, places: Any) -> np.ndarray:
        """The array of which numbers and values are at two places."""
        return self._once(str(places), lambda: self._decode(*_list(places, 2)))

    def decoded_widened(self, places: Any) -> np.ndarray:
        """The array of doubles of which numbers, and values in single precision, are at places."""
        return self._once(f"single {places}", lambda: self._decode_widened(*_list(places, 2)))

    def widened(self, place: Any) -> np.ndarray:
        """The doubles that stand in single precision at a place."""
        return self._once(f"single {place}", lambda: self._widen(place))

    def _widen(self, place: Any) -> np.ndarray:
        """Cells in single precision as doubles."""
        cells = self._cells(place)
        if cells.dtype != np.dtype("<f4"):
            raise ValueError("its cells are not in single precision")
        self._decoding(2 * cells.nbytes)
        return cells.astype("<f8")

    def _decode_widened(self, numbers_at: Any, values_at: Any) -> np.ndarray:
        """For every cell the double that the value of its number widens to."""
        return self._decode_values(self._cells(numbers_at), self._widen(values_at))

    def _once(self, key: str, read: Callable[[], np.ndarray]) -> np.ndarray:
        """An array that is read once, however often it is named."""
        if key not in self._read:
            self._read[key] = read()
        return self._read[key]

    def _decode(self, numbers_at: Any, values_at: Any) -> np.ndarray:
        """For every cell the value that its number has."""
        return self._decode_values(self._cells(numbers_at), self._cells(values_at))

    def _decode_values(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The values of the numbers."""
        if numbers.dtype.kind != "u" or values.ndim != 1:
            raise ValueError("its numbers are not unsigned, or its values no list")
        if numbers.size and int(numbers.max()) >= values.size:
            raise ValueError("a number without a value")
        self._decoding(numbers.size * values.itemsize)
        return values[numbers]

    def _decoding(self, n_bytes: int) -> None:
        """Refuse more bytes than a file may have once decoded, which can be more than it has."""
        self._left_decoded -= n_bytes
        if self._left_decoded < 0:
            raise ValueError(f"all arrays together have more than {MOST_READ} bytes")

    def _copy(self, cells: np.ndarray) -> np.ndarray:
        """Own memory; arrays that are not the same have no cells in common, so there is enough."""
        self._left -= cells.nbytes
        if self._left < 0:
            raise ValueError("all arrays together have more bytes than are stored")
        return cells.copy()

    def _cells(self, place: Any) -> np.ndarray:
        """The cells at a place, which are not copied."""
        name, start, shape = _list(place, 3)
        if not all(type(n) is int and n >= 0 for n in [start, *_list(shape)]):
            raise ValueError(f"{place} is no place: it needs a start and a shape of whole numbers")
        strip, size = self._strips[name], math.prod(shape)
        if start + size > strip.size:
            raise ValueError(f"{place} reaches beyond its {strip.size} cells")
        return strip[start : start + size].reshape(shape)


def _key(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    """A key that two arrays share if they are equal bit by bit; -0 differs from 0."""
    return array.dtype.str, array.shape, hashlib.sha256(array).digest()


def _is_single(array: np.ndarray) -> bool:
    """Whether single precision holds all doubles of an array bit by bit, and takes less."""
    if array.dtype != np.dtype("<f8") or array.nbytes <= ENTRY:
        return False
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        again = array.astype("<f4").astype("<f8")
    return bool(np.array_equal(again.view("<u8"), array.view("<u8")))


def _narrowed(array: np.ndarray) -> np.ndarray:
    """Doubles in single precision where that holds them, other arrays themselves."""
    return array.astype("<f4") if _is_single(array) else array


def _coded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Number of the value of every cell, and the values, bit by bit; None where that is larger."""
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


def _list(content: Any, length: int | None = None) -> list[Any]:
    """The content, which must be a list, of a length."""
    if not isinstance(content, list) or (length is not None and len(content) != length):
        raise ValueError(f"a list was expected, received {content!r}"[:80])
    return content
