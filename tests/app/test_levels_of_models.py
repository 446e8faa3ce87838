"""A model fitted in Python finds its levels in files, on the page and over HTTP."""

from __future__ import annotations

import datetime
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.predict import complete_blocks, read_complete, read_labelled
from bayesrbf.app.report.options import ReportOptions
from bayesrbf.app.serve import case
from bayesrbf.app.serve.served import CSV, PARQUET, ModelFolder, ServedModel
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.notes import ColumnWarning
from tests.app.serve.desks import answers, ask, page, problems, serve_here
from tests.cases import some_quick

LEVELS: dict[str, list[Any]] = {
    "numbers": [0, 1, 2],
    "negative numbers": [-1, 0, 1],
    "decimals": [0.5, 1.0, 1e-7],
    "booleans": [True, False, False],
    "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
    "times": [pd.Timestamp(2020, 1, day, 12 * (day > 1)) for day in (1, 2, 3)],
    "long numbers": [2**60, 2**60 + 1, 2**60 + 2],
    "numbers as text": ["0.0", "1.0", "2.0"],
    "codes": ["250", "250.0", "250.00"],
    "words for missing": ["NA", "ZA", "null"],
}
N = 120


def trained(kind: str) -> tuple[HybridMixtureClassifier, pd.DataFrame, np.ndarray]:
    """A model whose classes depend on a column of levels, and its table."""
    rng = np.random.default_rng(1)
    which, a = rng.integers(0, 3, N), rng.normal(size=N).round(3)
    cells = pd.Categorical([LEVELS[kind][place] for place in which])
    y = np.where(2.0 * (which == 1) + a + 0.5 * rng.normal(size=N) > 0.7, "yes", "no")
    X = pd.DataFrame({"a": a, "level": cells})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # that codes are apart
        model = HybridMixtureClassifier(1, random_state=0).fit(X, y)
    return model, X, y


@pytest.fixture(params=some_quick(LEVELS, "booleans", "times", "codes"))
def fitted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, ...]:
    model, X, y = trained(request.param)
    model.save(tmp_path / "model.safetensors")
    serve_here(ModelFolder("", tmp_path))
    return model, X, y, model.predict_proba(X)


@pytest.mark.filterwarnings("error")
def test_files_have_the_levels_of_a_model(fitted: tuple[Any, ...], tmp_path: Path) -> None:
    model, X, y, p = fitted
    X.to_csv(tmp_path / "new.csv", index=False)
    rows = read_complete(model, tmp_path / "new.csv")
    np.testing.assert_array_equal(model.predict_proba(rows), p)
    blocks = complete_blocks(model, tmp_path / "new.csv", size=50)
    np.testing.assert_array_equal(np.concatenate([model.predict_proba(b) for b in blocks]), p)
    assert bayesrbf.check(model, rows).findings == ()
    assert bayesrbf.check(model, X).findings == ()
    in_python, of_file = (bayesrbf.validate(model, table, y) for table in (X, rows))
    assert of_file.to_dict() == in_python.to_dict()
    assert of_file.remarks[0].topic == "not new"  # its cells are those of training


