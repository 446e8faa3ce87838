"""Hundreds of hostile model files, each refused by name, with nothing touched but itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bayesrbf.artefact.state_file import ArtefactError
from tests.hostile import corpus
from tests.hostile.corpus import Hostile, holding, read
from tests.trust.sections import program


@pytest.mark.slow
def test_every_hostile_file_is_refused_in_words_of_its_own() -> None:
    """Every hostile file is refused in bounded memory; no file is opened, no module imported."""
    said = program("tests.hostile.corpus")
    assert said["wrong"] == []
    assert said["tried"] >= 200


def refuse(path: Path) -> None:
    raise ArtefactError(f"{path} is x")


def opens(path: Path) -> None:
    with open("/dev/null"):
        refuse(path)


def fills(path: Path) -> None:
    kept = bytes(200_000)
    refuse(path)
    del kept


def raises(path: Path) -> None:
    raise KeyError("planted")


def speaks(path: Path) -> None:
    raise ArtefactError("is x\x1b[2J")


def fills_the_screen(path: Path) -> None:
    raise ArtefactError("is x" * 1000)


@pytest.fixture(scope="module", autouse=True)
def watched() -> None:
    """A hook stays as long as the process; it is silent where nothing is read."""
    sys.addaudithook(corpus._watch)


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
def test_planted_weakness_is_seen(load: Callable[[Path], None], wrong: str, tmp_path: Path) -> None:
    one, path = Hostile(holding(b"").write, "is x", memory=100_000), tmp_path / "file"
    found = read(one, path, load).wrong(one, path)
    assert wrong in found
    assert bool(found) == bool(wrong)
