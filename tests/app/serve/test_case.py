"""The page of a case: its figures are the estimator's, its texts are escaped, what it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import bayesrbf
from bayesrbf.app import explain
from bayesrbf.app.check import training_cells
from bayesrbf.app.explain import ClassAnswer
from bayesrbf.app.predict import read_labelled
from bayesrbf.app.report.options import OPTIONS, Purpose, options_content, read_options
from bayesrbf.app.report.output import held_out_rows
from bayesrbf.app.serve import case
from bayesrbf.app.serve.served import ON_CARD, ModelFolder, RequestError, ServedModel
from bayesrbf.app.words import number, percent
from bayesrbf.base import names
from bayesrbf.base.table_options import TableOptions
from tests.app.links import dead_links
from tests.app.serve.desks import (
    COSTS,
    HOSTILE,
    ask,
    page,
    patients,
    serve_here,
    write_desk,
    write_report,
)
from tests.cases import first_quick, generative
from tests.commands import command

TABLE = patients()
FORM = {"cell-0": "61,5", "cell-3": HOSTILE}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk")
    options = TableOptions(dates=("seen",))
    model = write_desk(path, TABLE, options=options, refine={"method": "laplace", "draws": 50})
    write_report(path, TABLE, model)
    return path


@pytest.fixture(scope="module", autouse=True)
def served(folder: Path) -> ServedModel:
    desk = ModelFolder("", folder, refer=0.3)
    serve_here(desk)
    return ServedModel.of(desk)


def row(**cells: object) -> pd.DataFrame:
    """A row with some cells."""
    usual: dict[str, object] = {"age": np.nan, "dose": np.nan, "seen": np.nan, "ward": None}
    frame = pd.DataFrame([usual | cells])
    return frame.astype({"age": float, "dose": float, "seen": float, "ward": "str"})


def test_a_form_is_read_as_the_row_it_says(served: ServedModel) -> None:
    form = FORM | {"cell-1": "1.5", "cell-2": "2022-01-31"}
    read = case.row_of(served, form)
    expected = row(age=61.5, dose=1.5, seen=8066.0, ward=HOSTILE)
    pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_a_training_row_fills_the_form_that_is_read_as_that_row(served: ServedModel) -> None:
    for place in (0, 7, 30):
        read = case.row_of(served, case.form_of(served, place))
        expected = served.cells.iloc[[place]].reset_index(drop=True)
        pd.testing.assert_frame_equal(read, expected, check_dtype=False)


def test_a_training_row_is_filled_in_exactly_however_numbers_are_written(tmp_path: Path) -> None:
    table = patients()
    table["dose"] = np.nextafter(table["dose"], 0)  # as next to a limit
    table["seen"] += 0.25
    for thousands, decimal in ((".", ","), (".", None), (None, ","), (",", None)):
        options = TableOptions(thousands=thousands, decimal=decimal, dates=("seen",), id="case")
        write_desk(tmp_path, table, options=options)
        here = ServedModel.of(ModelFolder("", tmp_path))
        for place in range(20):
            read = case.row_of(here, case.form_of(here, place))
            expected = here.cells.iloc[[place]].reset_index(drop=True)
            pd.testing.assert_frame_equal(read, expected, check_dtype=False, check_exact=True)


@pytest.mark.filterwarnings("ignore:.*takes the label .* for a class")
@pytest.mark.parametrize(
    "labels", first_quick([("-1", "1"), ("None", "Severe"), ("NA", "+"), ("=a", "'b")], 2)
)
def test_odd_names_of_classes_and_rows_are_those_of_the_folder(
    labels: tuple[str, str], tmp_path: Path
) -> None:
    table = patients()
    table["outcome"] = table["outcome"].map(dict(zip(("ill <b>", "well"), labels, strict=True)))
    fitted = write_desk(tmp_path, table, options=TableOptions(id="case"), costs={})
    here = ServedModel.of(ModelFolder("", tmp_path))
    found = held_out_rows(tmp_path, here.classes)
    assert found is not None
    assert found[0] == pytest.approx(fitted.predict_proba(table.drop(columns="outcome")))
    assert [here.classes[code] for code in found[1]] == table["outcome"].tolist()
    assert here.predictions["label"].tolist() == table["outcome"].tolist()
    assert here.predictions["case"].tolist()[:2] == ["000", "001"]


def test_parts_have_the_figures_of_the_estimator(served: ServedModel) -> None:
    given, model = row(age=61.5, ward=HOSTILE), served.estimator
    p = model.predict_proba(given)[0]
    text = page("part-answer", FORM)
    assert all(percent(share) in text for share in p)
    decision = case.decision_of(served, given)
    assert decision is not None
    costs = dict(decision.costs)
    assert costs["well"] == pytest.approx(COSTS["ill <b>"] * p[0])
    assert decision.refer == (min(costs.values()) > 0.3)
    why = explain.why(model, given, "well")
    assert why.base + sum(cell.adds for cell in why.cells) == pytest.approx(why.log_odds)
    gains = model.acquire_cells(given)["gain"].to_numpy()[0]
    measured = case.measurements_of(served, given) or []
    names = [served.fields[j].name for j in np.argsort(-gains) if gains[j] > 0]
    assert [one.column for one in measured] == names


def test_a_curve_passes_through_the_answer(served: ServedModel) -> None:
    field = served.fields[0]
    curve = case.along(served, row(age=field.low, ward=HOSTILE), field, "well")
    p = served.estimator.predict_proba(row(age=field.low, ward=HOSTILE))[0]
    assert curve.at[0] == field.low == curve.present
    assert curve.probability[0] == pytest.approx(p[served.classes.index("well")])
    assert all(
        low <= p <= high
        for low, p, high in zip(curve.lower, curve.probability, curve.upper, strict=True)
    )
    levels = case.along(served, row(age=60.0, ward="b & c"), served.fields[3], "well")
    assert len(levels.at) == 2
    assert levels.present == [level for level, _ in served.fields[3].levels].index("b & c")


def test_a_curve_along_a_missing_cell_moves_no_indicator(tmp_path: Path) -> None:
    """Its mean over what the cell may hold is the answer without it, and not that of a cell that
    was measured in the table, which is a sign of the class here."""
    holes = (TABLE["outcome"] == "well") & (np.arange(len(TABLE)) % 8 > 0)
    model = generative(n_init=1, missingness="informative", random_state=0)
    write_desk(tmp_path, TABLE.assign(ward=TABLE["ward"].mask(holes)), model)
    served = ServedModel.of(ModelFolder("", tmp_path))
    given, field = row(age=60.0, dose=2.0), served.fields[3]
    levels = [level for level, _ in field.levels]
    masses = model.conditional(given, "ward").probabilities("ward")[levels].to_numpy()[0]
    curve = case.along(served, given, field, "well").probability
    answer = model.predict_proba(given)[0, served.classes.index("well")]
    assert masses @ curve == pytest.approx(answer, rel=1e-9)
    with pytest.raises(ValueError, match=r"must have the 1 rows of X, in memory; received 2"):
        model.uncertainty(given, asked_at=pd.concat([given] * 2))
    filled = model.predict_proba(given.assign(ward=levels[0]))
    assert abs(filled[0, served.classes.index("well")] - curve[0]) > 0.1


def test_what_was_shown_before_is_compared_with() -> None:
    first = page("part-answer", FORM)
    found = re.search(r'name="before" value="([^"]*)"', first)
    assert found is not None
    assert "since the last answer" not in page("part-answer", FORM | {"before": found[1]})
    assert "since the last answer" in page("part-answer", {"before": found[1]})
    for odd in ("x y", "1", "2 -1", "nan nan"):
        assert "since the last answer" not in page("part-answer", FORM | {"before": odd})


def test_novelty_is_said_before_the_probability() -> None:
    text = page("part-answer", {"cell-0": "61", "cell-1": "900"})
    assert 0 < text.index("unlike the training table") < text.index('class="classes"')
    assert "unlike" not in page("part-answer", FORM)


def test_without_javascript_the_page_has_every_part() -> None:
    text = page("answered", FORM | {"column": "0"})
    for words in ("How probable", "What to do", "Along age", "Why", "measure next", "looks wrong"):
        assert words in text
    assert 'value="61,5"' in text
    assert {f'id="part-{part.name}"' in text for part in case.PANELS} == {True}


def test_an_empty_case_is_answered() -> None:
    text = page("answered")
    assert "Of 100 such rows" in text


def test_a_training_row_is_shown_with_what_was_held_out(served: ServedModel) -> None:
    text = page("page", row="3")
    held_out = served.predictions.iloc[2]
    assert percent(held_out[f"held_out_{held_out['label']}"]) in text


@pytest.mark.parametrize("number", ["0", "81", "x", "-1", "1" * 400, "²", "0" * 12 + "99999"])
def test_a_row_that_is_not_there_is_refused(number: str) -> None:
    reply = ask("page", row=number)
    assert reply.status == 422
    assert "from 1 to 80" in reply.content.decode()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"cell-0": "old", "cell-1": "much"}, ("'age'", "'dose'")),
        ({"cell-0": "9" * 2000}, ("at most",)),
        ({"cell-3": "\x00"}, ("plain text",)),
    ],
)
def test_bad_cells_are_said_on_the_page_and_in_its_parts(
    form: dict[str, str], words: tuple[str, ...]
) -> None:
    from urllib.parse import urlencode

    body = urlencode(form).encode()
    for task in ("answered", "part-answer", "export"):
        reply = ask(task, body)
        assert reply.status == 422
        text = unescape(reply.content.decode())
        assert all(word in text for word in words), task


@pytest.mark.parametrize(("thousands", "written"), [(".", "1234,5"), (None, "1234.5")])
def test_advice_is_how_the_table_writes_numbers(
    thousands: str | None, written: str, tmp_path: Path
) -> None:
    write_desk(tmp_path, TABLE, options=TableOptions(thousands=thousands))
    here = ServedModel.of(ModelFolder("", tmp_path))
    with pytest.raises(RequestError, match=re.escape(written)) as refused:
        case.row_of(here, {"cell-0": "old"})
    assert "--" not in str(refused.value)


def test_the_card_tells_of_an_update(folder: Path, tmp_path: Path) -> None:
    model = bayesrbf.load(folder / "model.safetensors")
    rows = training_cells(model).iloc[:20]
    labels = model.classes_[model.rows_.labels[:20]]
    copytree(folder, tmp_path / "desk")
    updated = bayesrbf.recalibrate(model, rows, labels, "intercept")
    updated.save(tmp_path / "desk" / "model.safetensors")
    here = ModelFolder("", tmp_path / "desk")
    (sentence,) = ServedModel.of(here).card["updates"]
    assert "with 20 labelled rows" in sentence
    serve_here(here)
    try:
        assert sentence in unescape(page("card"))
    finally:
        serve_here(ModelFolder("", folder, refer=0.3))
    assert "labelled rows:" not in page("card")


def test_the_card_says_what_the_model_is_for(folder: Path, tmp_path: Path) -> None:
    assert unescape(page("card")).count("its author has not said it") == 2
    assert "<dt>validated</dt>" not in page("card")
    copytree(folder, tmp_path / "desk")
    told = read_options(folder)
    meant = Purpose("Nurses decide <whom> to call", None)
    options = replace(told, focus=replace(told.focus, purpose=meant))
    (tmp_path / "desk" / OPTIONS).write_bytes(options_content(options))
    serve_here(ModelFolder("", tmp_path / "desk"))
    try:
        text = page("card")
        content = json.loads(ask("model").content)
    finally:
        serve_here(ModelFolder("", folder, refer=0.3))
    assert "Nurses decide &lt;whom&gt; to call" in text
    assert text.count("its author has not said it") == 1
    assert (content["intended_use"], content["population"]) == (meant.intended_use, None)


def test_the_card_has_the_figures_of_the_validation_in_its_folder(
    folder: Path, tmp_path: Path
) -> None:
    """And none where there is none, or where it is of another model or is damaged."""
    here, new = tmp_path / "desk", tmp_path / "new.csv"
    copytree(folder, here)
    patients(60, 1).assign(seen="2023-05-06").to_csv(new, index=False)
    served = ModelFolder("", here)

    def told() -> tuple[str, Any]:
        serve_here(served)
        try:
            return unescape(page("card")), json.loads(ask("model").content)["validation"]
        finally:
            serve_here(ModelFolder("", folder, refer=0.3))

    assert command("validate", here, new, "--out", here).code in (0, 3)
    assert dead_links(here) == []
    text, figures = told()
    model = bayesrbf.load(here / "model.safetensors")
    loss = next(one["value"] for one in figures["scores"] if one["name"] == "log loss")
    X, y, _ = read_labelled(model, new, "outcome", read_options(here))
    result = bayesrbf.validate(model, X, y, costs={"ill <b>": 5.0})
    area = result.against_rest["ill <b>"].auroc.value
    assert loss == pytest.approx(result.scores[0].value)
    told_here = (f"{number(loss)} nats of surprise", f"{number(area)} (", "60 rows that it had not")
    for said in told_here:
        assert said in text.partition("How good it is on new.csv")[2]
    assert all(said in text for said in (figures["advice"], figures["verdict"]))
    content = (here / "validation.json").read_bytes()
    for damaged in (b"", b"[]", b"[" * 9, b'{"model": 1}'):
        (here / "validation.json").write_bytes(damaged)
        assert told()[1] is None
    (here / "validation.json").write_bytes(content)
    assert told()[1] == figures
    (here / "validation.html").unlink()
    assert told()[1] is None
    (here / "validation.html").touch()
    bayesrbf.recalibrate(model, X, y, "intercept").save(here / "model.safetensors")
    text, figures = told()
    assert figures is None
    assert "How good it is on" not in text


def test_no_text_of_the_table_becomes_markup() -> None:
    for text in (page("answered", FORM), page("page"), page("card"), page("api")):
        assert "<script>alert" not in text
        assert "ill <b>" not in text
    assert "ill &lt;b&gt;" in page("card")


def test_an_exported_case_has_the_cells_and_the_answers(served: ServedModel) -> None:
    reply = ask("export", b"cell-0=61%2C5&label=well")
    content = json.loads(reply.content)
    assert "case.json" in reply.headers["Content-Disposition"]
    assert content["cells"] == {"age": 61.5, "dose": None, "seen": None, "ward": None}
    p = served.estimator.predict_proba(row(age=61.5))[0]
    assert {one["label"]: one["probability"] for one in content["classes"]} == pytest.approx(
        dict(zip(served.classes, p, strict=True))
    )
    assert [cell["column"] for cell in content["why"]["cells"]] == ["age"]


def test_the_card_says_of_held_out_rows_what_the_report_says(
    served: ServedModel, folder: Path
) -> None:
    names = [f"held_out_{label}" for label in served.classes]
    p = served.predictions[names].to_numpy()
    loss = log_loss(served.predictions["label"], p, labels=served.classes)
    content = json.loads(ask("model").content)
    assert content["held_out"]["scores"]["log loss"]["value"] == pytest.approx(loss)
    text = unescape(page("card"))
    told = json.loads((folder / "report.json").read_text())
    lines = [line for _, line in told["lines"]]
    assert all(said in text for said in (told["verdict"], told["evidence"], *lines))
    assert told["evidence"] in unescape(page("page"))
    assert set(content["held_out"]["sentences"]) <= set(ON_CARD) < set(told["sentences"])
    assert content["rows"] == 80
    assert [column["kind"] for column in content["columns"]] == [
        "real",
        "real",
        "date",
        "categorical",
    ]


def test_fields_know_the_range_of_their_column(served: ServedModel) -> None:
    age, dose, seen, ward = served.fields
    assert TABLE["age"].min() <= age.low < age.high <= TABLE["age"].max()
    assert seen.kind.of_texts
    assert re.fullmatch(r"\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d", seen.extent)
    shares = TABLE["ward"].value_counts(normalize=True)
    assert dict(ward.levels) == pytest.approx(shares.to_dict())
    assert max(dose.bars) == 1.0


def test_an_empty_case_has_no_advice(served: ServedModel) -> None:
    assert case.decision_of(served, row()) is None
    assert "What to do" not in page("answered")


def test_an_open_interval_is_no_count_of_rows() -> None:
    wide = case.CaseClass(ClassAnswer("well", 0.5, 0.01, 0.99), np.nan)
    assert wide.is_open
    assert not case.CaseClass(ClassAnswer("well", 0.5, 0.2, 0.9), np.nan).is_open


def test_training_rows_may_be_kept_back(tmp_path: Path) -> None:
    write_desk(tmp_path, TABLE)
    serve_here(ModelFolder("", tmp_path, shows_rows=False))
    assert "Fill in" not in page("page")
    reply = ask("page", row="1")
    assert reply.status == 422
    assert "does not show training rows" in reply.content.decode()
    serve_here(ModelFolder("", tmp_path))
    assert "Fill in" in page("page")


def test_the_page_says_why_an_interval_is_so_wide(served: ServedModel, tmp_path: Path) -> None:
    given = row(age=61.5)
    assert case.interval_components(served, given, "well") is None  # its intervals assume the model
    assert "so wide" not in page("answered", FORM)
    desk = ModelFolder("", tmp_path)
    stack = bayesrbf.StackedClassifier(("laplace_short", "mixture"), random_state=0)
    model = write_desk(tmp_path, TABLE, stack, refine={"method": "laplace", "draws": 50})
    serve_here(desk)
    assert page("part-interval", FORM | {"label": "well"})
    told = case.interval_components(ServedModel.of(desk), given, "well")
    assert told is not None
    of_estimator = bayesrbf.explain_interval(model, given).sel(label="well").isel(obs=0)
    assert [lower for _, lower, _ in told.parts] == of_estimator[
        "component_lower"
    ].to_numpy().tolist()
    assert [upper for _, _, upper in told.parts] == of_estimator[
        "component_upper"
    ].to_numpy().tolist()


FAMILIES: dict[str, Any] = {
    "stack": lambda: bayesrbf.StackedClassifier(random_state=0),
    "rbf": lambda: bayesrbf.RBFNetworkClassifier(3, random_state=0),
    "sdgm": lambda: bayesrbf.SDGMClassifier(1, n_init=1, random_state=0),
    "kernel": lambda: bayesrbf.KernelNetworkClassifier(random_state=0),
    "median_lvq": lambda: bayesrbf.MedianLVQClassifier(random_state=0),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_its_page(family: str, tmp_path: Path) -> None:
    write_desk(tmp_path, TABLE, FAMILIES[family]())
    desk = ModelFolder("", tmp_path)
    previous = ServedModel.of(desk)
    serve_here(desk)
    text = page("answered", FORM | {"column": "0"})
    assert "How probable" in text
    assert ("no density" in text) == (not previous.has_density)
    assert page("card")
    assert json.loads(ask("openapi").content)["openapi"].startswith("3.")


def test_a_stack_says_after_an_update_why_an_interval_is_so_wide(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["age", "dose"])
    y = np.where(X["age"] + rng.normal(size=60) > 0, "ill", "well")
    model = bayesrbf.StackedClassifier(["laplace", "normal"], cv=2, random_state=0).fit(X, y)
    updated = bayesrbf.recalibrate(model.refine("laplace", draws=50), X[:30], y[::-1][:30], "slope")
    updated.save(tmp_path / "model.safetensors")
    served_here = ServedModel.of(ModelFolder("", tmp_path))
    uncertainty = case.interval_components(served_here, X.iloc[:1], "ill")
    assert uncertainty is not None
    assert [case.COMPONENT_WORDS[names.UPDATE]] == [
        what for what, *_ in uncertainty.parts if "update" in what
    ]
