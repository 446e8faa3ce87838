"""A new table held against the training table: what was planted is found, chance is not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf import HybridMixtureClassifier, MedianLVQClassifier, MixtureDensity
from bayesrbf.app.check import Remark, training_cells
from bayesrbf.app.predict import read_rows
from tests.cases import some_quick

SETTINGS = {"covariance_type": "full", "cv": 3, "random_state": 0}


def patients(n: int, seed: int, share: float = 0.5) -> tuple[pd.DataFrame, np.ndarray]:
    """Three real columns, one categorical, and two classes; some holes."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < share
    age = rng.normal(50, 9, n) + 12 * sick
    weight = rng.gamma(30, 2.5, n)
    enzyme = np.exp(rng.normal(3, 0.5, n) + 1.5 * sick)
    sex = np.where(rng.random(n) < 0.4, "f", "m").astype(object)
    table = pd.DataFrame({"age": age, "weight": weight, "enzyme": enzyme, "sex": sex})
    table.loc[rng.random(n) < 0.05, "weight"] = np.nan
    return table, np.where(sick, "sick", "well")


@pytest.fixture(scope="module")
def model() -> HybridMixtureClassifier:
    return HybridMixtureClassifier(**SETTINGS).fit(*patients(200, 0))


def checked(model: object, table: pd.DataFrame) -> dict[str, Remark]:
    """What was found, by its topic."""
    return {one.topic: one for one in bayesrbf.check(model, table).findings}


@pytest.mark.slow
def test_nothing_is_found_in_rows_of_the_same_law(model: HybridMixtureClassifier) -> None:
    found = [bool(checked(model, patients(120, seed)[0])) for seed in range(1, 7)]
    assert sum(found) <= 1


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1000.0, "1\u202f000 times too large"), (1 / 2.54, "2.54 times too small"), (6.0, "times")],
)
def test_column_off_by_a_factor_is_the_only_thing_found(
    model: HybridMixtureClassifier, factor: float, said: str
) -> None:
    table = patients(120, 1)[0]
    table["weight"] *= factor
    found = checked(model, table)
    assert set(found) == {"unit"}
    assert "weight" in found["unit"].sentence
    assert said in found["unit"].sentence


def test_shift_and_other_scale_are_told_apart(model: HybridMixtureClassifier) -> None:
    table = patients(120, 1)[0]
    shifted = checked(model, table.assign(age=table["age"] + 80))["unit"].sentence
    assert "higher than it was" in shifted
    fahrenheit = checked(model, table.assign(age=1.8 * table["age"] + 32))["unit"].sentence
    assert "Fahrenheit" in fahrenheit


def test_later_dates_are_told_and_are_no_finding() -> None:
    model = HybridMixtureClassifier(**SETTINGS, column_kinds={"age": "date"})
    model.fit(*patients(200, 0))
    table = patients(120, 1)[0]
    later = table.assign(age=table["age"] + 80)
    result = bayesrbf.check(model, later)
    (dates,) = (one for one in result.remarks if one.topic == "grows")
    assert "2000-" in dates.sentence
    assert result.findings == ()


def test_exchanged_columns_are_named_together(model: HybridMixtureClassifier) -> None:
    table = patients(120, 1)[0].rename(columns={"weight": "enzyme", "enzyme": "weight"})
    found = checked(model, table[["age", "weight", "enzyme", "sex"]])
    assert set(found) - {"missing"} == {"exchanged"}  # holes were exchanged, too
    assert {"weight", "enzyme"} <= set(found["exchanged"].sentence.split())


def test_new_level_is_found_where_chance_does_not_explain_it(
    model: HybridMixtureClassifier,
) -> None:
    table = patients(120, 1)[0]
    table.loc[:1, "sex"] = "M"
    (rare,) = (one for one in bayesrbf.check(model, table).remarks if one.topic == "levels")
    assert not rare.is_finding
    table.loc[:11, "sex"] = "M"
    found = checked(model, table)
    assert set(found) == {"levels"}
    assert "12 cells of 120" in found["levels"].sentence
    assert "'M' (12" in found["levels"].sentence


