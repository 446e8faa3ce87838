"""From a state to a tree for JSON with numeric arrays beside it, and back from untrusted text."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final

import numpy as np

from bayesrbf.artefact.conforming import check_record

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.product_kernels",
    "ClassResponses": "bayesrbf.fitted.fitted_network",
    "Columns": "bayesrbf.table",
    "Companions": "bayesrbf.fitted.companions",
    "CountColumns": "bayesrbf.records.column_laws",
    "DensityCandidate": "bayesrbf.estimators.mixture.density_choice",
    "Dissimilarities": "bayesrbf.records.median_lvq",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.kernel_layer",
    "Fit": "bayesrbf.records.results",
    "FittedExemplars": "bayesrbf.fitted.fitted_exemplars",
    "FittedKernelNetwork": "bayesrbf.fitted.fitted_kernel_network",
    "FittedMember": "bayesrbf.estimators.stack.members",
    "FittedMembers": "bayesrbf.estimators.stack.fitting",
    "FittedMixture": "bayesrbf.fitted.fitted_mixture",
    "FittedNetwork": "bayesrbf.fitted.fitted_network",
    "FittedSDGM": "bayesrbf.fitted.fitted_sdgm",
    "FittedStack": "bayesrbf.estimators.stack.fitted_stack",
    "GammaPrecisions": "bayesrbf.records.priors",
    "Gower": "bayesrbf.numerics.median_lvq.gower",
    "HalfRankMaps": "bayesrbf.numerics.column_maps",
    "HeldOut": "bayesrbf.estimators.folds",
    "HorseshoePrecisions": "bayesrbf.records.priors",
    "KernelBasis": "bayesrbf.records.sdgm",
    "MatrixSource": "bayesrbf.fitted.fitted_exemplars",
    "MedianLVQParameters": "bayesrbf.records.median_lvq",
    "MedianLVQPrior": "bayesrbf.records.median_lvq",
    "MixtureHyperparameters": "bayesrbf.records.priors",
    "MixtureParameters": "bayesrbf.records.mixture",
    "MixturePrior": "bayesrbf.records.priors",
    "MixtureSpecification": "bayesrbf.records.specification",
    "NumberResponses": "bayesrbf.fitted.fitted_network",
    "Objective": "bayesrbf.records.objective",
    "Observations": "bayesrbf.records.mixture",
    "Order": "bayesrbf.records.specification",
    "OrdinalColumns": "bayesrbf.records.column_laws",
    "Pool": "bayesrbf.estimators.stack.fitting",
    "PowerMaps": "bayesrbf.records.column_maps",
    "ProductKernel": "bayesrbf.numerics.kernel_network.product_kernels",
    "Prototypes": "bayesrbf.records.median_lvq",
    "QuadraticBasis": "bayesrbf.records.sdgm",
    "RBFNetworkHyperparameters": "bayesrbf.records.rbf_network",
    "RBFNetworkParameters": "bayesrbf.records.rbf_network",
    "RBFNetworkSpecification": "bayesrbf.records.rbf_network",
    "SDGMModes": "bayesrbf.records.sdgm",
    "SDGMParameters": "bayesrbf.records.sdgm",
    "SDGMTrace": "bayesrbf.records.sdgm",
    "SigmaPrior": "bayesrbf.records.median_lvq",
    "Solver": "bayesrbf.fitted.mixture_fitting",
    "StackRefits": "bayesrbf.estimators.stack.bootstrap",
    "Standardisation": "bayesrbf.records.mixture",
    "Status": "bayesrbf.records.results",
    "TableSource": "bayesrbf.fitted.fitted_exemplars",
    "Trace": "bayesrbf.records.results",
    "UsualRows": "bayesrbf.posterior.usual_rows",
    "Variable": "bayesrbf.records.specification",
    "VectorSource": "bayesrbf.fitted.fitted_exemplars",
}
"""Module of each class that may be stored; a file can name no other."""

ENUMERATIONS: Final = ("Status",)
FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def class_named(name: str) -> Any:
    """The class of one of the names in :data:`HOMES`."""
    return getattr(import_module(HOMES[name]), name)


def pack(state: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a state into a tree for ``json.dumps`` and contiguous numeric arrays by number.

    The values are those in the table of :mod:`bayesrbf.artefact`; StateError names the place of any
    other.

    >>> pack({"scale": np.ones(2), "cv": None})[0]
    {'dict': {'scale': {'array': '0'}, 'cv': None}}
    """
    arrays: dict[str, np.ndarray] = {}
    return _pack(state, "state", arrays), arrays


