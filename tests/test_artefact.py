"""The artefact: a state that is saved comes back, and nothing else does."""

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

from bayesrbf.artefact.state_file import STRING, ArtefactError, _depth, load_state, save_state
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


def array_entry(key: str, value: object) -> Forgery:
    def change(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        header["0"][key] = value
        if key in ("dtype", "shape"):
            manifest["arrays"]["0"][key == "shape"] = value

    return change


def drop(key: str) -> Forgery:
    def change(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        del manifest[key]

    return change


def header_only(name: str, **entry: object) -> Forgery:
    return lambda header, manifest: header.setdefault(name, {}).update(entry)


def protocol_last(header: dict[str, Any], manifest: dict[str, Any]) -> None:
    manifest["protocol"] = manifest.pop("protocol")


FORGERIES = {
    "dtype of the header alone": header_only("0", dtype="I64"),
    "shape of the header alone": header_only("0", shape=[2, 3]),
    "an extra array": header_only("9", dtype="F64", shape=[0], data_offsets=[50, 50]),
    "an extra key of an array": header_only("0", also=1),
    "an array missing": lambda header, manifest: header.pop("0"),
    "an unknown dtype": array_entry("dtype", "BF16"),
    "a dtype that is a list": array_entry("dtype", ["F64"]),
    "a smaller dtype": array_entry("dtype", "F32"),
    "a negative shape": array_entry("shape", [-3, -2]),
    "a huge shape": array_entry("shape", [2**62, 4]),
    "a huge shape without cells": array_entry("shape", [2**62, 0]),
    "a shape that is no list": array_entry("shape", "32"),
    "a shape of fractions": array_entry("shape", [3.0, 2.0]),
    "a shape of booleans": array_entry("shape", [True, 6]),
    "offsets out of the file": array_entry("data_offsets", [4096, 4096 + 48]),
    "offsets that overlap": array_entry("data_offsets", [2, 50]),
    "offsets that are no list": array_entry("data_offsets", None),
    "an unknown key": put(also=1),
    "a missing key": drop("sha256"),
    "no protocol": drop("protocol"),
    "protocol last": protocol_last,
    "a kind that is no name": put(kind=["Thing"]),
    "a digest that is none": put(sha256=None),
    "arrays that are none": put(arrays=[]),
    "an unknown tag": put(state={"object": "os.system"}),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forgery_is_refused(artefact: Path, change: Forgery) -> None:
    forge(artefact, change)
    with pytest.raises(ArtefactError, match="is damaged or no artefact"):
        load_state(artefact)


@pytest.mark.parametrize("protocol", [0, 1, 3, "2", 2.0, True, None])
def test_another_protocol_is_refused_by_name(artefact: Path, protocol: object) -> None:
    forge(artefact, put(protocol=protocol))
    with pytest.raises(ArtefactError, match="this version reads protocol 2"):
        load_state(artefact)


def test_booleans_are_zero_or_one(artefact: Path) -> None:
    header, manifest, data = parts(artefact.read_bytes())
    begin, _ = header["1"]["data_offsets"]
    assert header["1"]["dtype"] == "BOOL"
    data = data[:begin] + b"\x02" + data[begin + 1 :]
    artefact.write_bytes(assemble(header, compact(manifest), data))
    with pytest.raises(ArtefactError, match="neither 0 nor 1"):
        load_state(artefact)


TEXTS = {
    "NaN": '"state": NaN}',
    "Infinity": '"state": -Infinity}',
    "overflow": '"state": 1e999}',
    "endless integer": '"state": ' + "9" * 5000 + "}",
    "duplicate key": '"state": 1, "state": 2}',
    "deep": '"state": ' + "[" * 40 + "]" * 40 + "}",
    "very deep": '"state": ' + "[" * 500_000 + "]" * 500_000 + "}",
    "unclosed": '"state": "',
    "large": '"state": "' + "x" * 2**20 + '"}',
    "not an object": None,
}


@pytest.mark.parametrize("tail", TEXTS.values(), ids=TEXTS.keys())
def test_json_is_read_strictly(artefact: Path, tail: str | None) -> None:
    header, manifest, data = parts(artefact.read_bytes())
    del manifest["state"]
    text = "[1]" if tail is None else compact(manifest)[:-1] + "," + tail
    artefact.write_bytes(assemble(header, text, data))
    with pytest.raises(ArtefactError):
        load_state(artefact)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip file, and long enough",
        b"\xff" * 64,
        b"\x02\0\0\0\0\0\0\0{}",
        b"\x02\0\0\0\0\0\0\0[]",
        b"\x02\0\0\0\0\0\0\0\xff\xfe",
        (2**21).to_bytes(8, "little") + b"[" * 2**21,
        (35).to_bytes(8, "little") + b'{"__metadata__": {"bayesrbf": [1]}}',
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ArtefactError):
        load_state(path)


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
    ("text", "depth"),
    [("", 0), ("{}", 1), ('["[[["]', 1), ('["\\"[[",[]]', 2), ("]]][", 0), ('{"é": [[]]}', 3)],
)
def test_depth_counts_brackets_outside_strings(text: str, depth: int) -> None:
    assert _depth(text) == depth


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
