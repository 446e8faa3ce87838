"""Columns of counts and of ordered levels: what they are, their codes, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import logit

from bayesrbf.records.column_laws import CountColumns, OrdinalColumns
from bayesrbf.records.mixture import Observations
from bayesrbf.table import decode, distinct, encode, further_laws, learn_columns

STAGES = ["low", "middle", "high"]


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [31.5, np.nan, 40.0, 22.0],
            "visits": [0.0, 3.0, np.nan, 1.0],
            "stage": pd.Categorical(["low", None, "middle", "low"], STAGES, ordered=True),
            "pain": [3.0, 1.0, 1.0, np.nan],
            "sex": pd.Categorical(["f", "m", "f", None]),
        }
    )


def learnt(X: object, **options: object) -> object:
    asked = {"count_features": ["visits"], "ordinal_features": ["stage", "pain"]}
    return learn_columns(X, **(asked | options))


def test_kinds_and_levels_are_those_that_were_asked_for():
    columns = learnt(frame())
    assert columns.kinds == ("real", "count", "ordinal", "ordinal", "categorical")
    assert columns.ordinal_levels == (tuple(STAGES), (1, 3))
    assert columns.levels == (("f", "m"),)
    assert (columns.count_names, columns.ordinal_names) == (("visits",), ("stage", "pain"))


@pytest.mark.parametrize("asked", [[1], ["visits"], [False, True, False, False, False]])
def test_positions_names_and_masks_name_the_same_columns(asked):
    assert learnt(frame(), count_features=asked) == learnt(frame())


def test_cells_are_counts_and_codes_in_the_declared_order():
    rows = encode(frame(), learnt(frame()))
    counts, codes = rows.further
    np.testing.assert_array_equal(counts, [[0], [3], [np.nan], [1]])
    np.testing.assert_array_equal(codes, [[0, 1], [np.nan, 0], [1, 0], [0, np.nan]])
    assert rows.real.shape == rows.codes.shape == (4, 1)


@pytest.mark.parametrize("numbers", [[3, 2, 1], [1, 2, 3]])
def test_the_order_of_a_categorical_of_numbers_is_its_own(numbers):
    X = pd.DataFrame({"grade": pd.Categorical([3, 1, 2], numbers, ordered=True)})
    columns = learn_columns(X, ordinal_features=["grade"])
    assert columns.ordinal_levels == (tuple(numbers),)
    codes = encode(X, columns).further[0][:, 0]
    np.testing.assert_array_equal(codes, [numbers.index(3), numbers.index(1), numbers.index(2)])


def test_an_enum_of_polars_has_an_order():
    X = pl.DataFrame({"stage": pl.Series(["high", "low"], dtype=pl.Enum(STAGES))})
    columns = learn_columns(X, ordinal_features=["stage"])
    assert columns.ordinal_levels == (tuple(STAGES),)
    rows = encode(X, columns)
    back = decode(rows.real, rows.codes, columns, X, rows.further)
    assert back.equals(X)


def test_decoding_gives_the_table_back():
    X = frame()
    columns = learnt(X)
    rows = encode(X, columns)
    back = decode(rows.real, rows.codes, columns, X, rows.further)
    pd.testing.assert_frame_equal(back, X)


def test_records_are_centred_on_the_columns():
    rows = encode(frame(), learnt(frame()))
    counts, levels = further_laws(learnt(frame()), rows)
    assert counts == CountColumns.of(("visits",), rows.further[0], rows.weights)
    assert counts.means == ((4 + 0.5) / 4,)
    assert isinstance(levels, OrdinalColumns)
    # Shares of two, one and no cell, half a row added to each; then of two and one.
    np.testing.assert_allclose(levels.cuts[0], logit([2.5 / 4.5, 4 / 4.5]))
    np.testing.assert_allclose(levels.cuts[1], logit([2.5 / 4]))
    assert further_laws(learn_columns(frame()), encode(frame(), learn_columns(frame()))) == ()


def test_a_column_without_a_cell_is_no_count():
    X = frame().assign(visits=np.nan)
    columns = learnt(X)
    assert columns.kinds[1] == "empty"
    assert columns.empty == (1,)
    assert len(encode(X, columns).further) == 1


@pytest.mark.parametrize(
    ("cell", "words"),
    [(-1.0, "row 2 holds -1"), (2.5, "row 2 holds 2.5"), (2e5, "row 2 holds 200000")],
)
def test_cells_that_are_no_counts_are_named(cell, words):
    X = frame()
    X.loc[2, "visits"] = cell
    with pytest.raises(ValueError, match=rf"(?s)'visits' is among count_features.*{words}.*real"):
        encode(X, learnt(frame()))


def test_text_is_no_count_and_has_no_order():
    X = frame().assign(stage=["low", "high", "low", "low"])
    with pytest.raises(ValueError, match="'stage' is among ordinal_features and holds text"):
        learnt(X)
    with pytest.raises(ValueError, match="'sex' is among count_features and holds 'f'"):
        encode(frame(), learnt(frame(), count_features=["sex"]))


def test_a_column_is_of_one_kind():
    with pytest.raises(ValueError, match="'pain' is among several"):
        learnt(frame(), count_features=["pain"])
    with pytest.raises(ValueError, match="'visits' is among several"):
        learnt(frame(), categorical_features=["visits"])


@pytest.mark.parametrize("argument", ["count_features", "ordinal_features"])
def test_columns_that_are_not_there_are_named_with_their_argument(argument):
    with pytest.raises(ValueError, match=f"{argument} names the column 'nothing'"):
        learnt(frame(), **{argument: ["nothing"]})
    with pytest.raises(ValueError, match=f"{argument} must be None, or a list of positions"):
        learnt(frame(), **{argument: "visits"})


def test_an_unseen_level_is_missing_or_an_error():
    columns = learnt(frame())
    X = frame().assign(pain=[3.0, 2.0, 1.0, np.nan])
    with pytest.warns(UserWarning, match="'pain': 2"):
        codes = encode(X, columns).further[1]
    np.testing.assert_array_equal(codes[:, 1], [1, np.nan, 0, np.nan])
    with pytest.raises(ValueError, match="'pain': 2"):
        encode(X, columns, handle_unknown="error")


def small_rows(seed: int = 0) -> Observations:
    """Rows of few values, many of them alike but for a count or a level."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.0, (40, 2)).astype(float)
    levels = rng.integers(0, 3, (40, 3)).astype(float)
    levels[rng.random(levels.shape) < 0.2] = np.nan
    codes, labels = rng.integers(0, 2, (40, 1)), rng.integers(0, 2, 40)
    real = rng.integers(0, 2, (40, 1)).astype(float)
    return Observations(real, codes, labels, rng.integers(1, 4, 40) + 0.0, (counts, levels))


def whole(rows: Observations) -> np.ndarray:
    """All cells of rows side by side."""
    return np.column_stack([rows.labels, rows.codes, rows.real, *rows.further])


def test_rows_that_differ_in_a_count_or_a_level_are_distinct():
    rows = small_rows()
    once, places = distinct(rows)
    cells = np.nan_to_num(whole(rows), nan=-1)
    assert once.n_obs == len(np.unique(cells, axis=0)) > len(np.unique(cells[:, :3], axis=0))
    np.testing.assert_array_equal(whole(once.take(places)), whole(rows))
    assert once.weights.sum() == rows.weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_distinct_rows_have_one_order_whatever_that_of_rows_and_columns(seed):
    rows = small_rows(seed)
    turn = np.random.default_rng(seed).permutation(rows.n_obs)
    counts, levels = rows.further
    moved = replace(rows, further=(counts[:, ::-1].copy(), levels[:, [2, 0, 1]].copy()))
    once, other = distinct(rows)[0], distinct(moved.take(turn))[0]
    back = replace(other, further=(other.further[0][:, ::-1], other.further[1][:, [1, 2, 0]]))
    np.testing.assert_array_equal(whole(back), whole(once))
    np.testing.assert_array_equal(back.weights, once.weights)
