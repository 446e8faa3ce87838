"""Commands that answer: fit, validate, compare, models; lines, JSON, exit codes, broken pipes."""

from __future__ import annotations

import html
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import psutil
import pytest

import bayesrbf
from bayesrbf.app.arguments import MODELS, spoken
from bayesrbf.app.commands import main
from bayesrbf.app.report import families as sampling
from bayesrbf.app.report.families import FAMILIES
from bayesrbf.app.report.options import FamilyName
from tests.app.report.tables import mixed_table
from tests.commands import answer, command, printed, refused


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    """A table, the folder of a model that was fitted to it, and what the fit said."""
    folder = tmp_path_factory.mktemp("fitted")
    file, out = folder / "table.csv", folder / "out"
    mixed_table(60).to_csv(file, index=False)
    words = ["fit", file, "--target", "outcome", "--out", out, "--model", "mixture"]
    return file, out, answer(*words, "--inference", "laplace", "--cost", "yes=7")


@pytest.fixture
def fitted(fit: tuple[Path, Path, dict[str, Any]]) -> tuple[Path, Path]:
    return fit[:2]


def test_fit_writes_a_model_and_nothing_else(fitted: tuple[Path, Path]) -> None:
    _, out = fitted
    assert sorted(path.name for path in out.iterdir()) == ["model.safetensors", "options.json"]
    model = bayesrbf.load(out / "model.safetensors")
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.draws_ is not None


@pytest.mark.slow
def test_any_number_of_processes_gives_the_same_answer(tmp_path: Path) -> None:
    table = mixed_table(60)
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False)
    p = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        words = ["fit", file, "--target", "outcome", "--out", out, "--jobs", jobs]
        assert command(*words).code == 0
        model = bayesrbf.load(out / "model.safetensors")
        p.append(model.uncertainty(table.drop(columns="outcome"))["upper"].to_numpy())
    np.testing.assert_array_equal(*p)


@pytest.mark.slow
def test_fit_is_the_model_of_the_report(fitted: tuple[Path, Path], tmp_path: Path) -> None:
    file, out = fitted
    words = ["report", file, "--target", "outcome", "--out", tmp_path, "--model", "mixture"]
    found = answer(*words, "--inference", "laplace")
    assert set(found["files"]) == {path.name for path in tmp_path.iterdir()}
    assert found["stability"] is None
    right = found["scores"]["share right"]
    assert 0 <= right["lower"] <= right["value"] <= right["upper"] <= 1
    assert found["verdict"] in html.unescape((tmp_path / "report.html").read_text("utf-8"))
    one, other = (bayesrbf.load(folder / "model.safetensors") for folder in (out, tmp_path))
    rows = mixed_table(20, seed=1).drop(columns="outcome")
    assert np.array_equal(one.predict_proba(rows), other.predict_proba(rows))


def test_fit_in_json_says_what_was_chosen(fit: tuple[Path, Path, dict[str, Any]]) -> None:
    _, out, said = fit
    assert set(said["files"]) == {path.name for path in out.iterdir()}
    assert said["table"] == "table.csv"
    assert "the rule chose" in said["model"]
    assert "Laplace" in said["inference"]


