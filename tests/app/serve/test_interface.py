"""The interface: its answers are the estimator's, whatever form the rows have; what it refuses."""

from __future__ import annotations

import gzip
import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier, read_table
from bayesrbf.app.serve import interface, rows
from bayesrbf.app.serve.questions import QUESTIONS, Question
from bayesrbf.app.serve.served import CSV, JSON, PARQUET, Limits, ModelFolder, ServedModel
from bayesrbf.base.table_options import TableOptions
from bayesrbf.table.encode import encode
from tests.app.serve.desks import (
    COSTS,
    HOSTILE,
    LIMITS,
    answers,
    ask,
    page,
    patients,
    problems,
    serve_here,
    write_desk,
)

TABLE = patients()
NEW = TABLE.drop(columns="outcome").head(5)


@pytest.fixture(scope="module", autouse=True)
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("desk")
    fitted = write_desk(folder, TABLE, refine={"method": "laplace", "draws": 50})
    serve_here(ModelFolder("", folder, refer=0.3))
    return fitted


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as rows of JSON."""
    return [
        {name: cell for name, cell in row.items() if not pd.isna(cell)}
        for row in frame.to_dict("records")
    ]


def p_of(lines: list[dict[str, Any]], model: Any) -> np.ndarray:
    """The probabilities in some answers."""
    return np.array([[line[f"probability_{label}"] for label in model.classes_] for line in lines])


@pytest.mark.parametrize("form", [JSON, CSV, PARQUET])
def test_probabilities_are_those_of_the_estimator_in_every_form(form: str, model: Any) -> None:
    given = NEW.copy()
    given.loc[1, ["age", "ward"]] = np.nan, None
    parquet = io.BytesIO()
    given.to_parquet(parquet)
    bodies: dict[str, bytes] = {
        JSON: json.dumps({"rows": rows_of(given)}).encode(),
        CSV: given.to_csv(index=False).encode(),
        PARQUET: parquet.getvalue(),
    }
    reply = ask("predict", bodies[form], form)
    assert (reply.status, reply.media_type) == (200, form), reply.content
    if form == JSON:
        lines = answers(reply)
    else:
        read = pd.read_csv if form == CSV else pd.read_parquet
        lines = read(io.BytesIO(reply.content)).to_dict("records")
    assert [line["row"] for line in lines] == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(p_of(lines, model), model.predict_proba(given), rtol=1e-12)
    assert [line["predicted"] for line in lines] == model.predict(given).tolist()


def test_one_row_is_an_object_and_what_it_lacks_is_missing(model: Any) -> None:
    few = answers(ask("predict", {"age": 61}))
    blank = answers(ask("predict", [{"age": 61, "dose": None, "seen": "", "ward": " "}]))
    assert few == blank
    expected = model.predict_proba(
        NEW.head(1).assign(age=61.0, dose=np.nan, seen=np.nan, ward=None)
    )
    np.testing.assert_allclose(p_of(few, model), expected, rtol=1e-12)


@pytest.mark.parametrize("text", ["1,5", " 1.5 ", "1.50", 1.5])
def test_a_number_may_be_text_with_a_comma(text: object) -> None:
    assert answers(ask("predict", {"dose": text})) == answers(ask("predict", {"dose": 1.5}))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("predict", "outside"),
        ("uncertainty", "predicted"),
        ("surprise", "row"),
        ("surprise", "predicted"),
    ],
)
def test_ids_named_like_an_answer_lose_nothing(question: str, name: str, tmp_path: Path) -> None:
    write_desk(tmp_path, TABLE, options=TableOptions(id=name))
    serve_here(ModelFolder("named", tmp_path))
    plain = answers(ask(question, [{"age": 61}, {"age": 22}], model="named"))
    rows = [{"age": 61, name: "P1"}, {"age": 22, name: "P2"}]
    lines = answers(ask(question, rows, model="named"))
    title = name if question == "surprise" and name == "predicted" else f"{name}_id"
    assert [line.pop(title) for line in lines] == ["P1", "P2"]
    assert lines == plain


def test_numbers_of_json_are_numbers_where_the_table_has_points_between_thousands(
    tmp_path: Path,
) -> None:
    write_desk(tmp_path, TABLE, options=TableOptions(thousands=".", decimal=","))
    serve_here(ModelFolder("points", tmp_path))
    number, text = (
        answers(ask("predict", {"dose": dose}, model="points")) for dose in (1.234, "1,234")
    )
    assert number == text
    assert number != answers(ask("predict", {"dose": 1234.0}, model="points"))


def test_a_number_means_the_same_beside_whatever_text() -> None:
    alone = answers(ask("predict", {"dose": 1.234}))[0]
    beside = answers(ask("predict", [{"dose": 1.234}, {"dose": "1,5"}, {"dose": "1.234,5"}]))[0]
    assert alone.keys() == beside.keys()
    for name, value in alone.items():
        assert value == (pytest.approx(beside[name]) if isinstance(value, float) else beside[name])


SAID = {"prob": "0.8", "costs": json.dumps(COSTS), "refer": "0.3"}
"""A text for every option of a question."""


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
def test_every_answer_has_the_shape_that_is_described(asked: Question) -> None:
    query = {option.name: SAID[option.name] for option in asked.options}
    lines = answers(ask(asked.name, rows_of(NEW.assign(ward=None)), **query))
    described = json.loads(ask("openapi").content)["paths"][f"/{asked.name}"]["post"]
    assert [one["name"] for one in described["parameters"]] == [*query]
    content = described["responses"]["200"]["content"][JSON]["schema"]
    columns = content["properties"]["answers"]["items"]["properties"]
    types = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    for line in lines:
        assert line.keys() == columns.keys()
        for name, cell in line.items():
            expected = columns[name]["type"]
            assert types[type(cell)] in expected or (type(cell) is int and "number" in expected)


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
def test_every_question_has_the_answer_of_its_method(asked: Question, model: Any) -> None:
    question, given = asked.name, NEW.copy()
    given.loc[:2, "ward"] = None
    query = {option.name: SAID["costs"] for option in asked.options if option.name == "costs"}
    lines = answers(ask(question, rows_of(given), **query))
    if question == "predict":
        return
    options = {"costs": [[0.0, 5.0], [1.0, 0.0]], "reject": 0.3} if question == "decide" else {}
    frame = getattr(model, question)(given, **options).to_dataframe()
    if question == "uncertainty":
        names = {"probability_well": "probability[well]", "novelty": "novelty"}
        names |= {"lower_ill <b>": "lower[ill <b>]"}
    else:
        names = {name: name for name in frame if frame[name].dtype == float}
    assert names
    for own, its in names.items():
        told = np.array([line[own] for line in lines], dtype=float)
        np.testing.assert_allclose(told, frame[its], rtol=1e-9, err_msg=own)


def test_a_decision_has_one_name() -> None:
    """The word of its action, where there is one, whichever question is asked."""
    decided = answers(ask("decide", rows_of(NEW)))
    assert all("best" not in line for line in decided)
    told = [line["decision"] for line in decided]
    assert told == [line["decision"] for line in answers(ask("predict", rows_of(NEW)))]


def test_rows_in_blocks_are_the_rows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = pd.DataFrame(answers(ask("uncertainty", rows_of(NEW))))
    in_twos = replace(QUESTIONS["uncertainty"], rows=2)
    monkeypatch.setitem(QUESTIONS, "uncertainty", in_twos)
    in_blocks = pd.DataFrame(answers(ask("uncertainty", rows_of(NEW))))
    pd.testing.assert_frame_equal(in_blocks, at_once, rtol=1e-9)


def test_a_tally_counts_rows_and_sums_probabilities(model: Any) -> None:
    tally = ask("uncertainty", rows_of(NEW)).tally
    sums = model.predict_proba(NEW).sum(axis=0)
    assert (tally.rows, tally.judged) == (5, 5)
    np.testing.assert_allclose(list(tally.probability.values()), sums)
    odd = ask("uncertainty", {"age": 61, "dose": 900.0}).tally
    assert odd.novel == 1


def test_every_problem_of_a_request_is_named_at_once() -> None:
    rows = [{"agee": 1, "dose": [1]}, {"age": True, "ward": "\x1b"}, {"dose": {}}]
    found = problems(ask("predict", rows))
    assert len(found) == 5
    assert found[0].endswith("did you mean 'age'?")
    assert "row 2, 'age'" in found[2]


def test_words_in_numbers_are_refused_in_the_words_of_the_command_line() -> None:
    found = problems(ask("predict", [{"age": "old", "dose": "much"}, {"age": 3}]))
    assert len(found) == 2
    assert all("the request, row 1" in problem for problem in found)


def test_the_label_and_what_training_left_out_may_come_along() -> None:
    assert answers(ask("predict", {"age": 61, "outcome": "well"})) == answers(
        ask("predict", {"age": 61})
    )


@pytest.mark.parametrize(
    ("body", "media_type", "status", "words"),
    [
        (b"{", JSON, 422, "cannot be read"),
        (b"[]", JSON, 422, "no row"),
        (b"[1]", JSON, 422, "list of rows"),
        (b'"age"', JSON, 422, "list of rows"),
        (b'{"age": NaN}', JSON, 422, "NaN"),
        (b'{"age": 1e999}', JSON, 422, "1e999"),
        (b'{"age": ' + b"9" * 400 + b"}", JSON, 422, "'age'"),
        (b'{"age": 1, "age": 2}', JSON, 422, "duplicate"),
        (b'{"age": "\\ud800"}', JSON, 422, "no text"),
        (b"\xff\xfe", JSON, 422, "cannot be read"),
        (b"[" * 100_000, JSON, 422, "nested"),
        (b'{"rows": [[[[[1]]]]]}', JSON, 422, "nested"),
        (json.dumps([{"age": 1}] * 51).encode(), JSON, 413, "at most 50 rows"),
        (b"age\n" + b"1\n" * 51, CSV, 413, "at most 50 rows"),
        (b"age,dose\n1,2\n", CSV, 422, "lacks 'seen' and 'ward'"),
        (b"", CSV, 422, "empty"),
        (b"age\n1\n", PARQUET, 422, "content type"),
        (b"PAR1", PARQUET, 422, "damaged"),
        (b"PAR1", CSV, 422, "content type"),
        (gzip.compress(b"age,dose,seen,ward\n" + b"1,2,3,b\n" * 9), CSV, 422, "content type"),
        (b"age,dose,seen,ward\n" + b"1,2,3,b\n" * 200, CSV, 413, "at most 50 rows"),
        (b"{}", "text/plain", 415, "Content-Type"),
    ],
)
def test_a_bad_body_is_refused_in_words(
    body: bytes, media_type: str, status: int, words: str
) -> None:
    assert words in " ".join(problems(ask("predict", body, media_type), status))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"prob": "2"}, "between 0 and 1"),
        ({"prob": "x", "refer": "1", "odd": "1"}, "no option"),
        ({"costs": '{"well": 5, "well": 1}'}, "JSON object"),
        ({"costs": "5"}, "JSON object"),
        ({"costs": '{"odd": 1}'}, "no class"),
        ({"costs": '{"well": -1}'}, "above 0"),
    ],
)
def test_a_bad_option_is_refused_in_words(query: dict[str, str], words: str) -> None:
    found = problems(ask("uncertainty", {"age": 61}, **query))
    assert words in found[0]
    assert len(found) == len(query)


def test_every_problem_of_a_request_is_told_at_once() -> None:
    rows = [{"agee": 1, "dose": [1]}, {"age": "old", "seen": "\u0007"}]
    body = json.dumps({"rows": rows, "costs": {"well": 2}, "refer": 1}).encode()
    found = problems(ask("uncertainty", body, JSON, prob="2", odd="1"))
    words = ["no option", "between 0 and 1", "'costs': nothing stands beside", "'refer': nothing"]
    words += ["did you mean 'age'?", "received a list", "no text", "'old' is text"]
    assert len(found) == len(words)
    assert all(word in problem for word, problem in zip(words, found, strict=True))
    assert "--" not in "".join(found)
    table = b"age,dose,seen\nold,1,2\n3,,x\n"
    found = problems(ask("decide", table, CSV, odd="1"))
    words = ["no option", "lacks 'ward'", "'old' is text", "'x' is text"]
    assert all(word in problem for word, problem in zip(words, found, strict=True))


def test_what_the_estimator_warns_of_comes_along_in_every_form() -> None:
    odd = NEW.assign(ward="z")
    sentences = json.loads(ask("predict", rows_of(odd)).content)["warnings"]
    assert "'ward': 'z'" in sentences[0]
    reply = ask("predict", odd.to_csv(index=False).encode(), CSV)
    assert json.loads(reply.headers["Bayesrbf-Warnings"])[0] == sentences[0][:300]
    assert not ask("predict", rows_of(NEW)).headers
    more = NEW.assign(outcome="well", more=1).to_csv(index=False).encode()
    (sentence,) = json.loads(ask("predict", more, CSV).headers["Bayesrbf-Warnings"])
    assert sentence.startswith("The table has columns that were not there at fit ('more')")
    pounds = TABLE.drop(columns="outcome").iloc[:40].assign(dose=lambda rows: 1000 * rows["dose"])
    reply = json.loads(ask("predict", rows_of(pounds)).content)
    assert any("dose" in one and "too large" in one for one in reply["warnings"])


def test_a_word_for_missing_is_a_level_where_training_had_it(tmp_path: Path) -> None:
    table = TABLE.assign(ward=TABLE["ward"].replace({"b & c": "NA"}))
    fitted = write_desk(tmp_path, table)
    serve_here(ModelFolder("na", tmp_path))
    line = answers(ask("predict", {"age": 61, "ward": "NA"}, model="na"))
    cells = {"age": 61.0, "dose": np.nan, "seen": np.nan, "ward": "NA"}
    np.testing.assert_allclose(p_of(line, fitted), fitted.predict_proba(pd.DataFrame([cells])))
    assert answers(ask("predict", {"age": 61, "ward": "NA"})) == answers(
        ask("predict", {"age": 61})
    )


def test_decide_needs_costs(tmp_path: Path) -> None:
    HybridMixtureClassifier(random_state=0).fit(
        TABLE.drop(columns="outcome"), TABLE["outcome"]
    ).save(tmp_path / "model.safetensors")
    serve_here(ModelFolder("free", tmp_path))
    assert "costs" in problems(ask("decide", {"age": 61}, model="free"))[0]
    line = answers(ask("uncertainty", {"age": 61}, model="free"))[0]
    assert line["lower_well"] is None  # without draws there is no interval
    assert "decision" not in line


def test_time_ends_an_answer_between_two_blocks() -> None:
    late = Limits(LIMITS.rows, LIMITS.bytes, seconds=-1.0)
    assert problems(ask("explain", rows_of(NEW), limits=late), 503)


def test_levels_come_back_as_they_were() -> None:
    line = answers(ask("surprise", {"age": 61, "ward": HOSTILE}))[0]
    assert line["expected[ward]"] in (HOSTILE, "b & c")


def test_very_many_problems_are_cut_short() -> None:
    found = problems(ask("predict", [{f"{place}": 1} for place in range(45)]))
    assert len(found) == 45
    rows = [{f"odd{place}": 1, "age": []} for place in range(50)] + [{"x" * 50_000: 1}]
    many = problems(ask("predict", rows, limits=Limits(rows=51)))
    assert len(many) == 101
    assert many[-1] == "There are more problems."


def test_every_answer_names_columns_beyond_training() -> None:
    low, high = TABLE["age"].min(), TABLE["age"].max()
    rows = [{"age": low, "dose": 900.0}, {"age": high + 1, "dose": 1e4}, {"ward": "b & c"}]
    told = [line["outside"] for line in answers(ask("predict", rows))]
    assert told == ["dose", "age, dose", ""]


@pytest.mark.parametrize("typed", [True, False])
def test_the_example_is_accepted_for_every_kind_of_column(typed: bool, tmp_path: Path) -> None:
    """That of the page and of the description, whether files or frames were fitted."""
    n = 40
    table = pd.DataFrame(
        {
            "real": np.arange(n) / 8,
            "whole": np.arange(n) * 2,
            "visits": np.arange(n) % 7,
            "hour": np.arange(n) % 24,
            "day": pd.date_range("2020-01-01", periods=n),
            "moment": pd.date_range("2020-01-01", periods=n, freq="7h30min"),
            "flag": np.arange(n) % 3 > 0,
            "yes": np.where(np.arange(n) % 3, "yes", "no"),
            "code": np.where(np.arange(n) % 3, "007", "012"),
            "grade": pd.Series(np.arange(n) % 4, dtype="category"),
            "pain": pd.Categorical(["mild", "none"] * (n // 2), ["none", "mild"], ordered=True),
            "never": np.full(n, np.nan),
            "outcome": np.where(np.arange(n) % 5, "ill <b>", "well"),
        }
    )
    options = TableOptions(count=("visits",), angle=("hour=24",))
    if not typed:
        table.to_csv(tmp_path / "t.csv", index=False)
        words = {"dates": ("day", "moment"), "categorical": "grade", "ordered": "pain=none<mild"}
        read = read_table(tmp_path / "t.csv", "outcome", count="visits", angle="hour=24", **words)
        table, options = read.frame.assign(outcome=read.target), read.options
    write_desk(tmp_path, table, options=options)
    serve_here(ModelFolder("kinds", tmp_path))
    described = json.loads(ask("openapi", model="kinds").content)["components"]["schemas"]["Row"]
    shown = page("api", model="kinds")
    example = json.loads(unescape(re.findall(r"<pre><code>(\{.*?\})</code>", shown)[0]))
    assert example == described["example"]
    assert example["day"] == "2020-01-21"
    here = ServedModel.of(ModelFolder("kinds", tmp_path))
    read_back = rows.rows_of(here, json.dumps(example).encode(), JSON, 1)
    columns = here.estimator.columns_
    ours, theirs = (encode(rows, columns) for rows in (read_back, here.usual))
    np.testing.assert_allclose(ours.real, theirs.real)
    np.testing.assert_array_equal(ours.codes, theirs.codes)
    assert "number" not in described["properties"]["day"]["type"]


def test_the_example_is_nobodys_row() -> None:
    text = ask("api").content.decode()
    first = json.dumps(interface.records_of(TABLE.head(1))[0]["age"])
    example = json.loads(unescape(re.findall(r"<pre><code>(\{.*?\})</code>", text)[0]))
    middle = TABLE["age"].sort_values().to_numpy()[len(TABLE) // 2]
    assert example["age"] == middle != json.loads(first)
    assert answers(ask("predict", example))
