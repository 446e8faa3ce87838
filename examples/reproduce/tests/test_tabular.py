"""The contest of small tables is read, parted, judged, stored and printed as it says."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from bayesrbf.datasets import Dataset
from reproduce import commands, published, tabular
from reproduce.cells import read_cells

Arrays = dict[str, Any]


class Normals(GaussianNB):
    """A quick model with arguments of the stack, which is never sure; NaN is zero."""

    def __init__(self, categorical_features: Any = None, random_state: Any = None) -> None:
        super().__init__()
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Any:
        return super().fit(numbers(X), y)

    def predict_proba(self, X: Any) -> Any:
        p = super().predict_proba(numbers(X))
        return 0.9 * p + 0.1 / p.shape[1]


def numbers(X: Any) -> Any:
    return np.nan_to_num(pd.DataFrame(X).apply(pd.to_numeric).to_numpy(float))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "StackedClassifier", Normals)


def small(load: Any, n_obs: int, name: str) -> Arrays:
    """Rows of a table of scikit-learn under a published name; one of four columns has thirds."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:n_obs]
    X = X[rows, :4]
    X[:, 3] = 9 + np.digitize(X[:, 3], np.quantile(X[:, 3], [1 / 3, 2 / 3]))
    X[::7, [0, 3]] = np.nan
    return {f"{name}|X": X, f"{name}|y": y[rows], f"{name}|c": np.array([3])}


