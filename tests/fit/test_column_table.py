"""What columns were taken for, and sentences on columns that are not what they were."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from bayesrbf import HybridMixtureClassifier, MedianLVQClassifier, MixtureDensity, check, load
from bayesrbf.app.check import changed as changed_columns
from bayesrbf.datasets import load_table
from bayesrbf.fit.reading import column_doubts
from bayesrbf.inference.diagnose import PosteriorWarning
from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import encode

CLEAN = (
    *("breast_cancer", "credit_approval", "crabs", "fgl", "glass", "heart_cleveland"),
    *("heart_statlog", "hepatitis", "horse_colic_train", "house_votes84", "iris", "mushroom"),
    *("pima_train", "pima_uci_missing", "ripley_synth_train", "segment_train", "sonar"),
    *("soybean", "vehicle", "vowel_train", "wine"),
)
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(50, 10, 60),
        "city": RNG.choice(["Bonn", "Köln"], 60),
        "visits": RNG.poisson(3, 60),
        "stage": pd.Categorical(RNG.integers(1, 4, 60), [3, 2, 1], ordered=True),
    }
)
TABLE.loc[:4, "age"] = np.nan
Y = RNG.choice(["a", "b"], 60)


def doubts(X: pd.DataFrame) -> str:
    columns = learn_columns(X)
    return column_doubts(X, columns, encode(X, columns), named=False)


def test_columns_are_described_and_kept_in_a_file(tmp_path: object) -> None:
    density = MixtureDensity(column_transforms="power", random_state=0).fit(TABLE)
    found = density.columns_.table()
    assert found.index.tolist() == list(TABLE)
    assert found["kind"].tolist() == ["real", "categorical", "real", "ordered"]
    assert found["levels"].tolist() == [None, ["Bonn", "Köln"], None, [3, 2, 1]]
    assert found["missing"].tolist() == [5, 0, 0, 0]
    density.save(f"{tmp_path}/m.safetensors")
    pd.testing.assert_frame_equal(load(f"{tmp_path}/m.safetensors").columns_.table(), found)


def test_missing_cells_are_those_of_the_rows_that_weigh() -> None:
    weights = np.r_[np.zeros(3), np.ones(57)]
    model = HybridMixtureClassifier(random_state=0).fit(TABLE, Y, sample_weight=weights)
    assert model.columns_.table().loc["age", "missing"] == 2


def test_exemplars_describe_compared_tables() -> None:
    model = MedianLVQClassifier(metric="gower", sigma=1.0, random_state=0).fit(TABLE, Y)
    assert model.columns_.table()["missing"].tolist() == [5, 0, 0, 0]


def test_numbers_but_for_a_few_cells_are_told() -> None:
    # No word for missing: these are told of categories that were named, too.
    ages = TABLE["age"].round().astype(object).where(TABLE["age"].notna(), "old").map(str)
    table = TABLE.assign(age=ages)
    said = r"Column 'age' is text for 5 cells \('old' 5 times\): its other 55 cells are numbers"
    with pytest.warns(UserWarning, match=said):
        MixtureDensity(random_state=0).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixtureDensity(categorical_features=["age", "city"], random_state=0).fit(table)
        MixtureDensity(random_state=0).fit(table.astype({"age": "category"}))


def test_the_remedy_for_numbers_as_text_is_said_once() -> None:
    texts = TABLE["age"].where(TABLE["age"].notna(), 50).map(lambda age: f"{age:.1f}")
    table = TABLE.assign(age=texts, size=texts.str.replace(".", ","))
    sentence = doubts(table)
    assert sentence.count("holds numbers written as text") == 2
    assert sentence.count("read_table(X)") == 1


def test_a_doubtful_table_is_told_once_and_found_again(tmp_path: Path) -> None:
    """In one sentence, whatever is wrong; diagnose has it, from a file, too."""
    table = TABLE.assign(
        case=np.arange(1000, 1060),
        ages=TABLE["age"].round().astype(object).where(TABLE["age"].notna(), "?").map(str),
        dose=np.where(np.arange(60) % 6 == 0, -999.0, TABLE["age"]),
        city=TABLE["city"].where(np.arange(60) % 9 != 0, "n/k"),
    )
    with pytest.warns(UserWarning, match="'case' has whole numbers that count") as told:
        density = MixtureDensity(random_state=0).fit(table)
    assert len(told) == 1
    sentence = str(told[0].message)
    assert "Column 'ages' is text for 5 cells ('?' 5 times): its other 55 cells" in sentence
    assert "column 'dose' holds -999 in 10 cells, far from all other values (if" in sentence
    assert "column 'city' holds 'n/k' in 7 cells, read as a category (if" in sentence
    assert sentence.count(".") == 1
    density.save(tmp_path / "m.safetensors")
    for one in (density, load(tmp_path / "m.safetensors")):
        with pytest.warns(PosteriorWarning, match="doubtful_columns = 4"):
            found = one.diagnose().set_index("row").loc["doubtful_columns"]
        assert (found["value"], found["sentence"], found["good"]) == (4, sentence, False)
    assert "doubtful_columns" not in density.fit(TABLE).diagnose()["row"].tolist()


@pytest.mark.parametrize("name", CLEAN)
def test_clean_tables_are_not_doubtful(name: str, data_folder: Path) -> None:
    X = load_table(name).X
    assert doubts(X) == ""


def test_exemplars_tell_of_their_table() -> None:
    with pytest.warns(UserWarning, match="'case' has whole numbers that count"):
        MedianLVQClassifier(metric="gower", sigma=1.0, random_state=0).fit(
            TABLE.assign(case=np.arange(60)), Y
        )


@pytest.mark.parametrize("cells", [["a1", "b2"] * 30, ["1", "2"] * 30, ["1", "x"] * 30])
def test_codes_and_mixtures_of_text_are_no_slips(cells: list[str]) -> None:
    MixtureDensity(random_state=0).fit(TABLE.assign(code=cells))


@pytest.mark.parametrize("rows", [1, 30])
@pytest.mark.parametrize("factor", [1000.0, 2.2, 1 / 25.4])
def test_cells_far_outside_of_training_are_told_of_a_row_and_of_a_table(
    factor: float, rows: int
) -> None:
    iris = load_iris()
    X = pd.DataFrame({"petal": 5 + iris.data[:, 0], "sepal": iris.data[:, 1]})
    model = HybridMixtureClassifier(objective="likelihood", random_state=0).fit(X, iris.target)
    new = X.iloc[:rows]
    model.predict_proba(new)
    changed = new.assign(petal=factor * new["petal"])
    many = "1 cell" if rows == 1 else "30 cells"
    said = f"Column 'petal' has {many} far outside of training, where it is 9.3 to 12.9: "
    with pytest.warns(UserWarning, match=said) as told:
        model.predict_proba(changed)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=said):
        model.explain(changed)


def test_exchanged_columns_are_told_by_check_and_by_what_reads_files() -> None:
    """Each is far outside what it was, as in another unit, and is what the other was."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    X = pd.DataFrame({"height": 170 + 9 * size, "weight": 68 + 8 * size + rng.normal(size=200)})
    model = HybridMixtureClassifier(objective="likelihood", random_state=0).fit(X, size > 0)
    turned = X.iloc[:40].rename(columns={"height": "weight", "weight": "height"})[list(X)]
    with pytest.warns(UserWarning, match="'height' has 40 cells far outside .*'weight' has 40"):
        model.predict_proba(turned)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said, advised = changed_columns(model, turned)
        remarks = check(model, turned).remarks
    assert "the other way round" in said
    assert advised.startswith("Exchange columns 'height' and 'weight' back.")
    assert "times too" not in said
    assert [one.topic for one in remarks if one.topic in ("unit", "exchanged")] == ["exchanged"]


