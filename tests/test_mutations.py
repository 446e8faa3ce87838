"""Altered artefacts with a right digest are refused by ``load``, or predict."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from bayesrbf.artefact.conforming import conforms, declared
from bayesrbf.artefact.unpacking import check_record
from bayesrbf.records.mixture import Standardisation
from bayesrbf.records.stored import STORED
from tests.mutations import FAMILIES, try_all

QUICK = ("density", "mixture with draws", "kernel network", "exemplars")


@pytest.mark.parametrize("name", QUICK)
def test_some_alterations_are_refused_or_predict(name: str, tmp_path: Path) -> None:
    assert set(try_all(name, 30, tmp_path, seed=1)) <= {"refused", "predicts"}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_hundreds_of_alterations_are_refused_or_predict(name: str, tmp_path: Path) -> None:
    assert set(try_all(name, 300, tmp_path, seed=2)) <= {"refused", "predicts"}


def test_every_stored_record_has_types_that_can_be_checked() -> None:
    records = [kind for kind in STORED.values() if dataclasses.is_dataclass(kind)]
    assert len(records) >= 50
    for kind in records:
        assert set(declared(kind)) == {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("location", "scale", "message"),
    [
        (np.zeros(3), np.ones(2), "is no Float"),
        (np.zeros(2, np.float32), np.ones(2), "is no Float"),
        (np.zeros(2), None, "is no Float"),
        (np.array([0.0, np.nan]), np.ones(2), "holds NaN"),
        (np.zeros(2), np.array([1.0, 0.0]), "positive scales"),
    ],
)
def test_a_record_is_held_to_types_shapes_numbers_and_laws(
    location: np.ndarray, scale: np.ndarray, message: str
) -> None:
    record = object.__new__(Standardisation)  # as no fit makes it
    object.__setattr__(record, "location", location)
    object.__setattr__(record, "scale", scale)
    with pytest.raises(ValueError, match=message):
        check_record(record)


def test_contents_of_tuples_and_mappings_are_checked() -> None:
    assert conforms({"a": (1.0, 2)}, dict[str, tuple[float, ...]])
    assert not conforms({"a": (1.0, "2")}, dict[str, tuple[float, ...]])
    assert not conforms({1: (1.0,)}, dict[str, tuple[float, ...]])
    assert not conforms(1.0, int | None)
    assert conforms((1, "a"), tuple[int, str])
    assert not conforms((1,), tuple[int, str])