@pytest.mark.filterwarnings("error")
def test_answers_over_http_are_those_in_python(fitted: tuple[Any, ...]) -> None:
    _, X, _, p = fitted
    of_json = [
        {"a": a, "level": cell if isinstance(cell, str | int | float) else str(cell)}
        for a, cell in zip(X["a"], X["level"].tolist(), strict=True)
    ][:20]
    told = pd.DataFrame(answers(ask("predict", of_json)))["probability_yes"]
    np.testing.assert_allclose(told, p[:20, 1], rtol=1e-12)
    parquet = io.BytesIO()
    X[:20].astype({"level": X["level"].cat.categories.dtype}).to_parquet(parquet)
    bodies = {CSV: X[:20].to_csv(index=False).encode(), PARQUET: parquet.getvalue()}
    for form, body in bodies.items():
        content = ask("predict", body, form).content
        read = pd.read_csv if form == CSV else pd.read_parquet
        told = read(io.BytesIO(content))["probability_yes"]
        np.testing.assert_allclose(told, p[:20, 1], rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_the_page_offers_the_levels_and_takes_them(fitted: tuple[Any, ...], tmp_path: Path) -> None:
    model, _, _, p = fitted
    served = ServedModel.of(ModelFolder("", tmp_path))
    names = [name for name, _ in served.fields[1].levels]
    assert names == [str(level) for level in model.columns_.kinds[1].levels_in_order]
    assert all(f'<option value="{name}"' in page("page") for name in names)
    for place in range(4):
        form = case.form_of(served, place)
        row = case.row_of(served, form)
        np.testing.assert_allclose(model.predict_proba(row), p[[place]], rtol=1e-12)
        along = case.along(served, row, served.fields[1], "yes")
        at = names.index(row["level"].iloc[0])
        assert (along.present, along.probability[at]) == (at, pytest.approx(p[place, 1]))
    form = case.form_of(served, 0)
    assert f"{100 * p[0].max():.1f}".removesuffix(".0") in page("answered", form)
    assert "not seen at fit" not in page("answered", form)


def test_ways_to_write_a_level_in_json(tmp_path: Path) -> None:
    for kind, ways in {"numbers": (1, 1.0, "1", "1.0"), "booleans": (True, "True", "TRUE")}.items():
        model, X, _ = trained(kind)
        model.save(tmp_path / "model.safetensors")
        serve_here(ModelFolder("", tmp_path))
        row = X[X["level"] == LEVELS[kind][1 if kind == "numbers" else 0]].head(1)
        right = model.predict_proba(row)[0, 1]
        rows = [{"a": float(row["a"].iloc[0]), "level": way} for way in ways]
        told = [line["probability_yes"] for line in answers(ask("predict", rows))]
        assert told == pytest.approx([right] * len(ways), rel=1e-12)
        assert problems(ask("predict", {"a": True, "level": ways[0]}))
    schema = json.loads(ask("openapi").content)["components"]["schemas"]["Row"]
    enum = schema["properties"]["level"]["enum"]
    assert [(type(one), one) for one in enum[2:]] == [
        (str, "False"),
        (str, "True"),
        (type(None), None),
    ]
    assert set(enum[:2]) == {False, True}


def test_true_is_refused_where_it_is_no_level(tmp_path: Path) -> None:
    model, _, _ = trained("numbers as text")
    model.save(tmp_path / "model.safetensors")
    serve_here(ModelFolder("", tmp_path))
    (problem,) = problems(ask("predict", {"a": 1, "level": True}))
    assert "a cell must be a number, text or null; received true or false" in problem


@pytest.mark.filterwarnings("ignore:.*takes the label 'NA' for a class")
def test_labels_are_read_as_the_classes(tmp_path: Path) -> None:
    _, X, y = trained("numbers")
    X.assign(outcome=np.where(y == "yes", "TRUE", "false")).to_csv(tmp_path / "t.csv", index=False)
    truth = HybridMixtureClassifier(1, random_state=0).fit(X, y == "yes")
    _, labels, _ = read_labelled(truth, tmp_path / "t.csv", None, ReportOptions("outcome"))
    assert labels.tolist() == [str(label) for label in y == "yes"]
    X.assign(outcome=np.where(y == "yes", "NA", "ZA")).to_csv(tmp_path / "t.csv", index=False)
    countries = HybridMixtureClassifier(1, random_state=0).fit(X, np.where(y == "yes", "NA", "ZA"))
    _, labels, _ = read_labelled(countries, tmp_path / "t.csv", "outcome", ReportOptions("outcome"))
    assert set(labels) == {"NA", "ZA"}


def test_stand_ins_of_the_training_table_are_still_missing(tmp_path: Path) -> None:
    model, X, _ = trained("numbers")
    X[:3].assign(level=["-9", "1", "NA"]).to_csv(tmp_path / "t.csv", index=False)
    rows = read_complete(model, tmp_path / "t.csv", TableOptions(na=("-9",)))
    assert rows["level"].isna().tolist() == [True, False, True]
