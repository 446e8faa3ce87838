"""Levels and names that every family keeps apart, and booleans that come back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    StackedClassifier,
)
from bayesrbf.reading.notes import ColumnWarning
from tests.cases import first_quick, some_quick

FAMILIES: dict[str, Callable[[], Any]] = {
    "mixture": lambda: HybridMixtureClassifier(1, random_state=0),
    "kernel network": lambda: KernelNetworkClassifier(random_state=0),
    "RBF network": lambda: RBFNetworkClassifier(2, n_init=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(random_state=0),
    "stack": lambda: StackedClassifier(random_state=0),
}
rng = np.random.default_rng(1)
CODES, A = rng.integers(0, 3, 120), rng.normal(size=120)
Y = (2.0 * (CODES == 1) + A + 0.5 * rng.normal(size=120) > 0.7).astype(int)
LONG = 1577134800018226901 + 7 * np.arange(3)


def table(levels: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": A, "site": pd.Categorical(np.asarray(levels)[CODES])})


@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture", "exemplars"))
def test_long_codes_are_answered_as_short_ones(family: str, tmp_path: Path) -> None:
    short = FAMILIES[family]().fit(table([0, 1, 2]), Y)
    long = FAMILIES[family]().fit(table(LONG), Y).set_params(handle_unknown="error")
    np.testing.assert_array_equal(
        long.predict_proba(table(LONG)), short.predict_proba(table([0, 1, 2]))
    )
    long.save(tmp_path / "model")
    loaded = bayesrbf.load(tmp_path / "model")
    text = table(LONG).astype({"site": str})
    np.testing.assert_array_equal(loaded.predict_proba(text), short.predict_proba(table([0, 1, 2])))


@pytest.mark.parametrize("family", first_quick(["mixture", "exemplars", "stack"], 2))
def test_unknown_long_codes_are_refused(family: str) -> None:
    model = FAMILIES[family]().set_params(handle_unknown="error").fit(table(LONG), Y)
    with pytest.raises(ValueError, match=f"'site': {LONG[0] + 1}"):
        model.predict_proba(pd.DataFrame({"a": [0.0], "site": pd.Categorical([LONG[0] + 1])}))


@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture", "exemplars"))
@pytest.mark.parametrize("new", [["0", "1", "2"], ["0.0", "1.0", "2.0"], [0.0, 1.0, 2.0]])
@pytest.mark.filterwarnings("error")
def test_a_number_is_one_level_however_new_rows_write_it(family: str, new: list[Any]) -> None:
    model = FAMILIES[family]().fit(table([0, 1, 2]), Y)
    np.testing.assert_array_equal(
        model.predict_proba(table(new)), model.predict_proba(table([0, 1, 2]))
    )


def test_two_spellings_in_training_are_one_level_and_codes_are_two_with_a_warning() -> None:
    mixed = table(["0", "1", "2"]).astype({"site": str})
    mixed.loc[::2, "site"] += ".0"
    one, two = (FAMILIES["mixture"]().fit(X, Y) for X in (table(["0", "1", "2"]), mixed))
    np.testing.assert_array_equal(two.predict_proba(mixed), one.predict_proba(mixed))
    with pytest.warns(ColumnWarning, match=r"'site' holds '007' and '7', which are one number"):
        codes = FAMILIES["mixture"]().fit(table(["7", "007", "8"]), Y)
    assert set(codes.columns_.levels[0]) == {"007", "7", "8"}


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]"])
def test_booleans_come_back(dtype: str, tmp_path: Path) -> None:
    X = pd.DataFrame({"a": A, "flag": pd.Series(CODES == 1, dtype=dtype)})
    holes = X.astype({"flag": object if dtype == "bool" else dtype})
    holes.loc[:9, "flag"] = None
    density = MixtureDensity(2, random_state=0).fit(X)
    density.save(tmp_path / "density")
    for fitted in (density, bayesrbf.load(tmp_path / "density")):
        back = [fitted.impute(holes), fitted.conditional(holes).sample(2)[1], fitted.impute(X)]
        assert [filled["flag"].dtype for filled in back] == [X["flag"].dtype] * 3
        assert pd.api.types.is_bool_dtype(fitted.sample(5)["flag"].dtype)
    assert density.sample(5)["flag"].dtype == X["flag"].dtype


NUMBERS = pd.DataFrame(rng.normal(size=(60, 3)) * [1, 5, 10], columns=[10, 20, 30])
LABELS = (NUMBERS[10] > 0).to_numpy()


@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture"))
@pytest.mark.parametrize(
    "X",
    [
        NUMBERS,
        NUMBERS.set_axis(range(3), axis=1),
        NUMBERS.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1),
    ],
    ids=["numbers", "default", "tuples"],
)
def test_names_that_are_no_text_are_compared(family: str, X: pd.DataFrame, tmp_path: Path) -> None:
    FAMILIES[family]().fit(X, LABELS).save(tmp_path / "model")
    model = bayesrbf.load(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = model.predict_proba(X)
        np.testing.assert_array_equal(model.predict_proba(X.to_numpy()), p)
        named = X.set_axis(list(model.columns_.names), axis=1)  # as a file has them
        np.testing.assert_array_equal(model.predict_proba(named), p)
    with pytest.raises(ValueError, match="The feature names should match"):
        model.predict_proba(X.iloc[:, [1, 0, 2]])
