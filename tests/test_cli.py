"""The command line: whole folders or none, one sentence for every bad input, quick help."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf.answers import learning
from bayesrbf.app.arguments import names_in
from bayesrbf.app.report import families
from bayesrbf.app.report.options import OPTIONS, ReportOptions, options_content
from bayesrbf.base.table_options import TableOptions
from tests.app.report.tables import mixed_table
from tests.commands import command, printed, refused

FILES = {
    *("model.safetensors", "options.json", "posterior.nc", "predictions.csv"),
    *("report.html", "report.json"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A table with hostile names, and the folder of its report."""
    folder = tmp_path_factory.mktemp("run")
    table = mixed_table(45).rename(columns={"colour": "=colour", "size": "<b>size</b>"})
    table["outcome"] = table["outcome"].replace({"yes": "=1+1", "no": "<i>no</i>"})
    table["code"] = np.arange(len(table)) % 3
    table["junk"] = "x"
    file, out = folder / "table.csv", folder / "deep" / "out"
    table.to_csv(file, index=False)
    words = ["report", file, "--target", "outcome", "--out", out, "--inference", "laplace"]
    words += ["--categorical", "code,=colour", "--ignore", "junk", "--seed", 3]
    words += ["--model", "mixture", "--cost", "=1+1=4", "--quick"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "FACTORS", (1.0,))  # the curve takes a fifth of the time
        assert command(*words).code == 0
    return file, out


@pytest.mark.parametrize(
    "words", ["predict a b", "explain a b --row 1", "serve a", "compare a --target y"]
)
def test_an_option_of_other_commands_is_said_to_be_theirs(words: str) -> None:
    said = command(*words.split(), "--level", "0.95")
    assert said.code == 2
    told = " ".join(said.err.split())
    assert told.endswith("--level is read by fit, report and validate.")


@pytest.mark.slow
def test_folder_is_complete_and_nothing_else_is_left(finished: tuple[Path, Path]) -> None:
    file, out = finished
    assert {path.name for path in out.iterdir()} == FILES
    assert {path.name for path in file.parent.iterdir()} == {"table.csv", "deep"}
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_predictions_hold_every_row(finished: tuple[Path, Path]) -> None:
    file, out = finished
    found = pd.read_csv(out / "predictions.csv")
    table = pd.read_csv(file)
    assert found["row"].tolist() == list(range(1, len(table) + 1))
    classes = ["<i>no</i>", "=1+1"]
    p = found[[f"probability_{c}" for c in classes]].to_numpy()
    assert p.sum(1) == pytest.approx(np.ones(len(p)))
    for c, name in enumerate(classes):
        lower, upper = found[f"lower_{name}"], found[f"upper_{name}"]
        assert np.all((lower <= p[:, c] + 1e-9) & (p[:, c] <= upper + 1e-9) | (upper - lower > 0.2))
    entropies = found[["aleatoric_entropy", "epistemic_entropy"]].sum(axis=1)
    assert entropies.to_numpy() == pytest.approx(found["total_entropy"].to_numpy())
    assert found["novelty"].notna().all()
    labelled = table["outcome"].notna()
    assert found["held_out_=1+1"].notna().tolist() == labelled.tolist()