def test_more_holes_than_in_training_are_found(model: HybridMixtureClassifier) -> None:
    table = patients(120, 1)[0]
    table.loc[:30, "age"] = np.nan
    found = checked(model, table)
    assert set(found) == {"missing"}
    assert "25.8\xa0% of the rows (0\xa0% in training)" in found["missing"].sentence


def test_one_wrong_cell_is_named_with_its_row(model: HybridMixtureClassifier) -> None:
    table = patients(120, 1)[0]
    table.loc[6, "age"] = 560.0
    found = checked(model, table)
    assert set(found) == {"cells"}
    assert "row 7 age 560" in found["cells"].sentence
    named = table.set_index(pd.Index([f"P{i}" for i in range(120)], name="case"))
    assert "row P6 age 560" in checked(model, named)["cells"].sentence


def test_other_class_frequencies_are_found_and_are_no_change_of_unit(
    model: HybridMixtureClassifier,
) -> None:
    found = checked(model, patients(200, 1, share=0.15)[0])
    assert set(found) == {"classes"}
    assert "sick 1" in found["classes"].sentence
    assert_verdict_agrees(found["classes"])


def assert_verdict_agrees(remark: Remark) -> None:
    """A finding where the interval of a class leaves its share in training out, and only there."""
    assert "intervals of 99.7\xa0%" in remark.sentence
    shares = re.findall(r"\(([0-9.]+)\xa0% to ([0-9.]+)\xa0%; training ([0-9.]+)", remark.sentence)
    outside = [not float(a) <= float(p) <= float(b) for a, b, p in shares]
    assert len(outside) == 2
    assert remark.is_finding == any(outside)


@pytest.mark.parametrize("share", some_quick([0.2, 0.35, 0.5, 0.65], 0.35))
def test_what_is_said_of_class_frequencies_agrees_with_their_intervals(
    share: float, model: HybridMixtureClassifier
) -> None:
    told = bayesrbf.check(model, patients(200, 5, share)[0]).remarks
    (remark,) = (one for one in told if one.topic == "classes")
    assert_verdict_agrees(remark)


@pytest.mark.parametrize("rows", [1, 4, 60])
def test_class_frequencies_that_are_not_known_have_no_figures(
    rows: int, model: HybridMixtureClassifier
) -> None:
    told = bayesrbf.check(model, patients(rows, 1)[0]).remarks
    (remark,) = (one for one in told if one.topic == "classes")
    ends = re.findall(r"\(([0-9.]+)\xa0% to ([0-9.]+)\xa0%", remark.sentence)
    assert ("cannot be told" in remark.sentence) == (not ends)
    assert not ends or min(float(high) - float(low) for low, high in ends) < 80
    assert (rows == 1) <= (not ends)


def test_columns_that_lack_and_columns_that_are_new(
    model: HybridMixtureClassifier, tmp_path: Path
) -> None:
    file = tmp_path / "new.csv"
    table = patients(60, 1)[0].rename(columns={"weight": "weigth"})
    table.assign(label="?x").to_csv(file, index=False)
    read = read_rows(model, file)
    assert read.columns.tolist() == ["age", "enzyme", "sex", "weigth", "label"]
    result = bayesrbf.check(model, read)
    absent, extra = (one for one in result.remarks if one.topic == "columns")
    assert absent.is_finding
    assert not extra.is_finding
    assert "'weight' is absent" in absent.sentence
    assert "'weigth' is here" in absent.sentence
    assert "'label'" in extra.sentence
    assert [one.topic for one in result.findings] == ["columns"]
    assert str(result).splitlines()[:2] == ["60 rows", "Found"]
    assert result.to_dict()["remarks"][0]["sentence"] == absent.sentence


