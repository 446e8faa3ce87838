"""What missing and measured cells tell has a line of its own: command, page, interface, letters."""

from __future__ import annotations

import json
import warnings
from copy import copy
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier, StackedClassifier, load
from bayesrbf.app.report.column_effects import contributions, read_effects
from bayesrbf.app.report.job import Job
from bayesrbf.app.serve.served import ModelFolder
from bayesrbf.app.words import PROMISE, signed
from tests.app.serve.desks import answers, ask, page, serve_here, write_desk
from tests.commands import answer, command, printed

MESSAGE = "not measured: 'g <b>'; measured: 'h'"


def patients(n: int = 200) -> pd.DataFrame:
    """Two tests of half of the ill and of few others, and a column of noise."""
    rng = np.random.default_rng(0)
    ill = rng.random(n) < 0.4
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "noise", "g <b>", "h"])
    table["age"] += 1.5 * ill
    tested = rng.random((n, 2)) < np.where(ill, 0.5, 0.1)[:, None]
    table[["g <b>", "h"]] = table[["g <b>", "h"]].where(tested)
    return table.assign(outcome=np.where(ill, "ill", "well"))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HybridMixtureClassifier]:
    """The folder of a model, and the model."""
    folder = tmp_path_factory.mktemp("desk")
    model = HybridMixtureClassifier(missingness="informative", random_state=0)
    return folder, write_desk(folder, patients(), model, costs={})


NEW = pd.DataFrame({"age": [1.5], "noise": [0.1], "g <b>": [np.nan], "h": [1.5]})


def test_the_command_has_a_line_and_a_sentence(
    desk: tuple[Path, HybridMixtureClassifier], tmp_path: Path
) -> None:
    folder, model = desk
    file = tmp_path / "new.csv"
    NEW.to_csv(file, index=False)
    explained = answer("explain", folder, file, "--row", 1)["explained"]
    why, answered = explained["why"], model.explain(NEW).isel(obs=0).sel(label="ill")
    assert why["label"] == "ill"
    assert why["pattern"]["message"] == MESSAGE
    assert why["pattern"]["adds"] == pytest.approx(float(answered["pattern_shapley"]))
    adds = why["pattern"]["adds"] + sum(one["adds"] for one in why["cells"])
    assert why["base"] + adds == pytest.approx(why["log_odds"])
    sentence = "Not measured: 'g <b>'; measured: 'h'; this speaks for “ill”."
    assert sentence in explained["reasons"]["in_favour"]
    text = printed("explain", folder, file, "--row", 1)
    assert f"  {MESSAGE}: adds {signed(why['pattern']['adds'])}, lost without" in text
    assert f"  {sentence}" in text


def test_the_page_has_a_line(desk: tuple[Path, HybridMixtureClassifier]) -> None:
    folder, model = desk
    serve_here(ModelFolder("", folder))
    text = page("part-why", {"cell-0": "1.5", "cell-1": "0.1", "cell-3": "1.5", "label": "ill"})
    adds = float(model.explain(NEW)["pattern_shapley"].sel(label="ill").item())
    assert "<b>" not in text
    line = unescape(text).split(MESSAGE)[1]
    assert line.startswith(f'</th><td class="n">{signed(adds)}</td>')
    # A row without any cell has a pattern, too.
    assert "not measured: 'g <b>' and 'h'" in unescape(page("part-why", {"label": "ill"}))


def test_the_interface_has_a_column(desk: tuple[Path, HybridMixtureClassifier]) -> None:
    folder, model = desk
    serve_here(ModelFolder("", folder))
    (line,) = answers(ask("explain", [{"age": 1.5, "noise": 0.1, "h": 1.5}]))
    assert line["pattern"] == MESSAGE
    adds = model.explain(NEW)["pattern_shapley"].sel(label="ill").item()
    assert line["pattern_shapley[ill]"] == pytest.approx(adds)
    assert "pattern" in ask("api").content.decode()


