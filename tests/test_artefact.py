"""The artefact: a state that is saved comes back, and nothing else does (see test_hostile)."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayesrbf
from bayesrbf import HybridMixtureClassifier
from bayesrbf.base.artefact import STRING, ArtefactError, depth, load_state, save_state
from tests.forgeries import Forgery, assemble, compact, forge, parts, put

STATE = {"a": np.arange(6.0).reshape(2, 3).T, "b": (1, None, "x"), "c": np.array([True, False])}


@pytest.fixture
def artefact(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_state(path, "Thing", STATE)
    return path


def test_a_state_comes_back(artefact: Path) -> None:
    kind, state = load_state(artefact)
    assert kind == "Thing"
    assert state["b"] == STATE["b"]
    np.testing.assert_array_equal(state["a"], STATE["a"])
    np.testing.assert_array_equal(state["c"], STATE["c"])
    assert state["a"].flags.writeable


def test_states_without_arrays_and_with_empty_ones_come_back(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    for state in ({}, {"a": np.empty((0, 3))}, {"a": np.array(2.5)}):
        save_state(path, "Thing", state)
        _, back = load_state(path)
        assert back.keys() == state.keys()
        for name, array in state.items():
            np.testing.assert_array_equal(back[name], array, strict=True)


def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = {save_state(tmp_path / name, "Thing", STATE) for name in ("a", "b")}
    assert len(digests) == 1


def test_the_digest_is_the_files_and_is_held(artefact: Path) -> None:
    digest = save_state(artefact, "Thing", STATE)
    assert digest == hashlib.sha256(artefact.read_bytes()).hexdigest()
    assert load_state(artefact, digest.upper())[0] == "Thing"
    with pytest.raises(ArtefactError, match="must have the SHA-256"):
        load_state(artefact, "0" * 64)


def test_the_untouched_parts_assemble_to_a_readable_file(artefact: Path) -> None:
    """So that the refusals below are of the forgery and not of the assembly."""
    forge(artefact, lambda header, manifest: None)
    assert load_state(artefact)[1]["b"] == STATE["b"]


def test_every_truncation_is_refused(artefact: Path) -> None:
    content = artefact.read_bytes()
    for length in range(len(content)):
        artefact.write_bytes(content[:length])
        with pytest.raises(ArtefactError):
            load_state(artefact)


def test_every_flipped_byte_of_the_data_is_refused(artefact: Path) -> None:
    content = artefact.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    for position in range(start, len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 0x10
        artefact.write_bytes(flipped)
        with pytest.raises(ArtefactError, match="SHA-256"):
            load_state(artefact)


@pytest.mark.parametrize("bit", [0x01, 0x10, 0x80])
def test_every_flipped_byte_of_the_header_is_refused(artefact: Path, bit: int) -> None:
    content = artefact.read_bytes()
    for position in range(8 + int.from_bytes(content[:8], "little")):
        flipped = bytearray(content)
        flipped[position] ^= bit
        artefact.write_bytes(flipped)
        with pytest.raises(ArtefactError):
            load_state(artefact)


LATER: dict[str, tuple[Forgery, str]] = {
    "a field": (
        lambda header, manifest: _fitted(manifest)["table"]["record"][1].update(later=1),
        "unknown fields of a TrainingTable: later",
    ),
    "no field": (
        lambda header, manifest: _fitted(manifest)["table"]["record"][1].pop("owner"),
        "lacks fields of a TrainingTable: owner",
    ),
    "a record": (
        lambda header, manifest: _fitted(manifest)["table"].update(record=["Later", {}]),
        "the unknown record 'Later'",
    ),
    "an argument": (
        lambda header, manifest: manifest["state"]["dict"]["arguments"]["dict"].update(later=1),
        "unknown arguments: later",
    ),
    "an estimator": (put(kind="LaterClassifier"), "the unknown estimator 'LaterClassifier'"),
}


def _fitted(manifest: dict[str, Any]) -> dict[str, Any]:
    """Fields of the fit in a manifest."""
    fields: dict[str, Any] = manifest["state"]["dict"]["fitted"]["record"][1]
    return fields


@pytest.mark.parametrize("what", LATER)
def test_what_a_later_version_wrote_is_refused_by_name(what: str, tmp_path: Path) -> None:
    """The file is intact, and the error says how to go on."""
    path = tmp_path / "m.safetensors"
    HybridMixtureClassifier(1, random_state=0).fit(np.eye(4), [0, 1, 0, 1]).save(path)
    change, said = LATER[what]
    forge(path, change)
    with pytest.raises(ArtefactError, match=f"{said}. .*version that wrote it, or fit again") as e:
        bayesrbf.load(path)
    assert "damaged" not in str(e.value)


def test_booleans_are_zero_or_one(artefact: Path) -> None:
    header, manifest, data = parts(artefact.read_bytes())
    begin, _ = header["1"]["data_offsets"]
    assert header["1"]["dtype"] == "BOOL"
    data = data[:begin] + b"\x02" + data[begin + 1 :]
    artefact.write_bytes(assemble(header, compact(manifest), data))
    with pytest.raises(ArtefactError, match="neither 0 nor 1"):
        load_state(artefact)


def test_a_header_with_the_same_array_twice_is_refused(artefact: Path) -> None:
    content = artefact.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()
    doubled = header[:-1] + b',"0":' + json.dumps(parts(content)[0]["0"]).encode() + b"}"
    artefact.write_bytes(len(doubled).to_bytes(8, "little") + doubled + content[8 + length :])
    with pytest.raises(ArtefactError, match="duplicate keys"):
        load_state(artefact)


UNCLOSED = ['"' * 60_001, '\\"' * 30_000, '["' * 30_000 + "\\", '"\\' * 30_000, "[" * 60_000]


@pytest.mark.parametrize("text", UNCLOSED, ids=range(len(UNCLOSED)))
def test_strings_are_found_in_one_pass(text: str) -> None:
    """Doubling the text doubles the steps: a character is matched once."""
    spans = [match.span() for match in STRING.finditer(text)]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    unmatched = set(range(len(text))) - {i for span in spans for i in range(*span)}
    assert not any(text[i] == '"' for i in unmatched)


@pytest.mark.parametrize(
    ("text", "deepest"),
    [("", 0), ("{}", 1), ('["[[["]', 1), ('["\\"[[",[]]', 2), ("]]][", 0), ('{"é": [[]]}', 3)],
)
def test_depth_counts_brackets_outside_strings(text: str, deepest: int) -> None:
    assert depth(text) == deepest


def test_what_is_no_plain_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArtefactError, match="no plain file"):
        load_state(tmp_path / "pipe")
    with pytest.raises(ArtefactError, match="is a folder"):
        load_state(tmp_path)


def test_a_sparse_file_is_refused_before_it_is_read(artefact: Path, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    with open(sparse, "wb") as file:
        file.truncate(4 * 2**30)
    tracemalloc.start()
    with pytest.raises(ArtefactError):
        load_state(sparse)
    os.truncate(artefact, 4 * 2**30)  # behind a header that is right
    with pytest.raises(ArtefactError, match="at most 2147483648 bytes"):
        load_state(artefact)
    os.truncate(artefact, 2**30)
    with pytest.raises(ArtefactError, match="do not fill"):
        load_state(artefact)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


def test_a_state_beyond_the_limits_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    deep: object = 1
    for _ in range(40):
        deep = [deep]
    for state, message in (
        ({"a": "x" * 2**20}, "bytes of manifest"),
        ({"a": deep}, "levels of nesting"),
        ({"a": [np.array(i) for i in range(10_001)]}, "arrays"),
    ):
        with pytest.raises(ArtefactError, match=message):
            save_state(path, "Thing", state)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_while_saving_leaves_the_old_file(
    artefact: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = artefact.read_bytes()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, crash)
    with pytest.raises(KeyboardInterrupt):
        save_state(artefact, "Thing", {"a": 1})
    assert artefact.read_bytes() == before
    assert os.listdir(artefact.parent) == [artefact.name]
