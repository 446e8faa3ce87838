"""A table without a model: what was planted is told, and nothing is run by what a table holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrbf import TableError, read_table
from bayesrbf.app import look as looking
from bayesrbf.app.look import lines_of_look, look, of_duplicates, of_holes, render_look
from tests.app.report.browsing import Page
from tests.app.report.tables import mixed_table
from tests.commands import answer, printed, refused


def planted() -> pd.DataFrame:
    """A table with a repeated row, one that contradicts another, and a column that is there twice.

    Where ``late`` is missing, so is ``later``.
    """
    rng = np.random.default_rng(1)
    table = mixed_table(120, hidden=0.0)
    table["shade"] = table["colour"].map({"red": "dark", "blue": "light"})
    gone = rng.random(len(table)) < 0.3
    table["late"], table["later"] = rng.normal(size=(2, len(table)))
    table.loc[gone, ["late", "later"]] = np.nan
    other = table.iloc[[7]].assign(outcome={"yes": "no", "no": "yes"}[table["outcome"].iloc[7]])
    return pd.concat([table, table.iloc[[3]], other], ignore_index=True)


def seen(table: pd.DataFrame, folder: Path, target: str | None = "outcome") -> looking.Look:
    """A table written, read and looked at."""
    table.to_csv(folder / "table.csv", index=False)
    return look(read_table(folder / "table.csv"), "table", target)


def test_what_was_planted_is_told(tmp_path):
    found = seen(planted(), tmp_path)
    assert (found.repeated, found.contradicting) == (1, 2)
    assert ("colour", "shade") in found.alike
    both = [one for one in found.patterns if {"late", "later"} <= set(one.columns)]
    assert both[0].columns == ("late", "later")
    assert {pair.second for pair in found.with_target} >= {"size", "weight"}
    assert all(pair.first == "outcome" for pair in found.with_target)
    strongest = found.pairs[0]
    assert {strongest.first, strongest.second} == {"colour", "shade"}
    assert not any({"late", "later"} == {p.first, p.second} for p in found.pairs)
    assert "“shade” tells the same as “colour”" in of_duplicates(found)
    assert "“late” (" in of_holes(found)


def test_missing_cells_that_go_with_the_target_are_told_and_groups_advised(tmp_path):
    rng = np.random.default_rng(0)
    ill = rng.random(200) < 0.5
    dose, age = rng.normal(size=200), rng.normal(50, 9, 200).round()
    dose[ill & (rng.random(200) < 0.5)] = np.nan
    age[:9] = -999
    patients = [f"P{number:03d}" for number in np.arange(200) // 2]
    table = pd.DataFrame({"patient": patients, "age": age, "dose": dose})
    table["other"] = np.where(np.arange(200) % 7 == 0, np.nan, rng.normal(size=200))
    table["outcome"] = np.where(ill, "ill", "well")
    (gone,) = seen(table, tmp_path).missing_with_target
    assert gone[0] == "dose"
    assert 0.4 < gone[1] < 0.7
    file = tmp_path / "again.csv"
    table.to_csv(file, index=False)
    told = answer("look", file, "--target", "outcome")["command"]
    assert told.endswith("--na=-999 --group patient")


def test_bars_are_the_rows_of_the_classes(tmp_path):
    table = planted()
    found = seen(table, tmp_path)
    size = next(one for one in found.spreads if one.column.name == "size")
    known = table[table["size"].notna()]
    counts = known["outcome"].value_counts().sort_index()
    assert size.bars.sum(1).tolist() == counts.tolist()


def test_a_target_of_few_numbers_is_one_of_classes(tmp_path):
    table = planted()
    table["outcome"] = (table["outcome"] == "yes").astype(int)
    found = seen(table, tmp_path)
    assert found.classes == ("0", "1")
    assert found.with_target[0].measure == "correlation ratio of ranks"


def test_rows_beyond_the_limit_are_sampled_and_the_page_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(looking, "LOOKED_AT_ROWS", 50)
    found = seen(planted(), tmp_path)
    assert found.reading.rows == 50
    assert "50 of them, drawn at random" in render_look(found)
    assert any("drawn at random" in line for line in lines_of_look(found))


def test_the_page_is_closed_escaped_and_alone(tmp_path):
    table = planted().rename(columns={"size": "<script>x</script>", "colour": "a & b"})
    table["outcome"] = table["outcome"].replace({"yes": "<img src=x onerror=y>"})
    page = render_look(seen(table, tmp_path))
    parsed = Page(page)
    assert parsed.open == []
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in parsed.tags}
    assert "<script>x</script>" in "".join(parsed.texts)


def test_a_table_without_holes_classes_or_pairs_has_a_page(tmp_path):
    found = seen(pd.DataFrame({"x": np.arange(12) * 1.5}), tmp_path, None)
    assert render_look(found)
    assert found.with_target == ()


def test_an_unknown_target_is_refused(tmp_path):
    with pytest.raises(TableError, match="has no column 'outcom'"):
        seen(planted(), tmp_path, "outcom")


def test_the_command_writes_a_page_and_answers_in_json(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "table.csv"
    planted().to_csv(file, index=False)
    assert printed("look", file, "--target", "outcome").startswith("table: 122 rows")
    assert (tmp_path / "table-look.html").exists()
    told = answer("look", file)
    assert told["rows"] == 122
    assert told["repeated_rows"] == 1
    assert told["file"] is None
    assert "--out names a folder" in refused("look", file, "--out", file)


def test_a_look_reads_dates_and_leaves_out_what_it_cannot_read(tmp_path):
    """A fit asks what to do with such columns; a look says so, and is about all others."""
    days = pd.date_range("2020-01-01", periods=30).strftime("%Y-%m-%d")
    table = pd.DataFrame({"when": days, "price": [f"{1 + i % 7},58{i % 9}" for i in range(30)]})
    table.assign(size=np.arange(30.0) / 7).to_csv(tmp_path / "table.csv", index=False)
    told = answer("look", tmp_path / "table.csv")
    assert [one["name"] for one in told["columns"]] == ["when", "size"]
    assert told["columns"][0]["content"] == "2020-01-01 to 2020-01-30"
    left_out, dates = told["notes"][:2]
    assert "'price': '1,580' may be a decimal comma" in left_out
    assert "say --dates when" in dates
    assert "may be a decimal comma" in refused("look", tmp_path / "table.csv", "--target", "price")
