"""Cells are computed once, whatever stops a run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from reproduce.cells import Cell, print_table, read_cells, run_cells

SILENT = Console(file=io.StringIO())


def cells(made: list[str], broken: str | None = None) -> list[Cell]:
    def compute(name: str) -> dict[str, float]:
        if name == broken:
            raise KeyboardInterrupt
        made.append(name)
        return {"error": 0.25, "length": len(name)}

    return [Cell(name, lambda name=name: compute(name)) for name in ("a", "bb", "ccc")]


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    file, made = tmp_path / "new" / "table.jsonl", []
    told = Console(file=io.StringIO())
    assert list(run_cells(cells(made, "bb"), file, told)) == made == ["a"]
    assert "Interrupted: 1 of 3 cells are there" in told.file.getvalue()
    figures = run_cells(cells(made), file, SILENT)
    assert made == ["a", "bb", "ccc"]
    assert figures["ccc"] == {"error": 0.25, "length": 3}
    assert run_cells(cells(made), file, SILENT) == figures == read_cells(file)
    assert len(made) == 3


def test_a_line_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    file, made = tmp_path / "table.jsonl", []
    run_cells(cells(made), file, SILENT)
    file.write_text(file.read_text()[:-5])
    run_cells(cells(made), file, SILENT)
    assert made == ["a", "bb", "ccc", "ccc"]
    assert sorted(read_cells(file)) == ["a", "bb", "ccc"]


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    file = tmp_path / "table.jsonl"
    file.write_text("[1]\n")
    with pytest.raises(ValueError, match=r"table.jsonl, line 1 is no cell of a table"):
        read_cells(file)
    with pytest.raises(ValueError, match="received 'a' twice"):
        run_cells([*cells([]), *cells([])], file, SILENT)
    with pytest.raises(ValueError, match="not JSON compliant"):
        run_cells([Cell("nan", lambda: {"error": float("nan")})], tmp_path / "b.jsonl", SILENT)


def test_a_table_is_shown() -> None:
    console = Console(file=io.StringIO(), width=60)
    print_table("Errors", ["method", "iris"], [["swap", "2.0"]], console)
    assert console.file.getvalue().split() == ["Errors", "method", "iris", "swap", "2.0"]


def test_no_figure_is_cut_where_the_console_is_narrow(tmp_path: Path) -> None:
    columns = [f"a method with a long name {i}" for i in range(9)]
    with open(tmp_path / "out.txt", "w", encoding="utf-8") as file:
        print_table("Errors", ["", *columns], [["iris", *["12.3 (4.5)"] * 9]], Console(file=file))
    _, header, row = (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()
    assert all(column in header for column in columns)
    assert row.count("12.3 (4.5)") == 9