ARRAYS: Arrays = {
    **small(load_wine, 90, "vehicle"),
    **small(load_iris, 60, "balance-scale"),
    **small(load_breast_cancer, 60, "kc2"),
}
"""Not in the order of the published list."""
CC18 = ["balance-scale", "kc2", "vehicle"]
TABZILLA = ["heart-c", "mushroom", "audiology"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Folder of six tables; two classes of audiology have one row."""
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / tabular.FILE, **ARRAYS)
    for file, name in (("mushroom", "vehicle"), ("heart_cleveland", "kc2"), ("audiology", "kc2")):
        y = ARRAYS[f"{name}|y"].astype("str").astype(object)
        if file == "audiology":
            y[[4, 50]] = "c", "d"
        pd.DataFrame(ARRAYS[f"{name}|X"]).assign(target=y).to_csv(
            folder / f"{file}.csv", index=False
        )
    return folder


def printed(out: Path, data: Path, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=300)
    tabular.run(out, data=data, console=console, **{"tables": CC18 + TABZILLA, **options})
    return console.file.getvalue()


def rows_of(text: str, n_table: int) -> dict[str, list[str]]:
    """Cells of the rows of a printed table, below its title and header, by their first cell."""
    lines = text.splitlines()
    titles = [at for at, line in enumerate(lines) if ": AUROC, " in line or ": log loss, " in line]
    stop = [*titles, len(lines)][n_table + 1]
    parts = [re.split(r"  +", line.strip()) for line in lines[titles[n_table] + 2 : stop]]
    return {row[0]: row[1:] for row in parts if len(row) > 1}


def test_the_stack_is_run_and_its_figures_are_stored(tmp_path: Path, data: Path) -> None:
    text = printed(tmp_path, data, folds=1, tables=["balance-scale"])
    [(name, figures)] = read_cells(tmp_path / "tabular.jsonl").items()
    assert name == "balance-scale/0"
    assert min(figures["AUROC"], figures["accuracy"]) > 0.8
    assert 0 < figures["log loss"] < np.log(3)
    assert figures["seconds"] > 0
    assert rows_of(text, 0)["balance-scale"][0] == f"{figures['AUROC']:.3f}"


def test_tables_have_their_cells_and_levels_sort_as_codes(data: Path) -> None:
    table = tabular._cc18("vehicle", data)
    np.testing.assert_array_equal(table.X.apply(pd.to_numeric), ARRAYS["vehicle|X"])
    np.testing.assert_array_equal(table.y, ARRAYS["vehicle|y"])
    assert [str(one) for one in table.X.dtypes] == ["float64"] * 3 + ["str"]
    words = sorted(set(table.X.iloc[:, 3].dropna()))
    assert [float(one) for one in words] == [9, 10, 11]
    assert tabular._tabzilla("heart-c", data).name == "heart-c"
    assert tabular._tabzilla("heart-c", data).X.shape == (60, 4)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["vehicle", "audiology"])
def test_figures_are_those_of_the_probabilities(data: Path, name: str) -> None:
    table = tabular._cc18(name, data) if name in CC18 else tabular._tabzilla(name, data)
    figures = tabular._judged(table, 4, 2)
    train, test = tabular.fold_of(table.y, 4, 2)
    model = Normals().fit(table.X.iloc[train], table.y[train])
    p, truth, classes = model.predict_proba(table.X.iloc[test]), table.y[test], model.classes_

    def ranked(k: int) -> float:
        """Share of pairs of a row of the class and one of the rest in which the first is higher."""
        first, second = p[truth == classes[k], k][:, None], p[truth != classes[k], k]
        return float(np.mean((first > second) + (first == second) / 2))

    there = [k for k, one in enumerate(classes) if one in truth]
    assert figures["AUROC"] == pytest.approx(np.mean([ranked(k) for k in there]))
    assert figures["accuracy"] == pytest.approx(np.mean(classes[p.argmax(axis=1)] == truth))
    of_truth = [row[list(classes).index(one)] for row, one in zip(p, truth, strict=True)]
    assert figures["log loss"] == pytest.approx(-np.log(of_truth).mean())


def test_folds_are_the_published_ones_and_the_only_row_of_a_class_is_learned_from() -> None:
    y = ARRAYS["vehicle|y"].copy()
    splits = StratifiedKFold(5, shuffle=True, random_state=42).split(np.zeros((90, 1)), y)
    for fold, expected in enumerate(splits):
        for ours, rows in zip(tabular.fold_of(y, 5, fold), expected, strict=True):
            np.testing.assert_array_equal(ours, rows)
    y[[4, 50]] = 7, 8
    folds = [tabular.fold_of(y, 10, fold) for fold in range(10)]
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(90))
        assert {4, 50} <= set(train)
        assert set(y[test]) <= set(y[train])
    assert sorted(np.concatenate([test for _, test in folds])) == sorted({*range(90)} - {4, 50})


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("place", "names", "n_run"), [(0, CC18, 3), (1, TABZILLA, 10)])
def test_differences_are_paired_by_fold_and_errors_are_over_tables(
    tmp_path: Path, data: Path, place: int, names: list[str], n_run: int
) -> None:
    text = printed(tmp_path, data, folds=3)
    cells, contest = read_cells(tmp_path / "tabular.jsonl"), tabular.CONTESTS[place]
    by_table, by_method = rows_of(text, 2 * place), rows_of(text, 2 * place + 1)
    counted = [name for name in names if name != "audiology"]
    assert list(by_table) == [*names, f"mean of {len(counted)}"]
    assert "audiology has classes of one row (2)" in text
    for column, method in enumerate(contest.published[0][names[0]], start=1):
        differences = {}
        for name in names:
            ours = [cells[f"{name}/{fold}"][contest.score] for fold in range(n_run)]
            assert float(by_table[name][0]) == pytest.approx(np.mean(ours), abs=6e-4)
            if method not in contest.published[0][name]:
                assert by_table[name][column] == "-"
                continue
            theirs = [float(fold[name][method]) for fold in contest.published[:n_run]]
            assert float(by_table[name][column]) == pytest.approx(np.mean(theirs), abs=6e-4)
            differences[name] = np.mean(np.array(ours) - theirs)
        ahead = [differences[name] for name in counted if name in differences]
        n_tables, shown = len(ahead), by_method[method]
        assert float(shown[1]) - float(shown[0]) == pytest.approx(np.mean(ahead), abs=2e-3)
        assert float(shown[2]) == pytest.approx(np.mean(ahead), abs=6e-4)
        if n_tables > 1:
            error = np.std(ahead, ddof=1) / np.sqrt(n_tables)
            assert float(shown[3]) == pytest.approx(error, abs=6e-4)
        better = np.sum(np.array(ahead) > 0 if place == 0 else np.array(ahead) < 0)
        assert shown[4:] == [str(better), str(n_tables)]
        mean = by_table[f"mean of {len(counted)}"][column]
        assert mean == (shown[0] if n_tables == len(counted) else "-")


@pytest.mark.usefixtures("quick")
def test_a_stopped_run_prints_what_is_finished_and_goes_on(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, file = tabular._judged, tmp_path / "tabular.jsonl"

    def interrupted(table: Dataset, n_folds: int, fold: int, seed: int) -> Any:
        if table.name == "vehicle" and fold == 1:
            raise KeyboardInterrupt
        return judged(table, n_folds, fold, seed)

    monkeypatch.setattr(tabular, "_judged", interrupted)
    text = printed(tmp_path, data)
    assert list(rows_of(text, 0)) == ["balance-scale", "kc2", "mean of 2"]
    assert "TabZilla" not in text
    stored = file.read_text()
    assert len(read_cells(file)) == 5
    monkeypatch.setattr(tabular, "_judged", judged)
    whole = printed(tmp_path, data)
    assert file.read_text().startswith(stored)
    assert len(read_cells(file)) == 6 + 30
    monkeypatch.setattr(tabular, "_judged", lambda *_: pytest.fail("computed again"))
    assert printed(tmp_path, data) == whole


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tables": ["kc2", "iris"]}, r"--tables takes names .* received \['iris'\]"),
        ({"folds": 0}, r"--folds takes a number from 1 to 5; got 0"),
        ({"folds": 6}, r"--folds takes a number from 1 to 5; got 6"),
        ({"tables": ["ilpd"]}, r"must have the arrays .* lacks \['ilpd\|X'.* by --data or by"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_work(
    tmp_path: Path, data: Path, options: dict[str, Any], sentence: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(ValueError, match=sentence):
        printed(out, data, **options)
    assert not out.exists()


def test_a_folder_without_tables_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"cc18_half.npz must have .* not exist. It has"):
        tabular.run(tmp_path / "out", data=tmp_path)
    monkeypatch.setenv("BAYESRBF_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / tabular.FILE))):
        tabular.run(tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"There is no table 'labor'"):
        tabular.run(tmp_path / "out", tables=["labor"])
    assert not (tmp_path / "out").exists()


def test_the_command_takes_names_with_commas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(tabular, "run", lambda out, **options: calls.append((out, options)))
    words = ["tabular", "--data", str(tmp_path), "--tables", "cmc,labor", "--tables", "kc2"]
    commands.app([*words, "--folds", "3"], result_action="return_value")
    names = ["cmc", "labor", "kc2"]
    assert calls == [(Path("reproduction"), {"data": tmp_path, "folds": 3, "tables": names})]


@pytest.fixture
def small_data(tmp_path: Path) -> Path:
    """Folder of one small table for choosing and one for judging; levels are words, NA is one."""
    folder = tmp_path / "small"
    folder.mkdir()
    with zipfile.ZipFile(folder / tabular.SMALL_FILE, "w") as tables:
        for file, name in (("balance-scale", "vehicle"), ("iris", "kc2")):
            frame = pd.DataFrame(ARRAYS[f"{name}|X"]).assign(Class=ARRAYS[f"{name}|y"])
            frame["levels"] = np.where(np.arange(len(frame)) % 5 > 0, "NA", "b")
            frame.loc[3, "levels"] = None
            tables.writestr(f"{file}.csv", frame.to_csv(index=False))
    return folder


def test_small_tables_have_their_cells(small_data: Path) -> None:
    table = tabular._small("balance-scale", small_data)
    levels = table.X.pop("levels")
    np.testing.assert_array_equal(table.X, ARRAYS["vehicle|X"])
    np.testing.assert_array_equal(table.y, ARRAYS["vehicle|y"])
    assert levels.isna().sum() == 1
    assert set(levels.dropna()) == {"NA", "b"}
    with pytest.raises(ValueError, match=r"must have the file wine\.csv; it has none.*by --data"):
        tabular._small("wine", small_data)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_average_precision_is_the_mean_precision_at_the_rows_of_a_class(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    p, y = rng.dirichlet(np.ones(n_classes), 40), rng.integers(0, n_classes, 40)

    def of(k: int) -> float:
        found = (y == k)[np.argsort(-p[:, k])]
        return float((found.cumsum() / np.arange(1, 41))[found].mean())

    weighted = sum(np.mean(y == k) * of(k) for k in range(n_classes))
    expected = of(1) if n_classes == 2 else weighted
    found = tabular.average_precision(y == np.arange(n_classes)[:, None], p)
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "names", "title"),
    [
        ([], ["balance-scale"], "for choosing, published folds: average precision, means over 4"),
        (["--tables", "judging"], ["iris"], "for judging, published folds: average precision"),
    ],
)
def test_choosing_and_judging_are_apart_on_the_published_folds(
    tmp_path: Path,
    small_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    names: list[str],
    title: str,
) -> None:
    learned: list[Any] = []

    class Noted(Normals):
        def fit(self, X: Any, y: Any) -> Any:
            learned.append(X.index.to_numpy())
            return super().fit(X.drop(columns="levels"), y)

        def predict_proba(self, X: Any) -> Any:
            return super().predict_proba(X.drop(columns="levels"))

    monkeypatch.setattr(tabular, "StackedClassifier", Noted)
    monkeypatch.setattr(tabular, "_compile", lambda: None)
    there = ("balance-scale", "iris")
    contests = {
        use: replace(one, published=({name: row for name, row in rows.items() if name in there},))
        for use, one in tabular.SMALL.items()
        for rows in one.published
    }
    monkeypatch.setattr(tabular, "SMALL", contests)
    out = tmp_path / "out"
    commands.app(
        ["small", "--data", str(small_data), "--out", str(out), *words],
        result_action="return_value",
    )
    assert {cell.split("/")[0] for cell in read_cells(out / "small.jsonl")} == set(names)
    assert title in capsys.readouterr().out
    y = tabular._small(names[0], small_data).y
    splits = StratifiedKFold(4, shuffle=True, random_state=0).split(y, y)
    for rows, (train, _) in zip(learned, splits, strict=True):
        np.testing.assert_array_equal(rows, train)


def test_published_scores_are_whole() -> None:
    choosing, judging = (set(one.published[0]) for one in tabular.SMALL.values())
    assert choosing == set(published.SMALL_CHOOSING)
    assert len(choosing) == len(judging) == 18
    assert choosing | judging == set(published.SMALL[0])
    for row in published.SMALL[0].values():
        assert 11 <= len(row) <= 12
        assert all(0 < float(one) <= 1 for one in row.values())
    for fold in published.CC18:
        assert {len(row) for row in fold.values()} == {6}
        assert all(0.5 < float(one) <= 1 for row in fold.values() for one in row.values())
    for row in published.TABZILLA[0].values():
        assert float(row["best of 22"]) == min(map(float, row.values()))
