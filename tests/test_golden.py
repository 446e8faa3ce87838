"""Model files of released versions are read for ever, and predict what they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from tests.golden import FOLDER, SAID, file_of, predictions

SAID_BY = {
    (folder.name, family): (said[family], said["rows"])
    for folder in sorted(FOLDER.iterdir())
    for said in [json.loads((folder / SAID).read_text())]
    for family in said
    if family != "rows"
}

CHANGED = ("stack", "stack with draws")
"""Families whose state has other names since: read and written again, it is as it was read."""


def test_the_first_version_has_a_file_of_every_family() -> None:
    assert len([version for version, _ in SAID_BY if version == "0.1.0"]) == 12


@pytest.mark.parametrize(("version", "family"), SAID_BY)
def test_file_of_a_released_version_predicts_as_it_did(
    version: str, family: str, tmp_path: Path
) -> None:
    """Its state bit by bit; predictions to the 1e-10 that machines differ by."""
    (said, tables), path = SAID_BY[version, family], file_of(FOLDER / version, family)
    said = dict(said)
    model = bayesrbf.load(path, said.pop("sha256"))
    rows: Any = pd.DataFrame(tables[said.pop("rows")])
    found = predictions(model, rows.to_numpy() if family == "exemplars of vectors" else rows)
    assert found.keys() == said.keys()
    for name, values in said.items():
        if isinstance(values[0], str):
            assert found[name] == values
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-12)
    if version == bayesrbf.__version__:
        model.save(tmp_path / "again")
        if family in CHANGED:
            bayesrbf.load(tmp_path / "again").save(tmp_path / "twice")
            path = tmp_path / "twice"
        assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_stack_of_an_earlier_version_has_the_present_names() -> None:
    model = bayesrbf.load(file_of(FOLDER / "0.1.0", "stack with draws"))
    assert model.members == model.members_ == ("laplace", "normal")
    assert model.member_table().index.tolist() == ["laplace", "normal", "stack"]
    assert model.posterior_["posterior"]["member"].to_numpy().tolist() == ["laplace", "normal"]
    refits = model._member_draws.members
    assert {tuple(one.name for one in members.own) for members in refits} == {model.members_}
    assert "K1" not in repr(model)
