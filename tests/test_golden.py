"""Model files of released versions are read, and their models predict the recorded values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bayesrbf
from bayesrbf.artefact import pack
from bayesrbf.artefact.state_file import load_state
from tests.golden import FOLDER, SAID, file_of, predictions
from tests.mutations import FAMILIES

LATER = ("mixture beside a pool", "RBF network", "RBF regression")
"""Families of which there is no file of the first version."""
SAID_BY = {
    (folder.name, family): (said[family], said["rows"])
    for folder in sorted(FOLDER.iterdir())
    for said in [json.loads((folder / SAID).read_text())]
    for family in said
    if family != "rows"
}


CHANGED = {
    "stack": {"model_", "members_", "pointwise_"},
    "stack with draws": {"model_", "members_"},
}
"""Attributes that were others in 0.1.0: noise stood beside a model, members had codes for names."""


def test_the_first_version_has_a_file_of_every_family() -> None:
    assert len([version for version, _ in SAID_BY if version == "0.1.0"]) == 10


@pytest.mark.parametrize(("version", "family"), SAID_BY)
def test_file_of_a_released_version_predicts_as_it_did(
    version: str, family: str, tmp_path: Path
) -> None:
    """Its state bit by bit; predictions to the 1e-10 that machines differ by."""
    (said, tables), path = SAID_BY[version, family], file_of(FOLDER / version, family)
    said = dict(said)
    written = said.pop("sha256")
    model = bayesrbf.load(path, written)
    frame = pd.DataFrame(tables[said.pop("rows")])
    rows: Any = frame.to_numpy() if family == "exemplars of vectors" else frame
    found = predictions(model, rows)
    assert found.keys() == said.keys()
    for name, values in said.items():
        if isinstance(values[0], str):
            assert found[name] == values
        else:
            np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-12)
    digest = model.save(tmp_path / "again")
    again = bayesrbf.load(tmp_path / "again", digest)
    assert predictions(again, rows) == found
    assert again.save(tmp_path / "twice") == digest
    if version == bayesrbf.__version__ != "0.1.0":
        assert digest == written


def test_what_the_first_version_did_not_keep_is_named_and_not_made_up() -> None:
    model = bayesrbf.load(file_of(FOLDER / "0.1.0", "stack"))
    with pytest.raises(AttributeError, match="not in files of earlier versions; fit again"):
        _ = model.out_of_fold_


@pytest.mark.parametrize("family", [one for one in FAMILIES if one not in LATER])
def test_what_a_file_of_the_first_version_holds_is_what_its_estimator_says(family: str) -> None:
    path = file_of(FOLDER / "0.1.0", family)
    model, state = bayesrbf.load(path), load_state(path)[1]["state"]
    names = {name for name in state if not name.startswith("_")} - CHANGED.get(family, set())
    assert len(names) >= 14
    for name in names:
        assert packed(getattr(model, name)) == packed(state[name]), name


def packed(value: object) -> tuple[object, dict[str, tuple[str, bytes]]]:
    """A value as files keep it, to the bit."""
    tree, strips = pack(value)
    return tree, {name: (strip.dtype.str, strip.tobytes()) for name, strip in strips.items()}


def test_a_stack_of_an_earlier_version_has_the_present_names() -> None:
    model = bayesrbf.load(file_of(FOLDER / "0.1.0", "stack with draws"))
    assert model.members == model.members_ == ("laplace", "normal")
    assert model.member_table().index.tolist() == ["laplace", "normal", "stack"]
    assert model.posterior_["posterior"]["member"].to_numpy().tolist() == ["laplace", "normal"]
    refits = model.fitted_.details.members
    assert {tuple(one.name for one in members.own) for members in refits} == {model.members_}
    assert "K1" not in repr(model)