def test_many_more_holes_than_in_training_are_told_once() -> None:
    X = TABLE[["age", "city"]]
    model = HybridMixtureClassifier(objective="likelihood", random_state=0).fit(X, Y)
    model.predict_proba(X)
    holes = X.assign(age=np.where(np.arange(60) < 30, np.nan, 1000 * X["age"]))
    with pytest.warns(
        UserWarning, match="'age' is missing in 50% of 60 rows, in training in 8%"
    ) as told:
        model.predict_proba(holes)
    assert len(told) == 1
    assert "Column 'age' has 30 cells far outside of training" in str(told[0].message)
    model.predict_proba(X.assign(city=None).iloc[:5])  # so few rows tell nothing
    model.novelty(X.assign(city=None))  # who asks about holes knows of them


def test_columns_that_lack_or_are_new_have_their_sentence() -> None:
    model = HybridMixtureClassifier(random_state=0).fit(TABLE, Y)
    with pytest.raises(ValueError, match="now missing:\n- stage"):
        model.predict(TABLE.drop(columns="stage"))
    with pytest.warns(UserWarning, match="not there at fit \\('more'\\); they are not looked at"):
        p = model.predict_proba(TABLE.assign(more=1.0)[["more", *TABLE.columns]])
    np.testing.assert_array_equal(p, model.predict_proba(TABLE))
    with pytest.raises(ValueError, match=r"(?s)unseen.*- Stage.*now missing.*- stage"):
        model.predict(TABLE.rename(columns={"stage": "Stage"}))
    with pytest.warns(UserWarning, match="not seen at fit \\('city': 'Mainz'\\)"):
        model.predict(TABLE.assign(city="Mainz"))
