"""The command line reads what people type: remedies that work, new rows that are read the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands import command, printed, refused

FIT = ("--target", "y", "--model", "median_lvq", "--inference", "map")


def table(n: int = 60) -> pd.DataFrame:
    """A European table with stand-ins, limits of detection, a scale, patients and prose."""
    rng = np.random.default_rng(0)
    lab = rng.gamma(2, 5, n)
    return pd.DataFrame(
        {
            "tsh": [
                "-999,0" if i % 10 == 0 else f"{x:.1f}".replace(".", ",") for i, x in enumerate(lab)
            ],
            "crp": ["<5" if x < 5 else f"{x:.1f}".replace(".", ",") for x in rng.permutation(lab)],
            "grade": rng.integers(0, 4, n),
            "remark": [" ".join(rng.choice(["came", "went", "well", "pain"], 9)) for _ in range(n)],
            "y": np.where(lab > 10, "sick", "well"),
        }
    )


def written(folder: Path, frame: pd.DataFrame, name: str = "t.csv") -> Path:
    path = folder / name
    if name.endswith(".csv"):
        frame.to_csv(path, sep=";", index=False)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_note_pasted_ends_it_and_new_rows_are_read_alike(name: str, tmp_path: Path) -> None:
    file, out = written(tmp_path, table(), name), tmp_path / "out"
    said = " ".join(printed("fit", file, *FIT, "--out", out).split())
    assert "'tsh' holds -999 in 6 cells" in said
    assert "--na=-999" in said
    assert "'<5' in 'crp'" in said
    assert "--ignore remark" in said
    said = " ".join(printed("fit", file, *FIT, "--out", out, "--na=-999").split())
    assert "far from" not in said
    assert "'-999' was read as missing: 6 cells of 'tsh'." in said
    held = json.loads((out / "options.json").read_text("utf-8"))["table"]
    assert (held["na"], held["ignore"], held["below"]) == (["-999"], ["remark"], "limit")
    new = written(tmp_path, table().iloc[1:9].drop(columns=["remark", "y"]), f"new-{name}")
    told = command("predict", out, new, "--json")
    assert json.loads(told.out)["rows"] == 8
    assert (told.code, told.err) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--na=-998"], "--na=-998: t.csv has no cell '-998'"),
        (["--na", "crp=-999"], "--na crp=-999: t.csv, column 'crp' has no cell '-999'"),
        (["--na", "ths=-999"], "did you mean 'tsh'?"),
        (["--below", "half"], "--below takes limit or missing; got 'half'"),
    ],
)
def test_what_matches_nothing_is_refused_before_any_work(
    words: list[str], said: str, tmp_path: Path
) -> None:
    file, out = written(tmp_path, table()), tmp_path / "out"
    assert said in refused("fit", file, *FIT, "--out", out, *words)
    assert not out.exists()


def test_limits_are_missing_where_asked_in_one_column_or_all(tmp_path: Path) -> None:
    file, out = written(tmp_path, table()), tmp_path / "out"
    for words in (["--below", "missing"], ["--na", "crp=<5"]):
        assert "read as missing" in printed("fit", file, *FIT, "--out", out, *words)