def _pack(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    """One value as JSON; ``where`` is its path, for the message."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, where, arrays)
    if isinstance(value, list | tuple):
        items = [_pack(item, f"{where}[{i}]", arrays) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        return _pack_mapping(value, where, arrays)
    if isinstance(value, Enum) and _known(value):
        return {"enum": [type(value).__name__, value.value]}
    if dataclasses.is_dataclass(value) and _known(value):
        return {"record": [type(value).__name__, _pack_fields(value, where, arrays)]}
    if hasattr(value, "columns") and hasattr(value, "shape"):
        return {"frame": _pack_frame(value, where)}
    raise StateError(
        f"{where} is a {type(value).__name__}, which a file cannot hold; use numbers, strings, "
        "None, arrays, or lists and dicts of them (for random_state: an int or None)."
    )


def _known(value: object) -> bool:
    """Whether the class of a value itself, not only its name, is in the fixed table."""
    kind = type(value)
    return kind.__name__ in HOMES and class_named(kind.__name__) is kind


def _pack_array(value: np.ndarray, where: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A numeric array beside the tree, an array of strings or objects inside it."""
    if value.dtype.kind in "OU":
        cells = [_pack(cell, where, arrays) for cell in value.ravel().tolist()]
        return {"objects": [value.dtype.kind, list(value.shape), cells]}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise StateError(
            f"{where} is an array of dtype {value.dtype}, which a file cannot hold; "
            "convert it to float64, int64 or bool."
        )
    name = str(len(arrays))
    # safetensors writes bytes as they are: only C order and little-endian read back right.
    arrays[name] = np.array(value, dtype=value.dtype.newbyteorder("<"), order="C")
    return {"array": name}


def _pack_mapping(
    value: Mapping[Any, Any], where: str, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """A dict: as it is when its keys are strings, else as pairs."""
    if all(type(key) is str for key in value):
        return {"dict": {k: _pack(v, f"{where}.{k}", arrays) for k, v in value.items()}}
    pairs = [
        [_pack(k, where, arrays), _pack(v, f"{where}[{k!r}]", arrays)] for k, v in value.items()
    ]
    return {"pairs": pairs}


def _pack_fields(value: Any, where: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a record, by name."""
    names = [field.name for field in dataclasses.fields(value)]
    return {name: _pack(getattr(value, name), f"{where}.{name}", arrays) for name in names}


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
    known = [dtype if dtype in FRAME_DTYPES else "String" for dtype in dtypes]
    return [library, [list(pair) for pair in zip(frame.columns, known, strict=True)]]


def unpack(tree: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Build the state that :func:`pack` took apart; the tree is not trusted.

    StateError where it holds anything outside the table of :mod:`bayesrbf.artefact`.

    >>> from bayesrbf.artefact import pack
    >>> unpack(*pack({"levels": ("a", True, 2, float("inf"))}))
    {'levels': ('a', True, 2, inf)}
    """
    if isinstance(tree, list):
        return [unpack(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1 or (tag := next(iter(tree))) not in _READERS:
        raise StateError(f"unknown keys {', '.join(sorted(tree)) or '(none)'} in the state")
    try:
        return _READERS[tag](tree[tag], arrays)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"a {tag!r} of the state is malformed ({error})") from error


def _read_float(content: Any, arrays: Mapping[str, np.ndarray]) -> float:
    """A float that JSON cannot write as a number."""
    if content not in ("nan", "inf", "-inf"):
        raise StateError(f"unknown float {content!r} in the state")
    return float(content)


def _read_pairs(content: Any, arrays: Mapping[str, np.ndarray]) -> dict[Any, Any]:
    """A dict with other keys; a duplicate key is refused."""
    pairs = [(unpack(key, arrays), unpack(value, arrays)) for key, value in _list(content)]
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StateError("duplicate keys in the state")
    return result


def _read_objects(content: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """An array of strings or objects, whose shape must match its listed cells."""
    kind, shape, cells = _list(content)
    values = [unpack(cell, arrays) for cell in _list(cells)]
    if kind not in ("O", "U") or math.prod(shape) != len(values) or min(shape, default=0) < 0:
        raise StateError(f"an array of kind {kind!r} and shape {shape} has {len(values)} cells")
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape) if kind == "O" else flat.astype(str).reshape(shape)


def _read_record(content: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A record with exactly the fields of its class, and within its laws."""
    name, fields = _list(content)
    if name not in HOMES or name in ENUMERATIONS:
        raise StateError(f"unknown record {name!r} in the state")
    cls = class_named(name)
    expected = {field.name for field in dataclasses.fields(cls)}
    if set(fields) != expected:
        odd = ", ".join(sorted(expected ^ set(fields)))
        raise StateError(f"the record {name} has unknown or missing fields: {odd}")
    record = cls(**{key: unpack(value, arrays) for key, value in fields.items()})
    check_record(record)
    return record


def _read_enum(content: Any, arrays: Mapping[str, np.ndarray]) -> Enum:
    """A member of an enumeration."""
    name, value = _list(content)
    if name not in ENUMERATIONS:
        raise StateError(f"unknown enumeration {name!r} in the state")
    member: Enum = class_named(name)(value)
    return member


def _read_frame(content: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """An empty frame of a library that is installed."""
    import narwhals.stable.v2 as nw

    library, columns = _list(content)
    if library not in FRAMES or any(dtype not in FRAME_DTYPES for _, dtype in columns):
        raise StateError(f"unknown frame {content!r} in the state")
    series = {
        str(name): nw.new_series(str(name), [], getattr(nw, dtype)(), backend=library)
        for name, dtype in columns
    }
    frame = nw.from_dict(series).to_native()
    if library == "pandas":
        frame.columns = [name for name, _ in columns]
    return frame


def _list(content: Any) -> list[Any]:
    """The content, which must be a list: a string or dict could pass for one."""
    if not isinstance(content, list):
        raise StateError(f"a list was expected in the state, received {type(content).__name__}")
    return content


_READERS: Final[Mapping[str, Callable[[Any, Mapping[str, np.ndarray]], Any]]] = {
    "float": _read_float,
    "tuple": lambda content, arrays: tuple(unpack(item, arrays) for item in _list(content)),
    "dict": lambda content, arrays: {k: unpack(v, arrays) for k, v in content.items()},
    "pairs": _read_pairs,
    "array": lambda content, arrays: arrays[content],
    "objects": _read_objects,
    "record": _read_record,
    "enum": _read_enum,
    "frame": _read_frame,
}