def test_fit_does_not_part_a_report_from_its_model(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text("a page")
    words = ["fit", fitted[0], "--target", "outcome", "--out", tmp_path]
    assert "report of another fit" in refused(*words)


def test_interrupted_fit_leaves_nothing(
    fitted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "draw_posterior", interrupt)
    words = ["fit", fitted[0], "--target", "outcome", "--out", tmp_path / "out"]
    said = command(*words, "--model", "mixture")
    assert said.code == 130
    assert said.err.endswith("bayesrbf: interrupted; nothing was written.\n")
    assert list(tmp_path.iterdir()) == []


def test_validate_finds_the_label_column_and_scores_it(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    new = mixed_table(50, seed=1).assign(note="x", grade=1)
    file = tmp_path / "new.csv"
    new.to_csv(file, index=False)
    said = command("validate", fitted[1], file)
    labelled = int(new["outcome"].notna().sum())
    assert said.out.startswith(f"{labelled} rows labelled by outcome; {50 - labelled} rows without")
    assert said.code == (3 if "\nFound\n" in said.out else 0)
    found = answer("validate", fitted[1], file, "--target", "outcome", code=said.code)
    assert found["found"] is (said.code == 3)
    assert (found["rows"], found["unlabelled"]) == (labelled, 50 - labelled)
    model = bayesrbf.load(fitted[1] / "model.safetensors")
    known = new[new["outcome"].notna()]
    p = model.predict_proba(known[["size", "weight", "colour"]])
    given = np.where(known["outcome"] == "yes", p[:, 1], p[:, 0])
    assert found["scores"][0]["value"] == pytest.approx(-np.log(given).mean())


def test_validate_finds_exchanged_labels(fitted: tuple[Path, Path], tmp_path: Path) -> None:
    new = mixed_table(80, seed=2, hidden=0.0)
    new["outcome"] = new["outcome"].map({"yes": "no", "no": "yes"})
    new.to_csv(tmp_path / "new.csv", index=False)
    assert command("validate", fitted[1], tmp_path / "new.csv").code == 3


def test_validate_writes_a_page_beside_the_rows_held_out(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    _, out = fitted
    new = mixed_table(60, seed=1, hidden=0.0)
    new["points"], new["ward"] = new["size"].rank(), np.arange(60) % 2
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["validate", out, tmp_path / "new.csv", "--target", "outcome"]
    words += ["--out", tmp_path / "page", "--by", "ward", "--score", "points"]
    said = command(*words)
    assert said.code in (0, 3)
    assert "by ward" in said.out
    page_file = tmp_path / "page" / "validation.html"
    assert str(page_file) in said.out.replace("\n", "")
    page = page_file.read_text()
    assert "By ward" in page
    assert "Beside score points" in page
    found = answer(*words, code=said.code)
    assert found["parts"][0]["by"] == "ward"
    assert found["score"]["score"]["rows"] == new["points"].notna().sum()
    assert found["advice"]
    assert "no column 'nothing'" in refused(*words[:3], "--by", "nothing")


def test_update_writes_a_new_model_and_leaves_the_old_one(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    file, out = fitted
    old = (out / "model.safetensors").read_bytes()
    new = mixed_table(60, seed=1)
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["update", out, tmp_path / "new.csv", "--out", tmp_path / "here"]
    said = answer(*words, "--method", "slope")
    labelled = new["outcome"].notna()
    assert (said["rows"], said["method"]) == (labelled.sum(), "slope")
    assert sum(said["intercepts"].values()) == pytest.approx(0, abs=1e-9)
    assert (out / "model.safetensors").read_bytes() == old
    written = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert written == ["model.safetensors", "options.json"]
    before, after = (
        bayesrbf.load(folder / "model.safetensors") for folder in (out, tmp_path / "here")
    )
    cells = new.loc[labelled, ["size", "weight", "colour"]]
    again = bayesrbf.recalibrate(before, cells, new.loc[labelled, "outcome"], "slope")
    np.testing.assert_allclose(after.predict_proba(cells), again.predict_proba(cells), atol=1e-9)
    predict = ["predict", tmp_path / "here", tmp_path / "new.csv"]
    assert said["sentence"] in printed(*predict, "--out", tmp_path)
    assert answer(*predict)["updates"] == [said["sentence"]]
    assert answer(*words, "--method", "refit", "--training", file)["method"] == "refit"
    assert "would be lost" in refused(*words[:3], "--out", out)
    assert "--training FILE" in refused(*words, "--method", "refit")
    told = refused(*words, "--method", "slope", "--training", file)
    assert "--training is for --method cv and refit" in told
    strange = new.assign(outcome=new["outcome"].map({"yes": "perhaps", "no": "no"}))
    strange.to_csv(tmp_path / "new.csv", index=False)
    assert "'perhaps', which is no class" in refused(*words)


def test_costs_given_at_the_fit_or_at_validate_judge_the_decisions(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    file, out = fitted
    new = mixed_table(50, seed=1, hidden=0.0)
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["fit", file, "--target", "outcome", "--out", tmp_path / "o", "--cost", "maybe=3"]
    assert "no class of 'outcome'" in refused(*words)
    found = json.loads(command("validate", out, tmp_path / "new.csv", "--json").out)
    assert found["costs"] == {"yes": 7.0}
    model = bayesrbf.load(out / "model.safetensors")
    p = model.predict_proba(new[["size", "weight", "colour"]])[:, 1]
    yes, acts = (new["outcome"] == "yes").to_numpy(), 7 * p > 1 - p
    cost = next(one for one in found["scores"] if one["name"] == "cost of a row")
    assert cost["value"] == pytest.approx(np.where(yes, 7.0 * ~acts, 1.0 * acts).mean())
    assert cost["expected"] == pytest.approx(np.minimum(7 * p, 1 - p).mean())
    assert found["against_rest"]["yes"]["sensitivity"]["value"] == pytest.approx(acts[yes].mean())
    between = int(np.flatnonzero((p < 0.5) & acts)[0])
    words = ["explain", out, tmp_path / "new.csv", "--row", between + 1]
    assert "Decided, at least expected cost: yes" in printed(*words)
    assert answer(*words)["explained"]["decision"] == "yes"
    asked = command("validate", out, tmp_path / "new.csv", "--json", "--cost", "yes=1")
    assert json.loads(asked.out)["costs"] == {"yes": 1.0}
    unknown = refused("validate", out, tmp_path / "new.csv", "--cost", "maybe=1")
    assert "no class of the model: no, yes" in unknown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name the label column by --target"),
        (["--target", "size"], "a column that the model predicts from"),
        (["--target", "nothing"], "no column 'nothing'"),
        (["--target", "grade"], "labels 0 rows with a class of the model (no and yes)"),
    ],
)
def test_labels_that_cannot_be_found_are_said(
    words: list[str], said: str, fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    new = mixed_table(30, seed=1)
    new = new.rename(columns={"outcome": "first"})
    new.assign(again=new["first"], grade=1).to_csv(tmp_path / "new.csv", index=False)
    assert said in refused("validate", fitted[1], tmp_path / "new.csv", *words)


@pytest.mark.slow
def test_compare_names_peers_and_the_best_one_first(fitted: tuple[Path, Path]) -> None:
    words = ["compare", fitted[0], "--target", "outcome", "--model", "mixture"]
    assert "--folds must be at least 2" in refused(*words, "--folds", 1)
    found = answer(*words, "--folds", 2)
    contestants = found["contestants"]
    assert {one["name"] for one in contestants} == {
        "mixture",
        "logistic regression",
        "random forest",
        "histogram boosting",
        "class frequencies",
    }
    assert found["folds"] == 2
    losses = [one["log_loss"] for one in contestants]
    assert losses == sorted(losses)
    behind = [one["behind"] for one in contestants]
    assert behind == pytest.approx([loss - losses[0] for loss in losses])


def test_models_has_a_line_on_whatever_model_takes() -> None:
    lines = printed("models").splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(FAMILIES) == list(get_args(FamilyName))
    assert {one.name: one.estimator for one in MODELS} == {
        name: family.estimator for name, family in FAMILIES.items()
    }
    assert [one["name"] for one in answer("models")["models"]] == list(FAMILIES)


def test_predict_in_json_has_the_columns_of_its_file(
    fitted: tuple[Path, Path], tmp_path: Path
) -> None:
    file, out = fitted
    before = set(out.iterdir())
    found = answer("predict", out, file)
    assert set(out.iterdir()) == before
    assert command("predict", out, file, "--out", tmp_path).code == 0
    written = pd.read_csv(tmp_path / f"{file.stem}-predictions.csv")
    assert found["rows"] == len(written) == sum(found["predicted"].values())
    rows = pd.DataFrame(found["predictions"])
    assert rows.columns.tolist() == written.columns.tolist()
    for name in ("probability_yes", "lower_yes", "novelty"):
        assert rows[name].to_numpy() == pytest.approx(written[name].to_numpy())


def test_explain_and_check_in_json_say_what_their_lines_say(fitted: tuple[Path, Path]) -> None:
    file, out = fitted
    row = answer("explain", out, file, "--row", 5)["explained"]
    assert (row["row"], row["rows"]) == (5, 60)
    assert sum(one["probability"] for one in row["classes"]) == pytest.approx(1)
    adds = sum(one["adds"] for one in row["why"]["cells"])
    assert row["why"]["base"] + adds == pytest.approx(row["why"]["log_odds"])
    assert f"Novelty {row['novelty']:.2f}" in printed("explain", out, file, "--row", 5)
    found = answer("check", out, file)
    assert found["found"] is False
    assert {"topic", "sentence", "is_finding", "columns"} == set(found["remarks"][0])


def test_an_error_leaves_stdout_empty_under_json(fitted: tuple[Path, Path]) -> None:
    refused("predict", fitted[1], fitted[1] / "none.csv", "--json")


def test_what_a_terminal_cannot_spell_is_no_error(
    fitted: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thin space sets thousands apart, and not every code page has it."""
    file = tmp_path / "new.csv"
    table = pd.read_csv(fitted[0])
    table.assign(weight=1000 * table["weight"]).to_csv(file, index=False)
    content = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(content, "ascii"))
    monkeypatch.setattr(sys, "argv", ["bayesrbf", "check", str(fitted[1]), str(file)])
    with pytest.raises(SystemExit) as leaving:
        main()
    assert leaving.value.code == 3
    assert rb"1\u202f000 times too large" in content.getvalue()


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"]])
def test_help_states_the_exit_codes(words: list[str]) -> None:
    said = printed(*words).partition("Exit codes")[2].splitlines()
    assert [line.split()[0] for line in said if line.strip()] == [
        "0",
        "2",
        "3",
        "124",
        "130",
        "141",
        "143",
    ]


@pytest.mark.skipif(os.name != "posix", reason="pipes that are closed are of POSIX")
@pytest.mark.parametrize(
    ("words", "code"), [(["models"], 141), pytest.param(["--help"], 1, marks=pytest.mark.slow)]
)
def test_a_reader_that_leaves_is_no_error(words: list[str], code: int) -> None:
    """Rich, which prints the help, leaves with a code of its own."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "bayesrbf", *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="groups of processes are of POSIX")
@pytest.mark.parametrize(
    ("tell", "code", "what"),
    [(os.killpg, 130, "interrupted"), (os.kill, 143, "terminated")],
    ids=["Ctrl-C", "SIGTERM"],
)
@pytest.mark.parametrize("wait", [0.2, 1])
def test_ending_while_workers_fit_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    tell: Callable[[int, int], None],
    code: int,
    what: str,
    wait: float,
) -> None:
    """A terminal tells every process of the command, a machine that shuts down the first."""
    said, out = tmp_path / "said", tmp_path / "out"
    table = tmp_path_factory.mktemp("long") / "table.csv"
    mixed_table(6000).to_csv(table, index=False)  # so many that they are being fitted for long
    words = ["fit", table, "--target", "outcome", "--out", out / "deep", "--jobs", "2"]
    command = [sys.executable, "-m", "bayesrbf", *map(str, words)]
    with said.open("w") as errors:
        going = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            # A job in the background starts with Ctrl-C ignored, and so would the command.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        while going.poll() is None and len(psutil.Process(going.pid).children()) < 2:
            time.sleep(0.01)
        time.sleep(wait)  # while they import, or after it
        tell(going.pid, signal.SIGINT if code == 130 else signal.SIGTERM)
        assert going.wait(timeout=120) == code
    finally:
        going.kill()
    assert said.read_text().rstrip().endswith(f"bayesrbf: {what}; nothing was written.")
    assert "Not done: fitting the whole table" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["said"]


def test_what_other_libraries_tell_their_developers_is_not_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with spoken():
        warnings.warn("A user hears this.", UserWarning, stacklevel=1)
        warnings.warn("A name has moved.", DeprecationWarning, stacklevel=1)
        warnings.warn("A default changes.", FutureWarning, stacklevel=1)
    assert capsys.readouterr().err == "bayesrbf: A user hears this.\n"
