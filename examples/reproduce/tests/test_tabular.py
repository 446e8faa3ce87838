"""The benchmark of small tables is read, halved, judged, stored and printed as it says."""

from __future__ import annotations

import io
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.naive_bayes import GaussianNB

from reproduce import commands, published, tabular
from reproduce.cells import read_cells

Arrays = dict[str, Any]


class Normals(GaussianNB):
    """A quick model with the arguments of the stack, which is never sure; NaN is zero."""

    def __init__(self, categorical_features: Any = None, random_state: Any = None) -> None:
        super().__init__()
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(np.nan_to_num(X), y)

    def predict_proba(self, X: Any) -> Any:
        p = super().predict_proba(np.nan_to_num(X))
        return 0.9 * p + 0.1 / p.shape[1]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "StackedClassifier", Normals)


def small(load: Any, n_obs: int, name: str) -> Arrays:
    """Rows of a table of scikit-learn under a published name; one of four columns has thirds."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:n_obs]
    X = X[rows, :4]
    X[:, 3] = np.digitize(X[:, 3], np.quantile(X[:, 3], [1 / 3, 2 / 3]))
    X[::7, 0] = np.nan
    return {f"{name}|X": X, f"{name}|y": y[rows], f"{name}|c": np.array([3])}


ARRAYS: Arrays = {
    **small(load_wine, 90, "vehicle"),
    **small(load_iris, 60, "balance-scale"),
    **small(load_breast_cancer, 60, "wdbc"),
}
"""Not in the order of the published list."""


def folder_of(path: Path, arrays: Arrays) -> Path:
    path.mkdir(exist_ok=True)
    np.savez(path / tabular.FILE, **arrays)
    return path


def printed(out: Path, data: Path, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=300)
    tabular.run(out, data=data, console=console, **options)
    return console.file.getvalue()


def table_of(name: str, arrays: Arrays = ARRAYS) -> tabular.SmallTable:
    X, y, c = (arrays[f"{name}|{part}"] for part in "Xyc")
    return tabular.SmallTable(name, X, y, c)


def test_the_stack_is_run_and_its_figures_are_stored(tmp_path: Path) -> None:
    data = folder_of(tmp_path / "data", ARRAYS)
    text = printed(tmp_path, data, seeds=1, tables=["balance-scale"])
    (name, figures), *others = read_cells(tmp_path / "tabular.jsonl").items()
    assert name.startswith("balance-scale/")
    assert not others
    assert figures["AUROC"] > 0.9
    assert figures["accuracy"] > 0.8
    assert 0 < figures["log loss"] < np.log(3)
    assert figures["seconds"] > 0
    assert f"balance-scale: AUROC {figures['AUROC']:.3f}" in text


@pytest.mark.usefixtures("quick")
def test_figures_are_those_of_the_probabilities() -> None:
    table = table_of("vehicle")
    figures = tabular._judged(table, 3)
    train, test = table.halves(3)
    p = Normals().fit(table.X[train], table.y[train]).predict_proba(table.X[test])
    truth = table.y[test]

    def ranked(a: int, b: int) -> float:
        """Share of pairs of a row of a and one of b in which that of a is the likelier a."""
        first, second = p[truth == a, a][:, None], p[truth == b, a]
        return float(np.mean((first > second) + (first == second) / 2))

    pairs = [(ranked(a, b) + ranked(b, a)) / 2 for a, b in combinations(range(3), 2)]
    assert figures["AUROC"] == pytest.approx(np.mean(pairs))
    assert figures["accuracy"] == pytest.approx(np.mean(p.argmax(axis=1) == truth))
    assert figures["log loss"] == pytest.approx(-np.log(p[np.arange(truth.size), truth]).mean())


def test_halves_part_the_rows_of_every_class() -> None:
    table = table_of("vehicle")
    halves = [table.halves(seed) for seed in range(2)]
    for train, test in halves:
        assert sorted([*train, *test]) == list(range(90))
        learned, predicted = np.bincount(table.y[train]), np.bincount(table.y[test])
        assert np.abs(learned - predicted).max() <= 1
    assert set(halves[0][0]) != set(halves[1][0])


@pytest.mark.usefixtures("quick")
def test_the_only_row_of_a_class_is_learned_from(tmp_path: Path) -> None:
    y = ARRAYS["wdbc|y"].copy()
    y[4] = 7
    arrays = {**ARRAYS, "wdbc|y": y}
    for seed in range(4):
        train, test = table_of("wdbc", arrays).halves(seed)
        assert 4 in train
        assert sorted([*train, *test]) == list(range(60))
    text = printed(tmp_path, folder_of(tmp_path / "data", arrays), tables=["wdbc"])
    assert "wdbc has classes of one row (1)" in text
    assert all(0 <= one["AUROC"] <= 1 for one in read_cells(tmp_path / "tabular.jsonl").values())


@pytest.mark.usefixtures("quick")
def test_a_part_of_the_published_list_is_run_and_said_to_be_one(tmp_path: Path) -> None:
    arrays = {**ARRAYS, "mine|X": ARRAYS["wdbc|X"], "names": np.array(["wdbc", None])}
    text = printed(tmp_path, folder_of(tmp_path / "data", arrays), seeds=2)
    lines = re.findall(r"^(\S+): AUROC", text, re.MULTILINE)
    assert lines == [name for name in published.TABULAR if f"{name}|X" in ARRAYS]
    lacks = next(line for line in text.splitlines() if "lacks 27 tables" in line)
    absent = {name for name in published.TABULAR if re.search(rf"[ ,]{name}[,.]", lacks)}
    assert absent == set(published.TABULAR) - set(lines)
    assert "the published list lacks them: mine." in text
    assert "over fewer tables (3) than the published ones (30)" in text
    row = next(line for line in text.splitlines() if line.startswith(f" {tabular.THESE}"))
    expected = [
        np.mean([float(published.TABULAR[name][method]) for name in lines])
        for method in published.TABULAR["wdbc"]
    ]
    np.testing.assert_allclose(np.array(row.split()[-8:], float), expected, atol=5e-4)
    figures = list(read_cells(tmp_path / "tabular.jsonl").values())
    by_seed = [np.mean([one["AUROC"] for one in figures[seed::2]]) for seed in range(2)]
    assert f"{np.mean(by_seed):.3f} ({np.std(by_seed, ddof=1):.3f})" in row


def test_a_whole_list_stands_beside_the_published_means() -> None:
    console = Console(file=io.StringIO(), width=300)
    figures = dict.fromkeys(tabular.SCORES, 0.5)
    finished = {name: [figures, {**figures, "AUROC": 0.7}] for name in published.TABULAR}
    tabular._print_finished(finished, 2, console)
    text = console.file.getvalue()
    assert tabular.THESE not in text
    row = next(line for line in text.splitlines() if line.startswith(" AUROC "))
    paper = " ".join(published.TABULAR_MEANS["AUROC"].values())
    assert " ".join(row.split()) == f"AUROC 0.600 (0.141) {paper}"


@pytest.mark.usefixtures("quick")
def test_stored_figures_are_of_the_same_table(tmp_path: Path) -> None:
    data = folder_of(tmp_path / "data", ARRAYS)
    first = printed(tmp_path, data, seeds=2)
    stored = (tmp_path / "tabular.jsonl").read_text()
    assert printed(tmp_path, data, seeds=2) == first
    assert (tmp_path / "tabular.jsonl").read_text() == stored
    folder_of(data, {**ARRAYS, "wdbc|c": np.array([2, 3])})
    printed(tmp_path, data, seeds=2)
    assert len(read_cells(tmp_path / "tabular.jsonl")) == 6 + 2


@pytest.mark.usefixtures("quick")
def test_after_an_interrupt_finished_tables_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = tabular._judged

    def interrupted(table: tabular.SmallTable, seed: int) -> Any:
        if table.name == "vehicle" and seed == 1:
            raise KeyboardInterrupt
        return judged(table, seed)

    monkeypatch.setattr(tabular, "_judged", interrupted)
    text = printed(tmp_path, folder_of(tmp_path / "data", ARRAYS), seeds=2)
    assert re.findall(r"^(\S+): AUROC", text, re.MULTILINE) == ["balance-scale"]
    assert "Means over 1 tables" in text
    assert len(read_cells(tmp_path / "tabular.jsonl")) == 3


WITHOUT = {key: array for key, array in ARRAYS.items() if key != "wdbc|y"}


@pytest.mark.parametrize(
    ("arrays", "options", "sentence"),
    [
        (WITHOUT, {}, r"must have the array wdbc\|y, which is missing. Write each table"),
        (ARRAYS, {"tables": ["car"]}, r"received 'car'. It has balance-scale, vehicle, wdbc"),
        (ARRAYS, {"tables": ["wdbc", "iris"]}, r"--tables takes names .* received 'iris'"),
        (ARRAYS, {"seeds": 0}, r"--seeds takes a whole number above 0; got 0"),
        ({"iris|X": np.ones((4, 1))}, {}, r"tables of the published list .* it has iris"),
        ({"wdbc|X": np.array([None])}, {}, r"must have arrays of numbers"),
        ({"wdbc|X": np.array([["a"]])}, {}, r"wdbc\|X must be a matrix .* type <U1"),
        ({"wdbc|X": np.full((60, 2), np.inf)}, {}, r"wdbc\|X must be a matrix of finite"),
        ({"wdbc|y": np.arange(59) % 2}, {}, r"wdbc\|y must be 60 codes .* shape \(59,\)"),
        ({"wdbc|y": np.arange(60) % 2 - 1}, {}, r"wdbc\|y must be 60 codes"),
        ({"wdbc|y": np.arange(60) % 2 / 2}, {}, r"wdbc\|y must be 60 codes"),
        ({"wdbc|y": np.arange(60) // 59}, {}, r"wdbc\|y .* two rows of two classes"),
        ({"wdbc|c": np.array([4])}, {}, r"wdbc\|c must be positions from 0 to 3; received \[4\]"),
    ],
)
def test_what_is_no_benchmark_is_refused_before_any_work(
    tmp_path: Path, arrays: Arrays, options: dict[str, Any], sentence: str
) -> None:
    whole = arrays if len(arrays) > 1 or "iris|X" in arrays else {**ARRAYS, **arrays}
    data, out = folder_of(tmp_path / "data", whole), tmp_path / "out"
    with pytest.raises(ValueError, match=sentence):
        tabular.run(out, data=data, **options)
    assert not out.exists()


def test_a_folder_without_tables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"tables.npz, which does not exist.* by --data"):
        tabular.run(tmp_path / "out", data=tmp_path)
    monkeypatch.setenv("BAYESRBF_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "tables.npz"))):
        tabular.run(tmp_path / "out")
    (tmp_path / "tables.npz").write_text("no archive")
    with pytest.raises(ValueError, match=r"tables.npz must have arrays of numbers"):
        tabular.run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_takes_names_with_commas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(tabular, "run", lambda out, **options: calls.append((out, options)))
    words = ["tabular", "--data", str(tmp_path), "--tables", "car,cmc", "--tables", "wdbc"]
    commands.app([*words, "--seeds", "2"], result_action="return_value")
    names = ["car", "cmc", "wdbc"]
    assert calls == [
        (Path("reproduction"), {"data": tmp_path, "seeds": 2, "tables": names}),
    ]


def test_published_means_are_those_of_the_published_tables() -> None:
    assert len(published.TABULAR) == 30
    for method, mean in published.TABULAR_MEANS["AUROC"].items():
        figures = [float(row[method]) for row in published.TABULAR.values()]
        assert abs(np.mean(figures) - float(mean.split()[0])) < 1e-3
