"""What reading a model file touches: that file, nothing else, and no further module."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing import at_random, fuzz, small
from tests.mutations import FAMILIES, fitted

ROOT = Path(__file__).resolve().parents[1]

WATCHED = """
import json, sys
import bayesrbf
told = []

def watch(event, arguments):
    # The package evaluates its own annotations (compile, exec); a file may make it do no more.
    if event in ("open", "import", "os.system", "os.exec", "subprocess.Popen", "socket.connect",
                 "ctypes.dlopen", "pickle.find_class"):
        told.append([event, str(arguments[0])])

for path in sys.argv[1:]:
    bayesrbf.load(path)  # whatever loading needs of the package is there now
sys.addaudithook(watch)
for path in sys.argv[1:]:
    bayesrbf.load(path)
print(json.dumps(told))
"""


@pytest.mark.parametrize(
    "families",
    [
        pytest.param(("mixture with draws", "kernel network"), id="few"),
        pytest.param(tuple(FAMILIES), marks=pytest.mark.slow, id="all"),
    ],
)
def test_reading_opens_the_file_and_imports_nothing(
    families: tuple[str, ...], tmp_path: Path
) -> None:
    """After one of its kind: no file, module or program is opened by what a file holds."""
    paths = [str(tmp_path / family) for family in families]
    for family, path in zip(families, paths, strict=True):
        fitted(family)[0].save(path)
    command = [sys.executable, "-W", "ignore", "-c", WATCHED, *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["open", path] for path in paths]


def test_manifests_at_random_are_states_or_refused() -> None:
    """Three thousand; ``python -m tests.fuzzing 1000000`` tries a million."""
    said = fuzz(3000, seed=1)
    assert set(said["found"]) == {"read", "refused"}, said
    assert said["grown"] < 50


def test_fuzzer_tells_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = small(tmp_path)

    def broken(*_: object) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("tests.fuzzing.load_state", broken)
    assert target.outcome(at_random(target, random.Random(0))) == "KeyError: 'planted'"