def test_the_report_gives_no_column_what_a_pattern_tells(
    desk: tuple[Path, HybridMixtureClassifier],
) -> None:
    model, table = desk[1], patients()
    X, y = table.drop(columns="outcome"), table["outcome"]
    job = Job("t", "outcome", X, y, dict(model.columns_.kind_of), "map", 0)
    effects, nothing = read_effects(job, model)
    found = {one.name: one for one in contributions(job, model, effects, nothing)}
    for name in ("noise", "g <b>", "h"):
        assert found[name].most < 0.2 * found["age"].most


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StackedClassifier]:
    """The folder of a small stack whose held-out rows gain by the indicators, and the stack."""
    folder = tmp_path_factory.mktemp("stack")
    model = StackedClassifier(["laplace_evidence", "normal_blend"], random_state=0)
    return folder, write_desk(folder, patients(), model, costs={})


def everybody(n: int = 60) -> pd.DataFrame:
    """New rows of which all have both tests, but for some without an age."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(rng.normal(size=(n, 4)), columns=["age", "noise", "g <b>", "h"])
    return rows.assign(age=rows["age"].where(np.arange(n) >= 3))


def test_commands_take_the_reasons_and_say_first_that_they_are_others(
    stack: tuple[Path, StackedClassifier], tmp_path: Path
) -> None:
    folder, model = stack
    file = tmp_path / "new.csv"
    everybody().to_csv(file, index=False)
    ignorable = copy(model).assume_missingness("ignorable")
    for way, asked in (("as_trained", model), ("ignorable", ignorable)):
        told = answer("predict", folder, file, "--missingness", way)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = asked.predict_proba(everybody())[:, 0]
        found = [row["probability_ill"] for row in told["predictions"]]
        np.testing.assert_allclose(found, p, rtol=1e-6)
        assert bool(told["changed"]) == (way == "as_trained")
        # A hole where training had none, and no other, is an unfamiliar pattern.
        familiarity = [row["familiarity"] for row in told["predictions"]]
        if way == "as_trained":
            assert max(familiarity[:3]) < 0.5
            assert told["unfamiliar"].startswith("3 rows have missing cells in a pattern unlike")
        else:
            assert set(familiarity) == {None}
            assert told["unfamiliar"] is None
    told = answer("check", folder, file, code=3)
    assert told["remarks"][0]["topic"] == "reasons"
    assert "'g <b>' is missing in 0" in told["remarks"][0]["sentence"]
    assert "say so by --missingness ignorable" in told["advice"]
    assert "patterns" in [one["topic"] for one in told["remarks"]]
    told = json.loads(command("check", folder, file, "--missingness", "ignorable", "--json").out)
    assert not {"reasons", "patterns"} & {one["topic"] for one in told["remarks"]}


@pytest.mark.parametrize("family", ["mixture", "sdgm"])
def test_the_reasons_can_be_said_at_the_fit(family: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    patients(60).to_csv(file, index=False)
    options = ("--target", "outcome", "--model", family, "--inference", "map")
    said = ("--missingness", "ignorable", "--out", tmp_path / "model")
    assert command("fit", file, *options, *said).code == 0
    (model,) = (tmp_path / "model").glob("*.safetensors")
    fitted = load(model)
    assert getattr(fitted, "missingness", "ignorable") == "ignorable"
    assert not fitted.fitted_.uses_indicators


def test_a_server_says_of_a_table_that_cells_are_missing_otherwise(
    stack: tuple[Path, StackedClassifier],
) -> None:
    serve_here(ModelFolder("", stack[0]))
    rows = everybody(40).astype(object).where(everybody(40).notna(), None).to_dict("records")
    (warning,) = json.loads(ask("predict", rows).content)["warnings"]
    assert "'g <b>' is missing in 0" in warning


def test_a_server_takes_the_reasons_and_its_card_says_so(
    stack: tuple[Path, StackedClassifier],
) -> None:
    folder, _ = stack
    row = {"age": 0.5, "noise": 0.1, "g <b>": 1.0, "h": 1.5}
    said = []
    for way in ("as_trained", "ignorable"):
        serve_here(ModelFolder("", folder, missingness=way))
        (line,) = answers(ask("uncertainty", [row]))
        said.append(line["probability_ill"])
        card = unescape(ask("card").content.decode())
        assert PROMISE in card
        assert ("It was said of this server" in card) == (way == "ignorable")
    assert said[0] > said[1] + 0.05
