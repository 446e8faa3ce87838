"""What a report was asked stays beside its model, and decisions follow from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf.app.report.options import (
    FILES,
    OPTIONS,
    Focus,
    Purpose,
    ReportOptions,
    options_content,
    read_options,
)
from bayesrbf.app.report.output import predictions_frame
from bayesrbf.base import names

MEANT = Purpose("who decides", "ü")


def test_what_was_written_is_read(tmp_path: Path) -> None:
    options = ReportOptions(
        "Größe", Focus({"a=b": 2.0, "ü": 0.5}, "ü", {"ü": "go"}, 0.95, None, MEANT)
    )
    (tmp_path / OPTIONS).write_bytes(options_content(options))
    assert read_options(tmp_path) == options
    assert OPTIONS in FILES


def test_a_model_without_options_has_none(tmp_path: Path) -> None:
    assert read_options(tmp_path) == ReportOptions("")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", "it names no target"),
        ('{"target": "y", "costs": [1]}', "a number for each class"),
        ('{"target": "y", "costs": {"a": "1"}}', "its cost of 'a' must be finite and above 0"),
        ('{"target": "y", "costs": {"a": 0}}', "its cost of 'a' must be finite and above 0"),
        ('{"target": "y", "purpose": {"use": "x"}}', "purpose must be intended_use and population"),
        ('{"target": "y", "purpose": {"population": 1}}', "purpose must be .* as texts"),
        ('{"target": "y", "purpose": "x"}', "purpose must be .* as texts"),
        ('{"target": "y", "costs": {"a": NaN}}', "its cost of 'a' must be finite and above 0"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / OPTIONS).write_text(text)
    with pytest.raises(ValueError, match=f"{OPTIONS} cannot.*{why}.*write the report again"):
        read_options(tmp_path)


def uncertainty() -> xr.Dataset:
    """Two rows of two classes."""
    p = np.array([[0.7, 0.3], [0.95, 0.05]])
    by_class = dict.fromkeys(("probability", "lower", "upper"), ((names.OBS, names.LABEL), p))
    entropies = (
        "total_entropy",
        "aleatoric_entropy",
        "epistemic_entropy",
        "novelty",
        "familiarity",
    )
    by_row = {name: ((names.OBS,), np.zeros(2)) for name in entropies}
    return xr.Dataset({**by_class, **by_row}, coords={names.LABEL: ["well", "sick"]})


def test_decisions_are_those_of_least_expected_cost() -> None:
    frame = predictions_frame(uncertainty(), focus=Focus({"sick": 5.0}))
    assert frame["predicted"].tolist() == ["well", "well"]
    assert frame["decision"].tolist() == ["sick", "well"]
    assert "decision" not in predictions_frame(uncertainty())


def test_ids_stand_beside_the_numbers_of_rows() -> None:
    frame = predictions_frame(uncertainty(), ids=pd.Index(["p7", "p9"], name="patient"))
    assert frame[["row", "patient"]].to_numpy().tolist() == [[1, "p7"], [2, "p9"]]
    assert frame.columns[:2].tolist() == ["row", "patient"]


@pytest.mark.parametrize("name", ["row", "predicted", "probability_sick", "novelty", "lower_well"])
def test_ids_named_like_an_answer_lose_nothing(name: str) -> None:
    ids = pd.Index(["p7", "p9"], name=name)
    frame = predictions_frame(uncertainty(), ids=ids)
    pd.testing.assert_frame_equal(
        frame.drop(columns=f"{name}_id"), predictions_frame(uncertainty())
    )
    assert frame[f"{name}_id"].tolist() == ["p7", "p9"]
