"""State to JSON and arrays and back."""

from __future__ import annotations

import ast
import dataclasses
import json
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from bayesrbf import MixturePrior
from bayesrbf.base.artefact import StateError, check_record, conforms, declared, pack, unpack
from bayesrbf.base.priors import Fit, Status, Trace
from bayesrbf.base.records import STORED, named
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Standardisation
from bayesrbf.public import BESIDE, ESTIMATORS
from bayesrbf.table.columns import Columns
from bayesrbf.table.kinds import Category, Real
from tests.house import source_files

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5)
)
arrays = npst.arrays(
    st.sampled_from(["?", "i1", "<i8", ">i8", "<f4", "<f8", ">f8", "<u2"]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
states = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    """Equal in type and value, NaN equal to NaN, whatever the byte order."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        kinds = a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=")
        return kinds and a.shape == b.shape and a.tobytes() == b.astype(a.dtype).tobytes()
    if type(a) is not type(b):
        return False
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


@given(states)
def test_what_is_packed_comes_back(state: object) -> None:
    tree, beside = pack(state)
    assert same(unpack(json.loads(json.dumps(tree, allow_nan=False)), beside), state)


@pytest.mark.parametrize(
    "record",
    [
        Columns(("a", "b"), (Real(), Category((True, 2, "x"))), (1,), missing=(0, 1)),
        MixtureSpecification(2, (3,), (0, 0, 1), "tied", True),
        MixturePrior(mean_precision=0.5),
        Fit(
            MixtureParameters(
                np.ones(1), np.ones(1), np.zeros((1, 2)), np.eye(2)[None], (np.full((1, 2), 0.5),)
            ),
            Trace(np.array([-3.0, -1.0])),
            Status.CONVERGED,
            np.array([-1.0, -np.inf]),
            floored=False,
        ),
    ],
)
def test_records_come_back(record: object) -> None:
    tree, beside = pack({"record": record})
    assert same(unpack(json.loads(json.dumps(tree)), beside)["record"], record)


def test_the_estimators_bring_every_class_that_is_stored() -> None:
    """Those that are marked in the sources: what they do not bring could not be read again."""
    for home in (*ESTIMATORS.values(), BESIDE):
        import_module(home)
    marked = {
        node.name
        for path in source_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        if {"stored", "named"} & set(map(ast.unparse, node.decorator_list))
    }
    own = {name for name, kind in STORED.items() if kind.__module__.startswith("bayesrbf.")}
    assert own == marked
    assert all(STORED[name].__name__ == name for name in own)


def test_a_name_is_of_one_class() -> None:
    with pytest.raises(TypeError, match="each have a Standardisation"):
        named(Impostor)
    assert STORED["Standardisation"] is Standardisation
    assert named(Standardisation) is Standardisation


def test_arrays_that_are_not_contiguous_keep_their_cells() -> None:
    array = np.arange(6.0).reshape(2, 3)
    for view in (array.T, array[:, ::2], np.asfortranarray(array)):
        tree, beside = pack(view)
        np.testing.assert_array_equal(beside["0"], view.ravel())
        back = unpack(tree, beside)
        assert back.flags.c_contiguous
        np.testing.assert_array_equal(back, view)


@pytest.mark.parametrize("dtype", [object, str])
def test_arrays_of_strings_keep_their_dtype(dtype: type) -> None:
    array = np.array([["setosa", "virginica"], ["é", ""]], dtype=dtype)
    back = unpack(*pack(array))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1.5], "b": pd.Categorical(["u"]), "c": ["x"], "d": [True]}),
        pd.DataFrame({3: [1.5], 4: [2.5]}),
        pl.DataFrame({"a": [1.5], "b": pl.Series(["u"], dtype=pl.Categorical), "c": ["x"]}),
    ],
)
def test_empty_frames_come_back(frame: pd.DataFrame | pl.DataFrame) -> None:
    empty = frame[:0]
    back = unpack(*pack(empty))
    assert type(back) is type(frame)
    assert list(back.columns) == list(frame.columns)
    assert list(map(type, back.dtypes)) == list(map(type, frame.dtypes))
    with pytest.raises(StateError, match="frame of 1 rows"):
        pack(frame)


@dataclasses.dataclass(frozen=True)
class Impostor:
    location: int


Impostor.__name__ = "Standardisation"


@pytest.mark.parametrize(
    "value",
    [
        np.random.RandomState(0),
        Impostor(3),
        np.array([1j]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        b"bytes",
        {1, 2},
        len,
    ],
)
def test_what_cannot_be_stored_is_named_with_its_path(value: object) -> None:
    with pytest.raises(StateError, match=r"state\.parameters\[1\]"):
        pack({"parameters": [0, value]})


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"dict": {}, "list": []},
        {"object": "os.system"},
        {"float": "1e5"},
        {"float": []},
        {"tuple": "ab"},
        {"dict": [1]},
        {"pairs": [[1, 2], [1, 3]]},
        {"pairs": [[[1], 2]]},
        {"pairs": [[1, 2, 3]]},
        {"array": "0"},
        {"array": ["0"]},
        {"array": ["7", 0, [1]]},
        {"array": [0, 0, [1]]},
        {"array": ["0", -1, [1]]},
        {"array": ["0", True, [1]]},
        {"array": ["0", 0.0, [1]]},
        {"array": ["0", 1, [2]]},
        {"array": ["0", 0, [3]]},
        {"array": ["0", 0, [-1]]},
        {"array": ["0", 0, [2**62, 0]]},
        {"array": ["0", 0, [2**31, 2**31, 4]]},
        {"array": ["0", 0, 2]},
        {"coded": ["1", "0"]},
        {"coded": [["1", 0, [3]]]},
        {"coded": [["0", 0, [2]], ["0", 0, [2]]]},  # reals for numbers
        {"coded": [["1", 0, [3]], ["0", 0, [2]]]},  # a number beyond the values
        {"coded": [["1", 0, [2]], ["0", 0, [0]]]},
        {"single": ["0", 0, [2]]},  # doubles
        {"single": ["0", 0, [3]]},
        {"coded": [["1", 0, [2]], ["0", 0, [2, 1]]]},
        {"coded single": [["1", 0, [2]], ["0", 0, [2]]]},  # values in doubles
        {"coded single": [["1", 0, [2]], ["2", 0, [1]]]},  # a number beyond the values
        {"coded single": [["0", 0, [2]], ["2", 0, [2]]]},
        {"coded single": [["1", 0, [2]], ["2", 0, [2, 1]]]},
        {"objects": ["O", [3], ["a"]]},
        {"objects": ["O", [-1], ["a"]]},
        {"objects": ["O", [2**60, 2**60], ["a"]]},
        {"objects": ["V", [1], ["a"]]},
        {"record": ["Popen", {}]},
        {"record": ["Status", {}]},
        {"record": [["Columns"], {}]},
        {"record": ["Standardisation", {"location": 1}]},
        {"record": ["Trace", {"log_posterior": {"array": ["0", 0, [2]]}, "also": 1}]},
        {"record": ["MixturePrior", dict.fromkeys(vars(MixturePrior()), -1.0)]},
        {"enum": ["Status", "unheard of"]},
        {"enum": ["Columns", "x"]},
        {"frame": ["dask", []]},
        {"frame": ["pandas", [["a", "Duration"]]]},
        {"frame": ["pandas", [["a"]]]},
    ],
)
def test_a_hostile_tree_is_refused(tree: object) -> None:
    with pytest.raises(StateError):
        unpack(tree, {"0": np.ones(2), "1": np.arange(3, dtype=np.uint8), "2": np.ones(2, "<f4")})


def test_places_of_arrays_are_read_as_written() -> None:
    """So that the refusals above are of what is wrong with each."""
    strips = {"0": np.array([5.0, 7.0]), "1": np.array([0, 1, 2], np.uint8)}
    found = unpack([{"array": ["0", 1, [1]]}, {"coded": [["1", 0, [2, 1]], ["0", 0, [2]]]}], strips)
    np.testing.assert_array_equal(found[0], [7.0], strict=True)
    np.testing.assert_array_equal(found[1], [[5.0], [7.0]], strict=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint16, bool])
def test_an_array_of_few_values_comes_back_bit_by_bit_from_less(dtype: type) -> None:
    values = np.array([0.0, -0.0, 1.0, np.nan, np.inf, 5e-324]).view(np.uint64)
    bits = values if dtype is np.float64 else np.arange(6, dtype=np.uint64)
    array = np.random.default_rng(0).choice(bits, (40, 9))
    array = array.view(dtype) if dtype is np.float64 else array.astype(dtype)
    tree, strips = pack(array)
    back = unpack(tree, strips)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back.flags.writeable
    assert back.flags.c_contiguous
    stored = sum(strip.nbytes for strip in strips.values())
    assert stored <= array.size + 6 * array.itemsize


def test_doubles_that_single_precision_holds_come_back_bit_by_bit_from_half() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=(40, 9)).astype(np.float32).astype(np.float64)
    array[0, :4] = -0.0, np.inf, -np.inf, 2.0**-149
    tree, strips = pack({"held": array, "one bit more": array + 2.0**-50})
    back = unpack(tree, strips)
    assert (back["held"].dtype, back["held"].tobytes()) == (array.dtype, array.tobytes())
    assert back["held"].flags.writeable
    assert back["one bit more"].tobytes() == (array + 2.0**-50).tobytes()
    assert sum(strip.nbytes for strip in strips.values()) == array.nbytes * 3 // 2
    assert "single" in str(tree)


def test_few_values_that_single_precision_holds_take_half() -> None:
    values = np.random.default_rng(0).normal(size=200).astype(np.float32).astype(np.float64)
    array = np.stack([values] * 5)
    tree, strips = pack(array)
    assert tree.keys() == {"coded single"}
    back = unpack(tree, strips)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert back.flags.writeable
    assert sum(strip.nbytes for strip in strips.values()) == array.size + 200 * 4


def test_what_single_precision_would_change_is_stored_as_it_is() -> None:
    for value in (1e300, 1e-300, np.frombuffer(b"\1\0\0\0\0\0\xf8\x7f")[0], 0.1):
        array = np.concatenate([np.arange(20.0), [value]])
        tree, strips = pack(array)
        assert tree.keys() == {"array"}
        assert unpack(tree, strips).tobytes() == array.tobytes()


def test_the_same_rows_in_other_units_have_the_same_numbers() -> None:
    """Draws see training rows in units of their own: only the values differ from draw to draw."""
    rows = np.random.default_rng(0).integers(0, 30, (100, 4)).astype(float)
    _, strips = pack([np.log1p(rows + shift) for shift in range(20)])
    assert sum(strip.nbytes for strip in strips.values()) <= rows.size + 20 * 30 * 8


def test_places_that_name_the_same_cells_cannot_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bayesrbf.base.artefact.MAX_READ", 8000)
    strips = {"0": np.zeros(1000), "1": np.zeros(1000, np.uint8)}
    coded = [{"coded": [["1", i, [300]], ["0", 0, [1]]]} for i in range(4)]
    plain = [{"array": ["0", i, [300]]} for i in range(4)]
    for tree in (coded, plain):
        unpack(tree[:1] * 100, strips)
        with pytest.raises(StateError, match="all arrays together have more"):
            unpack(tree, strips)


def test_a_record_is_read_as_its_own_class_only() -> None:
    tree, beside = pack(Standardisation(np.zeros(1), np.ones(1)))
    assert type(unpack(tree, beside)) is Standardisation


def test_every_stored_record_has_types_that_can_be_checked() -> None:
    for home in (*ESTIMATORS.values(), BESIDE):
        import_module(home)
    records = [kind for kind in STORED.values() if dataclasses.is_dataclass(kind)]
    assert len(records) >= 50
    for kind in records:
        assert set(declared(kind)) == {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("location", "scale", "message"),
    [
        (np.zeros(3), np.ones(2), "is no Float"),
        (np.zeros(2, np.float32), np.ones(2), "is no Float"),
        (np.zeros(2), None, "is no Float"),
        (np.array([0.0, np.nan]), np.ones(2), "holds NaN"),
        (np.zeros(2), np.array([1.0, 0.0]), "positive scales"),
    ],
)
def test_a_record_is_held_to_types_shapes_numbers_and_laws(
    location: np.ndarray, scale: np.ndarray, message: str
) -> None:
    record = object.__new__(Standardisation)  # as no fit makes it
    object.__setattr__(record, "location", location)
    object.__setattr__(record, "scale", scale)
    with pytest.raises(ValueError, match=message):
        check_record(record)


def test_contents_of_tuples_and_mappings_are_checked() -> None:
    assert conforms({"a": (1.0, 2)}, dict[str, tuple[float, ...]])
    assert not conforms({"a": (1.0, "2")}, dict[str, tuple[float, ...]])
    assert not conforms({1: (1.0,)}, dict[str, tuple[float, ...]])
    assert not conforms(1.0, int | None)
    assert conforms((1, "a"), tuple[int, str])
    assert not conforms((1,), tuple[int, str])
