"""The artefact: one .safetensors file that holds a state and runs nothing.

Arrays are in the file's data section, everything else in one JSON manifest in its metadata, with
the protocol number first. Reading checks before it builds: sizes, depth, keys, names, dtypes,
shapes, and a SHA-256 of every byte of the file, taken with zeros in the place of its own digits.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, BinaryIO, Final

import numpy as np
import safetensors
import safetensors.numpy

from bayesrbf.artefact import StateError, pack, unpack
from bayesrbf.artefact.strict_json import depth, strict_json
from bayesrbf.files import check_regular, write_whole
from bayesrbf.public import ESTIMATORS

PROTOCOL: Final = 1
MANIFEST: Final = "bayesrbf"
MOST_BYTES: Final = 2**20
"""Of the manifest; the header, which contains it escaped, may have four times that."""
MOST_DEPTH: Final = 40
MOST_ARRAYS: Final = 10_000
MOST_FILE: Final = 2**31
"""Bytes of a file."""
MOST_SHOWN: Final = 500
"""Characters of a file that an error repeats."""

_NODE: Final = re.compile(r'\{"(?:array|coded|coded single|single)":')
"""Where a value of the state is an array."""
_SEAL: Final = b'\\"sha256\\":\\"'
"""What stands before the digest in the file; the first one there is, as texts are escaped twice."""
_NONE: Final = "0" * 64
"""In the place of the digest where it is taken."""

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
    """A message on one line, without characters that could control a terminal."""
    text = str(message)[:MOST_SHOWN]
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def save_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> str:
    """Write a state of a kind to one file, whole or not at all, and return its SHA-256.

    ArtefactError where the state exceeds the limits of the format, ValueError where it holds
    something that a file cannot.
    """
    content = encode(kind, *pack(state), str(path))
    write_whole(path, content)
    return hashlib.sha256(content).hexdigest()


def encode(kind: str, tree: Any, arrays: dict[str, np.ndarray], path: str) -> bytes:
    """The bytes of a file that holds a packed state."""
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
    """SHA-256 of a file with zeros in the place of its own digest."""
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
    except (StateError, safetensors.SafetensorError, RecursionError) as error:
        message = f"{path} is damaged or no artefact of bayesrbf: {shown(error)}."
        raise ArtefactError(message) from error


def _read(file: BinaryIO, path: str) -> tuple[dict[str, Any], bytes]:
    """The manifest, and all bytes: those of the data only where the header describes them."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, 4 * MOST_BYTES):
        raise StateError("its header is cut short or too long")
    text = file.read(length)
    header, manifest = _read_header(text, size, path)
    _check_arrays(header, manifest["arrays"], size - 8 - length)
    return manifest, start + text + file.read()


def _read_header(content: bytes, size: int, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Entries of the arrays, and the manifest, both read strictly; the file has this size."""
    try:
        header = strict_json(content.decode("utf-8"), MOST_DEPTH)
        text = header.pop("__metadata__")[MANIFEST]
        _check_limits(text, len(header), size, path)
        manifest = strict_json(text, MOST_DEPTH)
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
    """Refuse what is beyond the limits, when writing and when reading."""
    for count, most, what in (
        (size, MOST_FILE, "bytes"),
        (len(text.encode()), MOST_BYTES, "bytes of manifest"),
        (depth(text), MOST_DEPTH, "levels of nesting"),
        (n_arrays + len(_NODE.findall(text)), MOST_ARRAYS, "arrays"),
    ):
        if count > most:
            raise ArtefactError(f"{path} may have at most {most} {what}; it has {count}.")


def _description(array: np.ndarray) -> list[Any]:
    """Dtype and shape of an array, as the manifest states them."""
    name = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    return [name, list(array.shape)]


def _check_arrays(header: dict[str, Any], described: Any, n_bytes: int) -> None:
    """Refuse arrays that differ from the manifest in name, dtype or shape, or from the data."""
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
    """An array that owns its memory, from bytes of the library."""
    if entry["dtype"] == "BOOL" and max(entry["data"], default=0) > 1:
        raise StateError(f"its array {name!r} holds booleans that are neither 0 nor 1")
    return np.frombuffer(entry["data"], dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"])