def test_rows_that_break_how_cells_go_together_are_found() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.multivariate_normal([0, 0], [[1, 0.97], [0.97, 1]], 240), columns=["a", "b"]
    )
    y = np.where(X["a"] + rng.normal(size=240) > 0, "p", "n")
    model = HybridMixtureClassifier(**SETTINGS).fit(X[:140], y[:140])
    assert not {"rows", "cells"} & set(checked(model, X[140:].reset_index(drop=True)))
    mixed = X[140:].reset_index(drop=True)
    mixed["b"] = rng.permutation(mixed["b"].to_numpy())
    found = checked(model, mixed)
    assert {"rows", "cells"} <= set(found)


@pytest.mark.parametrize("family", ["mixture", "median_lvq"])
def test_training_table_comes_back_from_the_file(family: str, tmp_path: Path) -> None:
    """Exemplars, too, hold the rows that new ones are compared with."""
    X, y = patients(40, 0)
    build = {
        "mixture": HybridMixtureClassifier(**SETTINGS),
        "median_lvq": MedianLVQClassifier(metric="gower", random_state=0),
    }[family]
    build.fit(X, y).save(tmp_path / "model")
    back = training_cells(bayesrbf.load(tmp_path / "model"))
    assert back.columns.tolist() == X.columns.tolist()
    for name in X.columns:
        before, after = (sorted(table[name].dropna().tolist()) for table in (X, back))
        assert before == (pytest.approx(after) if name != "sex" else after)
        assert X[name].isna().sum() == back[name].isna().sum()


def test_exemplars_are_checked_like_the_others() -> None:
    X, y = patients(80, 0)
    model = MedianLVQClassifier(metric="gower", calibrate=True, random_state=0).fit(X, y)
    new = patients(60, 1)[0]
    new["enzyme"] *= 1000
    assert set(checked(model, new)) == {"unit"}


@pytest.mark.slow
def test_any_table_is_checked_and_an_estimator_may_be_a_file(
    model: HybridMixtureClassifier, tmp_path: Path
) -> None:
    """The container, the order of columns, and who holds the fit make no difference."""
    table = patients(60, 1)[0]
    table.loc[3, "age"] = 560.0
    expected = bayesrbf.check(model, table)
    model.save(tmp_path / "model")
    assert bayesrbf.check(tmp_path / "model", table) == expected
    assert bayesrbf.check(model, table[["sex", "enzyme", "age", "weight"]]) == expected
    assert bayesrbf.check(model, table.astype({"sex": "category"})) == expected
    polars = pytest.importorskip("polars")
    cells = {n: [None if pd.isna(c) else c for c in table[n].tolist()] for n in table}
    assert bayesrbf.check(model, polars.DataFrame(cells)) == expected


def test_arrays_and_densities_are_checked_too() -> None:
    """Without labels there are no class frequencies; without names columns go by their place."""
    rng = np.random.default_rng(0)
    X = rng.normal(50.0, 4.0, (120, 3))
    density = MixtureDensity(2, random_state=0).fit(X)
    new = rng.normal(50.0, 4.0, (80, 3))
    assert bayesrbf.check(density, new).findings == ()
    (finding,) = bayesrbf.check(density, new * [1, 1000, 1]).findings
    assert finding.topic == "unit"
    assert "x1" in finding.sentence
    labels = (X.sum(1) > 150).astype(int)
    classifier = HybridMixtureClassifier(random_state=0).fit(X, labels)
    assert "classes" in {one.topic for one in bayesrbf.check(classifier, new).remarks}


def test_what_cannot_be_checked_is_refused(model: HybridMixtureClassifier) -> None:
    with pytest.raises(ValueError, match="none of the columns"):
        bayesrbf.check(model, pd.DataFrame({"height": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="no names"):
        bayesrbf.check(model, np.zeros((3, 2)))
    X, y = patients(40, 0)
    whole = MedianLVQClassifier(metric="euclidean", random_state=0).fit(X[["age", "enzyme"]], y)
    with pytest.raises(ValueError, match="compares whole rows"):
        bayesrbf.check(whole, X[["age", "enzyme"]])
