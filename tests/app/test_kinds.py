"""Commands, report and server take every kind of column, and two that are written elsewhere."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from bayesrbf.answers import learning
from bayesrbf.app.serve import case
from bayesrbf.app.serve.pictures import along as picture
from bayesrbf.app.serve.served import ModelFolder, RequestError, ServedModel
from bayesrbf.table.kinds import Kind
from tests.app.serve.desks import page, serve_here
from tests.cases import first_quick
from tests.commands import answer, command, refused
from tests.kinds import clock as clock
from tests.kinds import share as share
from tests.kinds import table

SAID = ["--angle", "hour=24", "--count", "visits", "--ordered", "pain=none<mild<severe"]
SAID += ["--dates", "seen", "--kind", "fat=share,woken=clock"]
WORDS = {
    "hour": "angle",
    "visits": "count",
    "pain": "ordered",
    "seen": "date",
    "again": "yes or no",
    "size": "real",
    "fat": "share",
    "woken": "clock",
}


@pytest.mark.parametrize("way", first_quick(["fit", "report"]))
def test_commands_and_server_take_every_kind(
    way: str, share: type[Kind], clock: type[Kind], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "FACTORS", (1.0, 2.0))
    X, y = table(60, planted=True)
    file, folder = tmp_path / "t.csv", tmp_path / "out"
    X.assign(outcome=y).to_csv(file, index=False)
    looked = answer("look", file, *SAID, "--out", tmp_path)
    columns = looked["columns"]
    assert {column["name"]: column["kind"] for column in columns} == WORDS | {
        "outcome": "categorical"
    }
    words = [way, file, "--target", "outcome", "--out", folder, "--model", "mixture"]
    words += ["--inference", "map", *SAID]
    if way == "report":
        assert command(*words, "--quick", "--stability", 2).code == 0
        report = (folder / "report.html").read_text()
        assert all(word in report for word in WORDS.values())
        assert "2 refits on bootstrap samples of the rows move the probability of" in report
    else:
        assert command(*words).code == 0
    why = answer("explain", folder, file, "--row", "3")["explained"]["why"]
    told = {cell["column"]: cell["cell"] for cell in why["cells"]}
    for name, cell in X.iloc[2].dropna().items():
        shown = told[str(name)]
        if name == "fat":
            assert shown.endswith(" per cent")
        else:
            assert shown == (f"{cell:%Y-%m-%d}" if name == "seen" else cell)
    notes = answer("look", file, "--out", tmp_path)["notes"]
    (note,) = (note for note in notes if "'woken'" in note)
    assert "looked at as minutes since midnight: to fit, say --kind woken=clock" in note
    assert "--time woken" not in note
    assert (
        "is a time of day: say --kind woken=clock to read minutes"
        in command("report", file, "--target", "outcome", "--out", tmp_path / "no").err
    )
    assert command("check", folder, file).code == 0
    assert command("predict", folder, file).code == 0
    assert len(pd.read_csv(folder / "t-predictions.csv")) == 60
    desk = ModelFolder("", folder)
    serve_here(desk)
    served = ServedModel.of(desk)
    assert {field.name: field.kind.word for field in served.fields} == WORDS
    form = case.form_of(served, 2)
    row = case.row_of(served, form)
    pd.testing.assert_frame_equal(row, served.cells.iloc[[2]].reset_index(drop=True))
    assert form["cell-7"] == X["woken"][2]
    assert f'value="{form["cell-7"]}" data-column="7" inputmode="text"' in page("answered", form)
    with pytest.raises(
        RequestError, match=r"'25:00' is not a time of day\. Write a time of day as"
    ):
        case.row_of(served, form | {"cell-7": "25:00"})
    for field in served.fields:
        assert "<svg" in str(picture(case.along(served, row, field, "sick"), 0))
    hidden = case.row_of(served, {})
    measured = {line.column for line in case.measurements_of(served, hidden) or ()}
    assert "visits" in measured
    assert "per cent" in page("part-why", form)


def test_cells_that_are_none_of_a_kind_are_refused_when_read(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("visits,size\n" + "".join(f"{i / 2},{i}\n" for i in range(30)))
    said = refused("look", file, "--count", "visits", "--out", tmp_path)
    assert "'visits' holds 0.5, but its kind is 'count'" in said
    assert "a whole number of at least 0" in said
