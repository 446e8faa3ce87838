"""State as JSON and arrays: a closed vocabulary of values, and nothing that runs.

Everything that a fitted estimator holds is written with the values below. Reading
builds only these, whatever the text says: classes are looked up in a fixed table.

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
numeric array    ``{"array": "3"}``: the third array beside the JSON
array of objects ``{"objects": ["O" or "U", shape, [...]]}``
record           ``{"record": ["Columns", {field: value}]}``
Status           ``{"enum": ["Status", "converged"]}``
empty frame      ``{"frame": ["pandas", [[name, dtype], ...]]}``
================ ==========================================================
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final

import numpy as np

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.cells",
    "ColumnMap": "bayesrbf.estimators.stack.training",
    "Columns": "bayesrbf.table",
    "Dissimilarities": "bayesrbf.exemplars",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.basis",
    "ExemplarNetwork": "bayesrbf.estimators.rbf_network.exemplars",
    "Fit": "bayesrbf.results",
    "FittedExemplars": "bayesrbf.estimators.median_lvq.fitting",
    "FittedKernelNetwork": "bayesrbf.estimators.kernel_network.fitted",
    "FittedMember": "bayesrbf.estimators.stack.members",
    "FittedMembers": "bayesrbf.estimators.stack.fitting",
    "FittedMixture": "bayesrbf.estimators.mixture.fitting",
    "FittedNetwork": "bayesrbf.estimators.rbf_network.fitted",
    "FittedSDGM": "bayesrbf.estimators.sdgm.fitting",
    "GammaPrecisions": "bayesrbf.sdgm_parameters",
    "Gower": "bayesrbf.numerics.median_lvq.gower",
    "HalfRankMap": "bayesrbf.numerics.column_maps",
    "HeldOut": "bayesrbf.estimators.out_of_fold",
    "HorseshoePrecisions": "bayesrbf.sdgm_parameters",
    "KernelBasis": "bayesrbf.sdgm_parameters",
    "MatrixSource": "bayesrbf.estimators.median_lvq.sources",
    "MedianLVQParameters": "bayesrbf.exemplars",
    "MedianLVQPrior": "bayesrbf.exemplars",
    "MixtureHyperparameters": "bayesrbf.priors",
    "MixtureParameters": "bayesrbf.parameters",
    "MixturePrior": "bayesrbf.priors",
    "MixtureSpecification": "bayesrbf.specification",
    "Objective": "bayesrbf.objective",
    "Observations": "bayesrbf.parameters",
    "PowerMap": "bayesrbf.numerics.column_maps",
    "ProductKernel": "bayesrbf.numerics.kernel_network.gram",
    "Prototypes": "bayesrbf.exemplars",
    "QuadraticBasis": "bayesrbf.sdgm_parameters",
    "RBFNetworkHyperparameters": "bayesrbf.rbf_parameters",
    "RBFNetworkParameters": "bayesrbf.rbf_parameters",
    "RBFNetworkSpecification": "bayesrbf.rbf_parameters",
    "SDGMParameters": "bayesrbf.sdgm_parameters",
    "SDGMTrace": "bayesrbf.sdgm_parameters",
    "SigmaPrior": "bayesrbf.exemplars",
    "Solver": "bayesrbf.estimators.mixture.fitting",
    "Standardisation": "bayesrbf.parameters",
    "Status": "bayesrbf.results",
    "TableSource": "bayesrbf.estimators.median_lvq.sources",
    "Trace": "bayesrbf.results",
    "Variable": "bayesrbf.specification",
    "VectorSource": "bayesrbf.estimators.median_lvq.sources",
}
"""Where each class that may be stored lives; a file can name no other."""

ENUMERATIONS: Final = ("Status",)
FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def pack(state: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a state into a tree for JSON and numeric arrays.

    Parameters
    ----------
    state : object
        Any nesting of the values in the table above.

    Returns
    -------
    tree : object
        What ``json.dumps`` takes.
    arrays : dict of str to ndarray
        Contiguous arrays of booleans, integers or floats, by their number.

    Raises
    ------
    StateError
        If a value is none of those in the table above; the message says where.

    Examples
    --------
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
    """Whether the class of a value is in the fixed table, and not one of the same name."""
    kind = type(value)
    return kind.__name__ in HOMES and _class(kind.__name__) is kind


def _class(name: str) -> Any:
    """The class of the fixed table with this name."""
    return getattr(import_module(HOMES[name]), name)


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
    # safetensors writes the bytes as they lie: C order and little-endian, or it reads back wrong.
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
    """Build the state that :func:`pack` took apart.

    Parameters
    ----------
    tree : object
        What ``json.loads`` gave; not trusted.
    arrays : mapping of str to ndarray
        The arrays beside it.

    Returns
    -------
    object
        The state.

    Raises
    ------
    StateError
        If the tree holds anything outside the table above.

    Examples
    --------
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
    """A float that JSON has no number for."""
    if content not in ("nan", "inf", "-inf"):
        raise StateError(f"unknown float {content!r} in the state")
    return float(content)


