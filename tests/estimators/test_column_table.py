"""What columns were taken for, and sentences on columns that are not what they were."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from bayesrbf import HybridMixtureClassifier, MedianLVQClassifier, MixtureDensity, load

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(50, 10, 60),
        "city": RNG.choice(["Bonn", "Köln"], 60),
        "visits": RNG.poisson(3, 60),
        "stage": RNG.integers(1, 4, 60),
    }
)
TABLE.loc[:4, "age"] = np.nan
Y = RNG.choice(["a", "b"], 60)


def test_columns_are_described_and_kept_in_a_file(tmp_path: object) -> None:
    density = MixtureDensity(
        column_maps="power", count_features=["visits"], ordinal_features=["stage"], random_state=0
    ).fit(TABLE)
    found = density.describe_columns()
    assert found.index.tolist() == list(TABLE)
    assert found["kind"].tolist() == ["real", "categorical", "count", "ordinal"]
    assert found["levels"].tolist() == [None, ["Bonn", "Köln"], None, [1, 2, 3]]
    assert found["missing"].tolist() == [5, 0, 0, 0]
    assert found["map"].notna().tolist() == [True, False, False, False]
    density.save(f"{tmp_path}/m.safetensors")
    pd.testing.assert_frame_equal(load(f"{tmp_path}/m.safetensors").describe_columns(), found)


def test_missing_cells_are_those_of_the_rows_that_weigh() -> None:
    weights = np.r_[np.zeros(3), np.ones(57)]
    model = HybridMixtureClassifier(random_state=0).fit(TABLE, Y, sample_weight=weights)
    assert model.describe_columns().loc["age", "missing"] == 2


def test_exemplars_describe_compared_tables() -> None:
    model = MedianLVQClassifier(metric="gower", sigma=1.0, random_state=0).fit(TABLE, Y)
    assert model.describe_columns()["missing"].tolist() == [5, 0, 0, 0]


def test_numbers_but_for_a_few_cells_are_told() -> None:
    ages = TABLE["age"].round().astype(object).where(TABLE["age"].notna(), "?").map(str)
    table = TABLE.assign(age=ages)
    said = r"Column 'age' is text for 5 cells \('\?' 5 times\): its other 55 cells are numbers"
    with pytest.warns(UserWarning, match=said):
        MixtureDensity(random_state=0).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixtureDensity(categorical_features=["age", "city"], random_state=0).fit(table)
        MixtureDensity(random_state=0).fit(table.astype({"age": "category"}))


@pytest.mark.parametrize("cells", [["a1", "b2"] * 30, ["1", "2"] * 30, ["1", "x"] * 30])
def test_codes_and_mixtures_of_text_are_no_slips(cells: list[str]) -> None:
    MixtureDensity(random_state=0).fit(TABLE.assign(code=cells))


@pytest.mark.parametrize(
    ("factor", "offset", "said"),
    [
        (1000.0, 0.0, "'petal' is 1e\\+03 times larger"),
        (1 / 25.4, 0.0, "'petal' is 25.4 times smaller"),
        (1.0, 400.0, "'petal' is 40. more"),
    ],
)
def test_another_unit_is_told_where_it_is_predicted(
    factor: float, offset: float, said: str
) -> None:
    iris = load_iris()
    X = pd.DataFrame({"petal": 5 + iris.data[:, 0], "sepal": iris.data[:, 1]})
    model = HybridMixtureClassifier(objective="likelihood", random_state=0).fit(X, iris.target)
    model.predict(X.iloc[:30])
    changed = X.assign(petal=factor * X["petal"] + offset)
    with pytest.warns(UserWarning, match=said):
        model.predict(changed)
    model.predict(changed.iloc[:5])  # so few cells tell nothing of a unit


def test_columns_that_lack_or_are_new_have_their_sentence() -> None:
    model = HybridMixtureClassifier(random_state=0).fit(TABLE, Y)
    with pytest.raises(ValueError, match="now missing:\n- stage"):
        model.predict(TABLE.drop(columns="stage"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
        model.predict(TABLE.assign(more=1.0))
    with pytest.warns(UserWarning, match="not seen at fit \\('city': 'Mainz'\\)"):
        model.predict(TABLE.assign(city="Mainz"))
