"""From a state to a tree for JSON with numeric arrays beside it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final

import numpy as np

from bayesrbf.artefact.arrays import PackedArrays

HOMES: Final = {
    "CellMoments": "bayesrbf.numerics.kernel_network.product_kernels",
    "ClassResponses": "bayesrbf.fitted.fitted_network",
    "Columns": "bayesrbf.table",
    "Companions": "bayesrbf.fitted.companions",
    "CountColumns": "bayesrbf.records.column_laws",
    "DensityCandidate": "bayesrbf.fitted.density_selection",
    "Dissimilarities": "bayesrbf.records.median_lvq",
    "Draws": "bayesrbf.inference.draws",
    "EigenBasis": "bayesrbf.numerics.kernel_network.kernel_layer",
    "FewValues": "bayesrbf.records.few_values",
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
    "HeldOut": "bayesrbf.fitted.holding_out",
    "HorseshoePrecisions": "bayesrbf.records.priors",
    "KernelBasis": "bayesrbf.records.sdgm",
    "MaskedRows": "bayesrbf.records.masked_rows",
    "MatrixSource": "bayesrbf.fitted.fitted_exemplars",
    "MedianLVQParameters": "bayesrbf.records.median_lvq",
    "MedianLVQPrior": "bayesrbf.records.median_lvq",
    "MixtureCandidate": "bayesrbf.fitted.mixture_candidates",
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
    "Recalibration": "bayesrbf.records.masked_rows",
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
    "ValueMaps": "bayesrbf.estimators.stack.training",
    "Variable": "bayesrbf.records.specification",
    "VectorSource": "bayesrbf.fitted.fitted_exemplars",
}
"""Module of each class that may be stored; a file can name no other."""

LATER: Final[Mapping[str, frozenset[str]]] = {
    "FittedStack": frozenset({"emptier"}),
    "HeldOut": frozenset({"masked"}),
    "Pool": frozenset({"pull"}),
}
"""Fields that came after version 0.1.0. A file may lack them, and lacks them at their defaults, so
that a file of an earlier version is written again as it was."""
ENUMERATIONS: Final = ("Status",)
FRAMES: Final = ("pandas", "polars")
FRAME_DTYPES: Final = ("Float64", "String", "Boolean", "Categorical")


class StateError(ValueError):
    """A value that cannot be stored, or stored text that is no state."""


def class_named(name: str) -> Any:
    """The class of one of the names in :data:`HOMES`."""
    return getattr(import_module(HOMES[name]), name)


def pack(state: object) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a state into a tree for ``json.dumps`` and one strip of numbers for each dtype.

    The values are those in the table of :mod:`bayesrbf.artefact`; StateError names the place of any
    other.

    >>> pack({"scale": np.ones(2), "cv": None})[0]
    {'dict': {'scale': {'array': ['0', 0, [2]]}, 'cv': None}}
    """
    made = _Made()
    return _pack(state, "state", made), made.arrays.strips


@dataclasses.dataclass
class _Made:
    """What was packed so far: arrays and records that are equal are stored once."""

    arrays: PackedArrays = dataclasses.field(default_factory=PackedArrays)
    records: dict[str, int] = dataclasses.field(default_factory=dict)
    """Number of every record by its JSON, in the order in which they were finished."""
    numbers: dict[int, int] = dataclasses.field(default_factory=dict)
    """The same by the identity of what it was packed to, which the tree keeps alive."""


def _pack(value: Any, where: str, made: _Made) -> Any:
    """One value as JSON; ``where`` is its path, for the message."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, where, made)
    if isinstance(value, list | tuple):
        items = [_pack(item, f"{where}[{i}]", made) for i, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        return _pack_mapping(value, where, made)
    if isinstance(value, Enum) and _known(value):
        return {"enum": [type(value).__name__, value.value]}
    if dataclasses.is_dataclass(value) and _known(value):
        return _pack_record(value, where, made)
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


def _pack_array(value: np.ndarray, where: str, made: _Made) -> dict[str, Any]:
    """A numeric array beside the tree, an array of strings or objects inside it."""
    if value.dtype.kind in "OU":
        cells = [_pack(cell, where, made) for cell in value.ravel().tolist()]
        return {"objects": [value.dtype.kind, list(value.shape), cells]}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise StateError(
            f"{where} is an array of dtype {value.dtype}, which a file cannot hold; "
            "convert it to float64, int64 or bool."
        )
    # safetensors writes bytes as they are: only C order and little-endian read back right.
    return made.arrays.node(np.array(value, dtype=value.dtype.newbyteorder("<"), order="C"))


def _pack_mapping(value: Mapping[Any, Any], where: str, made: _Made) -> dict[str, Any]:
    """A dict: as it is when its keys are strings, else as pairs."""
    if all(type(key) is str for key in value):
        return {"dict": {k: _pack(v, f"{where}.{k}", made) for k, v in value.items()}}
    pairs = [[_pack(k, where, made), _pack(v, f"{where}[{k!r}]", made)] for k, v in value.items()]
    return {"pairs": pairs}


def _pack_record(value: Any, where: str, made: _Made) -> dict[str, Any]:
    """A record, or the number of an equal one that was packed before."""
    packed = {"record": [type(value).__name__, _pack_fields(value, where, made)]}
    number = len(made.records)
    first = made.records.setdefault(json.dumps(_numbered(packed, made)), number)
    if first < number:
        return {"same": first}
    made.numbers[id(packed)] = number
    return packed


def _numbered(tree: Any, made: _Made) -> Any:
    """A tree with numbers in the place of its records: one text for all that are equal."""
    if isinstance(tree, list):
        return [_numbered(item, made) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if id(tree) in made.numbers:
        return {"same": made.numbers[id(tree)]}
    return {key: _numbered(item, made) for key, item in tree.items()}


def _pack_fields(value: Any, where: str, made: _Made) -> dict[str, Any]:
    """The fields of a record, by name."""
    later = LATER.get(type(value).__name__, frozenset())
    names = [
        field.name
        for field in dataclasses.fields(value)
        if field.name not in later or getattr(value, field.name) != field.default
    ]
    return {name: _pack(getattr(value, name), f"{where}.{name}", made) for name in names}


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