def test_no_cell_of_predictions_is_a_formula(finished: tuple[Path, Path]) -> None:
    with open(finished[1] / "predictions.csv", newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    dangerous = [cell for cell in cells if cell[:1] in "=+@\t" and cell]
    assert dangerous == []
    assert "'=1+1" in cells
    for cell in cells:
        if cell.startswith("-"):
            float(cell)


def test_page_shows_hostile_names_as_text(finished: tuple[Path, Path]) -> None:
    html = (finished[1] / "report.html").read_text(encoding="utf-8")
    assert "<b>size</b>" not in html
    assert "&lt;b&gt;size&lt;/b&gt;" in html
    assert "<i>no</i>" not in html
    assert "--target outcome" in html
    assert "4 if it is =1+1." in html
    assert "SHA-256" in html


def test_artefact_and_posterior_are_what_the_page_is_about(finished: tuple[Path, Path]) -> None:
    import xarray as xr

    out = finished[1]
    model = bayesrbf.load(out / "model.safetensors")
    assert model.classes_.tolist() == ["<i>no</i>", "=1+1"]
    assert "junk" not in model.feature_names_in_
    with xr.open_datatree(out / "posterior.nc", engine="h5netcdf") as tree:
        assert tree["posterior"].sizes["chain"] == 4
        assert "class_probabilities" in tree["posterior"]
        stored = tree["posterior"]["class_probabilities"].to_numpy()
    loaded = model.posterior_["posterior"]["class_probabilities"].to_numpy()
    assert np.array_equal(stored, loaded)


def test_predict_scores_new_rows(finished: tuple[Path, Path], tmp_path: Path) -> None:
    """The same rows get the same probabilities; other columns and order do not matter."""
    file, out = finished
    table = pd.read_csv(file).drop(columns=["outcome", "junk"])
    new = tmp_path / "new.csv"
    table[table.columns[::-1]].assign(extra="?x").to_csv(new, index=False)
    target = tmp_path / "scored"
    said = printed("predict", out, new, "--out", target)
    scored, before = (
        pd.read_csv(target / "new-predictions.csv"),
        pd.read_csv(out / "predictions.csv"),
    )
    for name in ("probability_=1+1", "lower_=1+1", "novelty"):
        assert scored[name].to_numpy() == pytest.approx(before[name].to_numpy(), rel=1e-9)
    dear = before["probability_=1+1"] * 4 > before["probability_<i>no</i>"]
    decided = np.where(dear, "'=1+1", "<i>no</i>").tolist()
    assert scored["decision"].tolist() == before["decision"].tolist() == decided
    assert f"{int((~dear).sum())} decided <i>no</i>" in said


def test_predict_says_what_is_new_and_what_lacks(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    file, out = finished
    table = pd.read_csv(file).drop(columns="outcome")
    table.loc[0, "=colour"] = "green"
    new = tmp_path / "new.csv"
    table.to_csv(new, index=False)
    assert "green" in printed("predict", out, new)
    (out / "new-predictions.csv").unlink()
    table.drop(columns="weight").to_csv(new, index=False)
    assert "'weight'" in refused("predict", out, new, "--out", tmp_path / "b")
    assert not (tmp_path / "b").exists()
    assert "--out names a folder" in refused("predict", out, new, "--out", tmp_path / "b.csv")


def test_explain_tells_one_row(finished: tuple[Path, Path]) -> None:
    """The numbers are those of predictions.csv, and what cells add is their difference."""
    file, out = finished
    said = printed("explain", out, file, "--row", 5)
    lines = said.splitlines()
    assert lines[0] == "Row 5 of 45"
    before = pd.read_csv(out / "predictions.csv").iloc[4]
    assert lines[4].split()[0] == before["predicted"].removeprefix("'")
    assert "90\xa0% interval" in said
    assert f"Novelty {before['novelty']:.2f}" in said
    start = next(i for i, line in enumerate(lines) if line.startswith("  column"))
    assert lines[start].split() == ["column", "cell", "adds", "lost", "without"]
    observed = pd.read_csv(file).drop(columns=["outcome", "junk"]).iloc[4].notna().sum()
    cells = [line.replace("\u2212", "-").split() for line in lines[start + 1 :][:observed]]
    adds = np.array([float(cell[-2]) for cell in cells])
    assert np.all(np.diff(np.abs(adds)) <= 0)
    base, whole = (
        float(word.replace("\u2212", "-"))
        for word in lines[start - 1].split()
        if word[0] in "+\u2212"
    )
    assert base + adds.sum() == pytest.approx(whole, abs=0.05)
    reasons = said[said.index("What speaks") :].splitlines()[1:]
    of_decision = 1 if f"Decided, at least expected cost: {lines[4].split()[0]}" in said else -1
    for name, one in zip([cell[0] for cell in cells], adds * of_decision, strict=True):
        told = [line for line in reasons if line.strip().startswith(f"{name} ")]
        verb = "for" if one > 0 else "against"
        assert [f" speaks {verb} “" in line for line in told] == [True] * int(abs(one) > 0.005)


@pytest.mark.parametrize("row", [0, 46])
def test_explain_refuses_a_row_that_is_not_there(row: int, finished: tuple[Path, Path]) -> None:
    file, out = finished
    assert "from 1 to 45" in refused("explain", out, file, "--row", row)


def test_explain_of_exemplars_says_that_there_is_no_density(tmp_path: Path) -> None:
    table = mixed_table(30, hidden=0.0)
    X, y = table.drop(columns="outcome"), table["outcome"]
    model = bayesrbf.MedianLVQClassifier(metric="gower", random_state=0).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    options = ReportOptions("outcome", table=TableOptions(id="case"))
    (tmp_path / OPTIONS).write_bytes(options_content(options))
    table.assign(case=[f"P{i}" for i in range(30)]).to_csv(tmp_path / "t.csv", index=False)
    said = command("explain", tmp_path, tmp_path / "t.csv", "--row", "P3")
    assert said.out.startswith("Row P3: 4 of 30")
    assert "adds" in said.out
    assert "no draws" in said.out
    assert (said.code, said.err) == (0, "")


def test_check_finds_nothing_in_its_own_table_and_what_is_planted(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    file, out = finished
    said = printed("check", out, file)
    assert said.splitlines()[1] == "Nothing was found."
    assert "'outcome'" in said
    table = pd.read_csv(file)
    table["weight"] *= 1000
    new = tmp_path / "new.csv"
    table.drop(columns="code").to_csv(new, index=False)
    said = printed("check", out, new, code=3)
    assert "'code' is absent" in said
    assert "weight is about 1\u202f000 times too large" in said


def test_check_of_a_table_without_a_known_column_is_an_error(
    finished: tuple[Path, Path], tmp_path: Path
) -> None:
    new = tmp_path / "new.csv"
    new.write_text("a,b\n1,2\n3,4\n")
    assert "none of the columns" in refused("check", finished[1], new)


BAD = {
    "binary": b"\x00\x01\x02",
    "empty": b"",
    "header only": b"a,y\n",
    "ragged": b"a,b,y\n1,2\n3,4,x,5\n",
    "twice": b"a,a,y\n1,2,x\n3,4,z\n",
    "no header": b"1.5,2,x\n2.5,3,z\n",
    "mixed": b"a,y\n1,x\nfoo,z\n3,x\n4,z\n",
    "infinite": b"a,y\n1,x\ninf,z\n3,x\n4,z\n",
    "one class": b"a,y\n1,x\n2,x\n3,x\n",
    "single rows": b"a,y\n1,x\n2,z\n3,x\n",
    "no label": b"a,y\n1,\n2,\n",
    "no column": b"y\nx\nz\nx\nz\n",
    "continuous": b"a,y\n" + b"".join(b"%d,%d.5\n" % (i, i) for i in range(40)),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_bad_table_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    file, out = tmp_path / "bad.csv", tmp_path / "out"
    file.write_bytes(content)
    refused("report", file, "--target", "y", "--out", out)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "outcom"], "did you mean 'outcome'"),
        (["--inference", "gibbs"], "auto, laplace, nuts, map"),
        (["--inference", "map", "--rehearse"], "--inference map makes none"),
        (["--jobs=0"], "--jobs takes a whole number above 0, or -1 for all cores; got 0"),
        (["--stability", "1"], "--stability takes a whole number of refits, at least 2; got 1."),
        (["--cost", "yes"], "class=number"),
        (["--cost", "maybe=2"], "no class of 'outcome': no, yes"),
        (["--cost", "yes=-1"], "above 0"),
        (["--cost", "yes=nan"], "above 0"),
    ],
)
def test_an_option_that_cannot_be_used_is_told_before_any_work(
    words: list[str], said: str, tmp_path: Path
) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "o"
    mixed_table(20).to_csv(file, index=False)
    given = words if "--target" in words else ["--target", "outcome", *words]
    assert said in refused("report", file, "--out", out, *given)
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["stack", "median_lvq"])
def test_families_predict_from_what_they_wrote(
    family: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The stack is the default; what it says of the rows of the fit, it says again."""
    monkeypatch.setitem(families.FAMILIES, family, replace(families.FAMILIES[family], draws=30))
    file, out, target = (tmp_path / name for name in ("t.csv", "out", "scored"))
    mixed_table(24, hidden=0.0).to_csv(file, index=False)
    words = ["report", file, "--target", "outcome", "--out", out]
    assert command(*words, *([] if family == "stack" else ["--model", family])).code == 0
    assert {path.name for path in out.iterdir()} == FILES
    assert command("predict", out, file, "--out", target).code == 0
    scored = pd.read_csv(target / "t-predictions.csv")
    before = pd.read_csv(out / "predictions.csv")
    assert set(scored) <= set(before)
    for name in ("probability_yes", "lower_yes", "upper_yes", "epistemic_entropy", "novelty"):
        expected = pytest.approx(before[name].to_numpy(), rel=1e-9, nan_ok=True)
        assert scored[name].to_numpy() == expected
    assert scored["novelty"].isna().all() == (family == "median_lvq")
    model = bayesrbf.load(out / "model.safetensors")
    assert type(model).__name__ == (
        "StackedClassifier" if family == "stack" else "MedianLVQClassifier"
    )


@pytest.mark.parametrize("where", ["taken", "taken/below", "/proc/none/below", "/sys/kernel/out"])
def test_folder_that_cannot_be_written_is_said_before_any_work(where: str, tmp_path: Path) -> None:
    """Root may write anywhere but into what the kernel has."""
    if where.startswith("/") and not Path(where).parents[-2].is_dir():
        pytest.skip("of Linux")
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "none.csv").write_text("never read")
    out = tmp_path / where
    said = refused("report", tmp_path / "none.csv", "--target", "y", "--out", out)
    assert "is a file" in said or "cannot be written" in said
    assert (tmp_path / "taken").read_text() == "a file"


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "x.csv", "--target", "y"],
        ["report", "x.csv", "--target", "y", "--out", "o", "--inference", "guess"],
        ["report", "x.csv", "--target", "y", "--out", "o", "--model", "guess"],
        ["nonsense"],
        ["predict", "x"],
        ["explain", "x", "y.csv"],
        ["check", "x"],
    ],
)
def test_wrong_use_is_said_without_traceback(words: list[str]) -> None:
    said = command(*words)
    assert said.code != 0
    assert "bayesrbf: " in said.err
    assert "Traceback" not in said.err + said.out


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['bayesrbf', '--help']\n"
        "from bayesrbf.app.commands import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'sklearn', 'matplotlib', 'pymc', 'xarray'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"report", "predict", "explain", "check", "demo"} <= set(done.stdout.split())


def test_what_is_not_there_is_refused_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    for folder, table in (("none", __file__), (tmp_path, "none.csv")):
        code = (
            f"import sys; sys.argv = ['bayesrbf', 'predict', {str(folder)!r}, {table!r}]\n"
            "from bayesrbf.app.commands import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 2\n"
            "heavy = {'scipy', 'sklearn', 'numba', 'pymc', 'xarray'}\n"
            "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        )
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert "none" in done.stderr
        assert "no such file" in done.stderr


def test_module_runs() -> None:
    words = [sys.executable, "-m", "bayesrbf", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bayesrbf.__version__


def test_names_with_commas_stand_in_quotes() -> None:
    assert names_in(["a,b", '"c,d"', "e"]) == ["a", "b", "c,d", "e"]
