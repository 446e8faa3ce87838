"""Model files that somebody forged, or that were changed at random."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.base.artefact import ArtefactError, encode, load_state, pack
from tests import hostile
from tests.fuzzing import Target, at_random
from tests.hostile import RUNS, holding, read
from tests.mutations import FAMILIES, Mutant, fitted, mutants, outcome, try_all
from tests.programs import program

CHANGED = ("density", "mixture with draws", "kernel network", "exemplars")


@pytest.fixture(scope="module", autouse=True)
def watched() -> None:
    """A hook stays as long as the process; it is silent where nothing is read."""
    sys.addaudithook(hostile.watch)


def test_every_hostile_file_is_refused_in_words_of_its_own() -> None:
    """Each is refused in bounded memory; no other file is opened, no module imported."""
    said = program("tests.hostile")
    assert said["wrong"] == []
    assert said["tried"] >= 40


@pytest.mark.slow
def test_every_law_refuses_some_altered_record() -> None:
    """Of 202: the others need two changes at once, or members and columns that these fits lack."""
    unbroken = program("tests.laws")
    assert len(unbroken) <= 47, unbroken


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changed")


@cache
def targets(family: str, folder: Path) -> tuple[Target, str, list[Mutant]]:
    """A file of a family, its kind, and every alteration of one of its values or arrays."""
    path = folder / f"{family} to change"
    fitted(family)[0].save(path)
    kind, state = load_state(path)
    with np.errstate(all="ignore"):  # some arrays are of single precision, or have huge numbers
        return Target(path), kind, list(mutants(*pack(state)))


@given(st.sampled_from(CHANGED), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_file_changed_at_random_is_refused_or_predicts(
    folder: Path, family: str, in_its_text: bool, seed: int
) -> None:
    """Whatever is changed, sealed with the digest that it should have, nothing else happens."""
    target, kind, altered = targets(family, folder)
    if in_its_text:
        content = at_random(target, random.Random(seed))
    else:
        _, alter = altered[seed % len(altered)]
        content = encode(kind, *alter(), "altered")
    hostile.told = []
    said, touched, hostile.told = outcome(content, fitted(family)[1], folder), hostile.told, None
    assert said in ("refused", "predicts")
    assert not [event for event in touched if event.startswith(RUNS)]


@pytest.mark.slow
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in CHANGED])
def test_a_file_with_one_value_altered_is_refused_or_predicts(family: str, tmp_path: Path) -> None:
    assert set(try_all(family, 20, tmp_path)) <= {"refused", "predicts"}


def refuse(path: Path) -> None:
    raise ArtefactError(f"{path} is x")


def opens(path: Path) -> None:
    with open("/dev/null"):
        refuse(path)


def fills(path: Path) -> None:
    kept = bytes(hostile.MAX_MEMORY + 1)
    refuse(path)
    del kept


def raises(path: Path) -> None:
    raise KeyError("planted")


def speaks(path: Path) -> None:
    raise ArtefactError("is x\x1b[2J")


def fills_the_screen(path: Path) -> None:
    raise ArtefactError("is x" * 1000)


@pytest.mark.parametrize(
    ("load", "wrong"),
    [
        (refuse, ""),
        (lambda path: None, "nothing was refused"),
        (opens, "open"),
        (fills, "bytes of memory"),
        (raises, "KeyError"),
        (speaks, "control characters"),
        (fills_the_screen, "4000 characters"),
    ],
)
def test_planted_weakness_is_seen(load: Callable[[Path], Any], wrong: str, tmp_path: Path) -> None:
    found = read(tmp_path, load).wrong(holding(b"", "is x"), tmp_path)
    assert wrong in found
    assert bool(found) == bool(wrong)
