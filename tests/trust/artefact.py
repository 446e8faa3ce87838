"""Model files: altered, forged, cut, flipped."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.mutations import FAMILIES, try_all
from tests.trust.sections import Section, Tried, portion, program, suite

MOST = {True: portion(840), False: 20}
"""Alterations of a family in the long form and in the short one."""

RUN = 250_000
"""Manifests of one process."""


def run(long: bool) -> Iterator[Tried | str]:
    """Files with names, altered files of every family, then the tests that forge by hand."""
    said = program("tests.hostile.corpus")
    yield Tried(
        "hostile files with names, each refused in its own words, with nothing else opened",
        said["tried"],
        len(said["wrong"]),
        f"{said['memory']:.0f} MiB at most but for one that grows, {said['seconds']:.1f} s"
        + "".join(f"; {one}" for one in said["wrong"]),
    )
    files = mutated(MOST[long])
    through = {text for text in files if text not in ("refused", "predicts")}
    yield Tried(
        f"model files with one value altered and a right digest, {len(FAMILIES)} kinds of model",
        files.total(),
        sum(files[text] for text in through),
        "; ".join(
            [
                f"{files['refused']} refused, {files['predicts']} predict finite numbers",
                *sorted(through),
            ]
        ),
    )
    yield suite("cut and flipped model files", "tests/test_artefact.py", long=long)
    tried, wrong = program("tests.killing_saves", portion(200) if long else 20)
    yield Tried("`save` killed after a random time", tried, len(wrong), "; ".join(wrong))
    yield suite("files of released versions, read again", "tests/test_golden.py", long=long)
    yield suite("what reading opens and imports", "tests/test_loading.py", long=long)


def mutated(most: int) -> Counter[str]:
    """Outcomes of altered model files of every family."""
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in FAMILIES:
            total += try_all(name, most, Path(folder), seed=most)
            print(f"{name}: {total.total()} in all", file=sys.stderr, flush=True)
    return total


def fuzzed(long: bool) -> Iterator[Tried | str]:
    """Ten million manifests, in runs that are told as they end."""
    found, seconds, grown = Counter[str](), 0.0, 0.0
    whole = portion(10_000_000) if long else 3000
    for seed, start in enumerate(range(0, whole, RUN)):
        said = program("tests.fuzzing", min(RUN, whole - start), seed)
        found.update(said["found"])
        seconds, grown = seconds + said["seconds"], max(grown, said["grown"])
        print(f"{found.total()} of {whole} in {seconds:.0f} s", dict(found), file=sys.stderr)
    finds = sorted(set(found) - {"read", "refused"})
    remark = (
        f"{found['refused']} refused, {found['read']} read, {found.total() / seconds:.0f} a "
        f"second, memory grew by {grown:.0f} MiB"
    )
    yield Tried(
        "manifests at random, with a right digest",
        found.total(),
        sum(found[find] for find in finds),
        "; ".join([remark, *finds]),
    )


SECTIONS = (
    Section("artefact", "Model files", run),
    Section("fuzz", "Model files: manifests at random", fuzzed),
)
