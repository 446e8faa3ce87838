"""Which laws of stored records refuse an altered record, for every family.

``python -m tests.laws`` prints as JSON those that refuse none; in tests the classes would check
types at every construction, which takes minutes.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import tempfile
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bayesrbf.base.artefact import check_record, load_state
from bayesrbf.base.records import MAX_PARTS, STORED
from tests.mutations import FAMILIES, array_changes, fitted, leaf_changes

Records = dict[type, list[Any]]


def declared_laws() -> set[tuple[str, str]]:
    """Name of every record and what its laws require, as their text says it."""
    return {
        (name, ast.literal_eval(node.value.elts[1]))
        for name, kind in STORED.items()
        if "__laws__" in vars(kind)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(vars(kind)["__laws__"]))))
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
    }


def records_in(value: Any, records: Records) -> Records:
    """Every record in a state, by class."""
    if STORED.get(type(value).__name__) is type(value) and dataclasses.is_dataclass(value):
        records.setdefault(type(value), []).append(value)
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    items = value.values() if isinstance(value, Mapping) else value
    for item in items if isinstance(value, Mapping | list | tuple) else ():
        records_in(item, records)
    return records


def changes(value: Any, known: Records, levels: int) -> Iterator[Any]:
    """What may stand in the place of the value of a field; lawful records in that of records."""
    if isinstance(value, np.ndarray):
        numbers = array_changes(value) if value.dtype.kind in "biuf" else ()
        yield from (np.zeros_like(value), *(other for _, other in numbers))
    elif type(value) in known:
        yield from (None, *known[type(value)])
        yield from filter(is_lawful, altered(value, known, levels - 1) if levels else ())
    elif isinstance(value, tuple) and value:
        yield from ((), value[:-1], (*value, value[-1]), value[::-1])
        yield from ((*value[:-1], other) for other in changes(value[-1], known, levels))
        yield from ((other, *value[1:]) for other in changes(value[0], known, levels))
    elif value is None:
        yield from (1.0, np.zeros(1), np.array([0.0, 1.0]), np.ones(2))
    else:
        others = (other for _, other in leaf_changes(value) if not isinstance(other, dict))
        # Beyond every law, and small enough that so many parts are made in no time.
        yield from (min(o, 2 * MAX_PARTS) if type(o) is int else o for o in others)


def altered(record: Any, known: Records, levels: int = 1) -> Iterator[Any]:
    """The record with another value in one field, or with all arrays cut, if its class takes it."""
    own = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    arrays = {name: value for name, value in own.items() if isinstance(value, np.ndarray | tuple)}
    cut = [
        {name: value[:end] if np.shape(value) else value for name, value in arrays.items()}
        for end in (-1, 0)
        if not any(type(value) is tuple for value in arrays.values())
    ]
    single = ({name: o} for name, value in own.items() for o in changes(value, known, levels))
    for other in (*cut, *single):
        with suppress(Exception):  # as reading a file refuses whatever cannot be built
            yield dataclasses.replace(record, **other)


def is_lawful(record: Any) -> bool:
    with suppress(Exception):
        check_record(record)
        return True
    return False


def unbroken() -> list[tuple[str, str]]:
    """Laws that no altered record of a fitted model breaks."""
    records: Records = {}
    with tempfile.TemporaryDirectory() as folder:
        for family in FAMILIES:
            fitted(family)[0].save(path := Path(folder) / family)
            records_in(load_state(path)[1], records)
    known = {kind: found[:3] for kind, found in records.items()}
    left = declared_laws()
    with np.errstate(all="ignore"):
        for kind, found in records.items():
            for other in (other for one in found[:6] for other in altered(one, known)):
                if all(name != kind.__name__ for name, _ in left):
                    break
                try:
                    check_record(other)
                except Exception as error:
                    left.discard((kind.__name__, str(error).partition(" needs ")[2]))
    return sorted(left)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(unbroken()))