def _read_tuple(content: Any, arrays: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
    """A tuple."""
    return tuple(unpack(item, arrays) for item in _list(content))


def _read_dict(content: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A dict with string keys."""
    return {key: unpack(value, arrays) for key, value in content.items()}


def _read_pairs(content: Any, arrays: Mapping[str, np.ndarray]) -> dict[Any, Any]:
    """A dict with other keys; a key that stands twice is refused."""
    pairs = [(unpack(key, arrays), unpack(value, arrays)) for key, value in _list(content)]
    result = dict(pairs)
    if len(result) != len(pairs):
        raise StateError("duplicate keys in the state")
    return result


def _read_array(content: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """A numeric array."""
    return arrays[content]


def _read_objects(content: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """An array of strings or objects; its cells are there, so its shape can be no larger."""
    kind, shape, cells = _list(content)
    values = [unpack(cell, arrays) for cell in _list(cells)]
    if kind not in ("O", "U") or math.prod(shape) != len(values) or min(shape, default=0) < 0:
        raise StateError(f"an array of kind {kind!r} and shape {shape} has {len(values)} cells")
    flat = np.empty(len(values), dtype=object)
    flat[:] = values
    return flat.reshape(shape) if kind == "O" else flat.astype(str).reshape(shape)


def _read_record(content: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """A record: exactly the fields of its class, which then checks them itself."""
    name, fields = _list(content)
    if name not in HOMES or name in ENUMERATIONS:
        raise StateError(f"unknown record {name!r} in the state")
    cls = _class(name)
    expected = {field.name for field in dataclasses.fields(cls)}
    if set(fields) != expected:
        odd = ", ".join(sorted(expected ^ set(fields)))
        raise StateError(f"the record {name} has unknown or missing fields: {odd}")
    return cls(**{key: unpack(value, arrays) for key, value in fields.items()})


def _read_enum(content: Any, arrays: Mapping[str, np.ndarray]) -> Enum:
    """A member of an enumeration."""
    name, value = _list(content)
    if name not in ENUMERATIONS:
        raise StateError(f"unknown enumeration {name!r} in the state")
    member: Enum = _class(name)(value)
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
    """The content, if it is a list: a string or dict must not pass for one."""
    if not isinstance(content, list):
        raise StateError(f"a list was expected in the state, received {type(content).__name__}")
    return content


_READERS: Final[Mapping[str, Callable[[Any, Mapping[str, np.ndarray]], Any]]] = {
    "float": _read_float,
    "tuple": _read_tuple,
    "dict": _read_dict,
    "pairs": _read_pairs,
    "array": _read_array,
    "objects": _read_objects,
    "record": _read_record,
    "enum": _read_enum,
    "frame": _read_frame,
}
