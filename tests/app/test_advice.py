"""Findings rule the advice: what is planted is named with what to do, by every command."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesrbf
from bayesrbf import HybridMixtureClassifier
from bayesrbf.app.remarks import ACTIONS, AS_GIVEN, OF_COLUMNS, USE, Remark, Topic, advice
from tests.commands import answer, command, printed

Mapped = Callable[[pd.DataFrame], pd.DataFrame]
PLANTED: dict[str, tuple[str, tuple[str, ...], str, Mapped]] = {
    "an empty column": (
        *("missing", ("weight",), "Give column 'weight' as in training"),
        lambda table: table.assign(weight=np.nan),
    ),
    "unknown levels": (
        *("levels", ("ward",), "Write the levels of column 'ward' as in training"),
        lambda table: table.assign(ward="ward " + table["ward"]),
    ),
    "other units": (
        *("unit", ("weight",), "Give column 'weight' in the units of training"),
        lambda table: table.assign(weight=1000 * table["weight"]),
    ),
    "exchanged columns": (
        *("exchanged", ("weight", "age"), "Exchange columns 'weight' and 'age' back"),
        lambda table: table.assign(weight=table["age"], age=table["weight"]),
    ),
}


def patients(n: int, seed: int) -> pd.DataFrame:
    """Two classes that two columns tell apart, a column of levels and one that tells nothing."""
    rng = np.random.default_rng(seed)
    sick = rng.random(n) < 0.4
    return pd.DataFrame(
        {
            "age": rng.normal(50 + 12 * sick, 9),
            "weight": rng.gamma(90, 1.1, n),
            "enzyme": np.exp(rng.normal(3 + sick, 0.5)),
            "ward": rng.choice(["A", "B", "C"], n),
            "outcome": np.where(sick, "sick", "well"),
        }
    )


def split(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    return table.drop(columns="outcome"), table["outcome"]


@pytest.fixture(scope="module")
def model() -> HybridMixtureClassifier:
    return HybridMixtureClassifier(1, cv=3, random_state=0).fit(*split(patients(300, 0)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that a command fitted to the same table."""
    path = tmp_path_factory.mktemp("fitted")
    patients(300, 0).to_csv(path / "table.csv", index=False)
    words = ["fit", path / "table.csv", "--target", "outcome", "--out", path / "model"]
    assert command(*words, "--model", "mixture", "--inference", "map").code == 0
    return path / "model"


@given(st.lists(st.tuples(st.sampled_from(get_args(Topic)), st.booleans(), st.sampled_from("ab"))))
def test_the_model_is_to_be_used_only_where_nothing_is_found(
    noticed: list[tuple[Topic, bool, str]],
) -> None:
    """And columns that are not as in training are all named, before anything else is advised."""
    remarks = [Remark(topic, "", found, (f"column {name}",)) for topic, found, name in noticed]
    said = advice(remarks)
    findings = [remark for remark in remarks if remark.is_finding]
    assert ("Use the model as it is" in said) == (not findings)
    assert said == advice(remarks[::-1]) or len(findings) > 1
    broken = [remark for remark in findings if remark.topic in OF_COLUMNS]
    assert all(repr(name) in said for remark in broken for name in remark.columns)
    if findings and not any(remark.topic in AS_GIVEN for remark in findings):
        assert said in {ACTIONS[remark.topic] for remark in findings}


def test_every_topic_has_an_action() -> None:
    assert set(ACTIONS) == set(get_args(Topic))


def test_what_is_as_in_training_may_be_used(model: HybridMixtureClassifier) -> None:
    X, y = split(patients(400, 1))
    for result in (bayesrbf.validate(model, X, y), bayesrbf.check(model, X)):
        assert (result.findings, result.advice) == ((), USE)
        assert str(result).endswith(USE)


@pytest.mark.filterwarnings("ignore:.*(missing in|not seen at fit|than in training|exchanged)")
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_named_with_what_to_do(
    fault: str, model: HybridMixtureClassifier
) -> None:
    topic, columns, action, plant = PLANTED[fault]
    X, y = split(plant(patients(200, 1)))
    for result in (bayesrbf.validate(model, X, y), bayesrbf.check(model, X)):
        (found,) = (remark for remark in result.findings if remark.topic == topic)
        assert sorted(found.columns) == sorted(columns)
        assert result.advice.startswith(
            action.replace("'weight' and 'age'", " and ".join(map(repr, found.columns)))
        )
        assert str(result).endswith(result.advice)
        assert result.to_dict()["advice"] == result.advice


@pytest.mark.parametrize("fault", ["unknown levels", "exchanged columns"])
def test_commands_name_a_planted_fault_by_advice_and_exit_code(
    fault: str, folder: Path, tmp_path: Path
) -> None:
    topic, columns, _, plant = PLANTED[fault]
    file = tmp_path / "new.csv"
    plant(patients(200, 1)).to_csv(file, index=False)
    for name in ("validate", "check"):
        last = printed(name, folder, file, code=3).splitlines()[-1]
        assert all(repr(column) in last for column in columns)
        told = answer(name, folder, file, code=3)
        assert told["found"]
        assert told["advice"] == last
        (found,) = (one for one in told["remarks"] if one["topic"] == topic)
        assert sorted(found["columns"]) == sorted(columns)
    said = printed("validate", folder, file, "--out", tmp_path, code=3).splitlines()[-1]
    assert said in unescape((tmp_path / "validation.html").read_text())
    changed = answer("predict", folder, file)["changed"]
    assert all(repr(name) in changed[-1] for name in columns)


@pytest.mark.parametrize("rows", [2, 200])
def test_a_new_level_is_told_once(rows: int, folder: Path, tmp_path: Path) -> None:
    """Whether it is in so few rows that chance may explain it, or in all."""
    table = patients(200, 1)
    table.loc[: rows - 1, "ward"] = "attic"
    table.to_csv(tmp_path / "new.csv", index=False)
    for name in ("predict", "validate", "check"):
        said = command(name, folder, tmp_path / "new.csv")
        assert f"{said.out}{said.err}".count("'attic'") == 1


def test_an_update_that_is_not_called_for_is_not_written(folder: Path, tmp_path: Path) -> None:
    """That is said in place of a new model; a method that is named is written."""
    file, here = tmp_path / "new.csv", tmp_path / "here"
    patients(200, 3).to_csv(file, index=False)
    told = printed("update", folder, file, "--out", here)
    assert "no update is called for" in told
    assert "Nothing was written" in told
    assert not here.exists()
    assert command("update", folder, file, "--out", here, "--method", "none").code == 0
    assert (here / "model.safetensors").exists()


def test_rows_of_an_update_are_known_to_the_command(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.csv"
    patients(60, 2).to_csv(file, index=False)
    here = tmp_path / "here"
    assert command("update", folder, file, "--out", here, "--method", "slope").code == 0
    told = printed("validate", here, file, code=3)
    assert "60 of 60 rows equal rows that the model was updated with" in told
