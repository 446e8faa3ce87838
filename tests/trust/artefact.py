"""Model files: altered, forged, cut, flipped."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from tests.mutations import FAMILIES, try_all
from tests.trust.sections import Line, Row, Section, program


def files(long: bool) -> list[Line]:
    """Files with names, altered files of every family, and files that were being written."""
    return [
        Line(
            "hostile files, one a check, each refused in its own words, nothing else opened", named
        ),
        *(
            Line(
                f"{name}: one value of its file altered, with a right digest",
                partial(altered, name),
                840 if long else 20,
                "files",
            )
            for name in FAMILIES
        ),
        Line("`save` killed after a random time", killed, 200 if long else 20, "kills", 50),
    ]


def named(_: int, times: int) -> Row:
    """Every hostile file."""
    found = program("tests.hostile")
    return {
        "tried": found["tried"],
        "through": len(found["wrong"]),
        "most MiB of memory": found["memory"],
        "most seconds": found["seconds"],
        "": "; ".join(found["wrong"]),
    }


def altered(family: str, _: int, times: int) -> Row:
    """Alterations of one family, at most so many."""
    with tempfile.TemporaryDirectory() as folder:
        found = try_all(family, times, Path(folder), seed=times)
    return {
        "tried": found.total(),
        "through": found.total() - found["refused"] - found["predicts"],
        "refused": found["refused"],
        "predict finite numbers": found["predicts"],
        "": others(found, "refused", "predicts"),
    }


def killed(number: int, times: int) -> Row:
    """Kills at random times; the part is the seed."""
    tried, wrong = program("tests.killing_saves", times, number)
    return {"tried": tried, "through": len(wrong), "": "; ".join(wrong)}


def manifests(long: bool) -> list[Line]:
    """A hundred thousand of them."""
    asked = 100_000 if long else 3000
    return [Line("manifests at random, with a right digest", fuzzed, asked, "manifests", 25_000)]


def fuzzed(number: int, times: int) -> Row:
    """Manifests of one process; the part is the seed."""
    said = program("tests.fuzzing", times, number)
    found = Counter[str](said["found"])
    return {
        "tried": found.total(),
        "through": found.total() - found["refused"] - found["read"],
        "refused": found["refused"],
        "read": found["read"],
        "MiB by which memory grew at most:": said["grown"],
        "": others(found, "refused", "read"),
    }


def others(found: Counter[str], *good: str) -> str:
    """Outcomes that are not good."""
    return "; ".join(sorted(set(found) - set(good)))


SECTIONS = (
    Section("artefact", files),
    Section("fuzz", manifests),
)
