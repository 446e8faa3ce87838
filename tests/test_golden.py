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
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
