"""What missing and measured cells tell has a line of its own: command, page, interface, letters."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.learned import contributions, read_effects
from bayesrbf.app.serve.interface import ModelFolder
from bayesrbf.app.words import signed
from tests.app.serve.desks import answers, ask, page, serve_here, write_desk
from tests.test_cli import run

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
    desk: tuple[Path, HybridMixtureClassifier],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, model = desk
    file = tmp_path / "new.csv"
    NEW.to_csv(file, index=False)
    assert run(monkeypatch, "explain", folder, file, "--row", 1, "--json") == 0
    explained = json.loads(capsys.readouterr().out)["explained"]
    why, answered = explained["why"], model.explain(NEW).isel(obs=0).sel(label="ill")
    assert why["label"] == "ill"
    assert why["pattern"]["message"] == MESSAGE
    assert why["pattern"]["adds"] == pytest.approx(float(answered["pattern_shapley"]))
    adds = why["pattern"]["adds"] + sum(one["adds"] for one in why["cells"])
    assert why["base"] + adds == pytest.approx(why["log_odds"])
    sentence = "Not measured: 'g <b>'; measured: 'h'; this speaks for “ill”."
    assert sentence in explained["reasons"]["in_favour"]
    assert run(monkeypatch, "explain", folder, file, "--row", 1) == 0
    text = capsys.readouterr().out
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
