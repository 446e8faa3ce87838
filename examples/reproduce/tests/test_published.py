"""Published figures stand beside ours: every one whose row and column a command prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from reproduce import caetano, ferreira, hayashi, nebel, published, roth, sdgm_synthetic
from reproduce.published import beside

TABLES = {name: value for name, value in vars(published).items() if isinstance(value, dict)}
"""Every published table but those of the contest, which are by fold (test_tabular)."""
TABLES = {name: table for name, table in TABLES.items() if not name.startswith("_")}
NOT_RUN: dict[str, set[str]] = {
    "CAETANO_3": {"mushroom, 85 %", "census, 85 %"},
    "ROTH_B_7": {f"{number} labels" for number in (2500, 5000, 10000, 25000, 50000)},
}
"""Rows of the papers that are not computed here."""
THEIRS: dict[str, set[str]] = {
    "CAETANO_1": {"logistic", "KNN", "LRC", "ROLS", "RBFNnl", "nRNwr", "nRNrb", "nRBFN"},
    "SDGM_1": {"SDGM", "MGP", "RVM"},
    "SDGM_1_WEIGHTS": {"SDGM", "MGP", "RVM"},
    "NEBEL": {"relational or kernel"},
    "NEBEL_PROTOTYPES": {"relational or kernel"},
    "ROTH_B": {"MCL", "MM", "linear SVM, mean", "linear SVM, 3-NN"},
    "ROTH_B_7": {"linear SVM", "RBF SVM"},
}
"""Methods of the papers that are not run here."""


class Everything(dict[str, float]):
    """Figures of a cell under any name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> float:
        return 1.0


@pytest.fixture
def printed(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[int, tuple[list[str], list[list[str]]]]:
    """Header and rows of the tables that all commands print, by the published table beside."""
    shown: dict[int, tuple[list[str], list[list[str]]]] = {}

    def record(
        title: str, header: Any, rows: Any, console: object = None, published: object = None
    ) -> None:
        shown[id(published)] = (list(header), [list(row) for row in rows])

    def computed(cells: Any, *_: object) -> dict[str, Everything]:
        return {cell.name: Everything() for cell in cells}

    for module in (caetano, ferreira, nebel, roth, hayashi):
        monkeypatch.setattr(module, "run_cells", computed)
        monkeypatch.setattr(module, "print_table", record)
    monkeypatch.setattr(sdgm_synthetic, "print_table", record)
    monkeypatch.setattr(hayashi.sdgm_synthetic, "draw", lambda *_, **__: [])
    monkeypatch.setattr(hayashi, "find_spec", lambda name: None)
    quiet = Console(quiet=True)
    runs: list[Callable[[], None]] = [
        lambda: caetano.run(tmp_path, seeds=1, console=quiet),
        lambda: ferreira.run(tmp_path, seeds=1, console=quiet),
        lambda: nebel.run(tmp_path, quick=False, seed=0),
        lambda: roth.run(tmp_path, console=quiet),
        lambda: hayashi.run(tmp_path, console=quiet),
    ]
    for run in runs:
        run()
    images = {
        f"mnist/{size}/{head}{longer}/60000/0": Everything()
        for size, longer in ((2, ""), (2, ", 30 epochs"), (10, ""))
        for head in ("softmax", "SDGM")
    }
    hayashi._print_images(images, 60_000, quiet)
    return shown


def test_every_published_table_stands_beside_ours(
    printed: dict[int, tuple[list[str], list[list[str]]]],
) -> None:
    assert TABLES
    for name, table in TABLES.items():
        assert id(table) in printed, f"no command prints {name}"
        header, rows = printed[id(table)]
        absent = set(table) - {row[0] for row in rows}
        assert absent == NOT_RUN.get(name, set()), name
        columns = {column for figures in table.values() for column in figures}
        assert columns - set(header) == THEIRS.get(name, set()), name


def test_no_figure_is_lost_and_none_of_ours_changed(
    printed: dict[int, tuple[list[str], list[list[str]]]],
) -> None:
    for name, table in TABLES.items():
        header, rows = printed[id(table)]
        names, lines = beside(header, rows, table)
        ours = [i for i, column in enumerate(names) if not column.startswith("paper")]
        assert [names[i] for i in ours] == header
        assert [[line[i] for i in ours] for line in lines] == rows
        for line in lines:
            shown = {}
            for i, column in enumerate(names):
                if column.startswith("paper"):
                    shown[column.removeprefix("paper: ")] = line[i]
                if column == "paper":
                    shown[names[i - 1]] = shown.pop("paper")
            figures = table.get(line[0], {})
            assert {c: f for c, f in shown.items() if f != "-"} == figures, (name, line[0])


def test_published_figures_are_numbers() -> None:
    for name, table in TABLES.items():
        for row, figures in table.items():
            for column, figure in figures.items():
                parts = figure.removesuffix(")").split(" (")
                assert all(float(part) >= 0 for part in parts), (name, row, column)
