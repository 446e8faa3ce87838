"""Headers of arrays and manifests that were changed by hand and sealed again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bayesrbf.artefact.state_file import save_state
from tests.forgeries import Forgery, assemble, compact, parts, put
from tests.fuzzing import STATE
from tests.hostile.corpus import DAMAGED, Hostile, forged


def entry(key: str, value: object) -> Hostile:
    """An array of which header and manifest say something else."""

    def change(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        header["0"][key] = value
        if key in ("dtype", "shape"):
            manifest["arrays"]["0"][key == "shape"] = value

    return forged(change)


def alone(name: str, **items: object) -> Hostile:
    """An array of which the header alone says something else."""
    return forged(lambda header, manifest: header.setdefault(name, {}).update(items))


def drop(key: str) -> Forgery:
    return lambda header, manifest: manifest.pop(key) and None


def last(key: str) -> Forgery:
    """A key at the end, where its place is not."""
    return lambda header, manifest: manifest.update({key: manifest.pop(key)})


def arrays(**items: object) -> Forgery:
    return lambda header, manifest: manifest["arrays"].update(items)


ARRAYS: Final = {
    "dtype of the header alone": alone("0", dtype="I64"),
    "shape of the header alone": alone("0", shape=[2, 2]),
    "one more": alone("9", dtype="F64", shape=[0], data_offsets=[50, 50]),
    "one more key": alone("0", also=1),
    "one that is missing": forged(lambda header, manifest: header.pop("0") and None),
    "one of the manifest alone": forged(arrays(also=["F64", [0]])),
    "an entry that is a list": forged(lambda header, manifest: header.update({"0": [1]})),
    "an entry that is nothing": forged(lambda header, manifest: header.update({"0": None})),
    "an unknown dtype": entry("dtype", "BF16"),
    "a dtype of objects": entry("dtype", "O"),
    "a dtype that is a list": entry("dtype", ["F64"]),
    "a dtype that is nothing": entry("dtype", None),
    "a dtype that is smaller": entry("dtype", "F32"),
    "a dtype that is larger": entry("dtype", "C64"),
    "a negative shape": entry("shape", [-2, -2]),
    "a huge shape": entry("shape", [2**62, 4]),
    "a huge shape without cells": entry("shape", [2**62, 0]),
    "a shape beyond any number": entry("shape", [10**400]),
    "a shape of a thousand axes": entry("shape", [1] * 300),
    "a shape that is a text": entry("shape", "22"),
    "a shape of fractions": entry("shape", [2.0, 2.0]),
    "a shape of booleans": entry("shape", [True, 4]),
    "a shape that is nothing": entry("shape", None),
    "offsets out of the file": entry("data_offsets", [4096, 4096 + 32]),
    "offsets that overlap": entry("data_offsets", [2, 34]),
    "negative offsets": entry("data_offsets", [-32, 0]),
    "offsets in the wrong order": entry("data_offsets", [32, 0]),
    "three offsets": entry("data_offsets", [0, 32, 64]),
    "offsets of fractions": entry("data_offsets", [0.0, 32.0]),
    "offsets that are nothing": entry("data_offsets", None),
}

KEYS: Final = {
    "one more": forged(put(also=1)),
    "one more, of control characters": forged(put(**{"\x1b[2J\x07": 1})),
    "one more, of a hundred thousand characters": forged(put(**{"x" * 100_000: 1})),
    "no kind": forged(drop("kind")),
    "no digest": forged(drop("sha256")),
    "no arrays": forged(drop("arrays")),
    "no state": forged(drop("state")),
    "no protocol": forged(drop("protocol")),
    "protocol last": forged(last("protocol")),
    "digest last": forged(last("sha256")),
    "a kind that is a list": forged(put(kind=["Thing"])),
    "a kind that is nothing": forged(put(kind=None)),
    "a kind that no version has": forged(put(), "unknown estimator 'Thing'"),
    "a kind of the standard library": forged(put(kind="os.system"), "unknown estimator"),
    "a kind that is a private name": forged(put(kind="__class__"), "unknown estimator"),
    "a kind that is a path": forged(put(kind="../../etc/passwd"), "unknown estimator"),
    "a kind of control characters": forged(put(kind="\x1b]0;x\x07"), "unknown estimator"),
    "a kind of a hundred thousand characters": forged(put(kind="K" * 100_000), "unknown estimator"),
    "a digest that is nothing": forged(put(sha256=None)),
    "a digest that is short": forged(put(sha256="ab")),
    "a digest of another file": forged(
        lambda header, manifest: manifest.update(sha256="A" * 64),  # capitals are not sealed
        "SHA-256 of its manifest",
    ),
    "arrays that are a list": forged(put(arrays=[])),
    "arrays that are nothing": forged(put(arrays=None)),
    **{
        f"protocol {protocol!r}": forged(put(protocol=protocol), "this version reads 1;")
        for protocol in (0, 2, -1, "1", 1.0, True, None, [1], "\x1b[2J", "x" * 100_000)
    },
}


def worded(tail: str, says: str = DAMAGED) -> Hostile:
    """A manifest that ends in this text."""

    def write(path: Path) -> None:
        save_state(path, "Thing", STATE)
        header, manifest, data = parts(path.read_bytes())
        del manifest["state"]
        path.write_bytes(assemble(header, compact(manifest)[:-1] + "," + tail, data))

    return Hostile(write, says)


TEXTS: Final = {
    "NaN": worded('"state":NaN}'),
    "minus infinity": worded('"state":-Infinity}'),
    "a number that overflows": worded('"state":1e999}'),
    "an integer of five thousand digits": worded(f'"state":{"9" * 5000}}}'),
    "an integer of half a million digits": worded(f'"state":{"9" * 500_000}}}'),
    "a hexadecimal number": worded('"state":0x10}'),
    "a leading zero": worded('"state":01}'),
    "a comment": worded('"state":1 /* os.system */}'),
    "a comma too many": worded('"state":[1,]}'),
    "single quotes": worded("\"state\":'x'}"),
    "Python's True": worded('"state":True}'),
    "a control character in a text": worded('"state":"\x01"}'),
    "an escape that is none": worded('"state":"\\x41"}'),
    "half an escape": worded('"state":"\\u00"}'),
    "the same key twice": worded('"state":1,"state":2}', "duplicate keys"),
    "the same key twice, escaped once": worded('"state":1,"st\\u0061te":2}', "duplicate keys"),
    "the same key twice, inside": worded('"state":{"a":1,"a":2}}', "duplicate keys"),
    "forty-one levels": worded(f'"state":{"[" * 41}{"]" * 41}}}', "levels of nesting"),
    "forty-one levels of objects": worded(
        f'"state":{'{"a":' * 41}1{"}" * 41}}}', "levels of nesting"
    ),
    "half a million levels": worded(f'"state":{"[" * 500_000}{"]" * 500_000}}}', "at most"),
    "brackets that close first": worded(f'"state":{"]" * 1000}{"[" * 1000}}}', DAMAGED),
    "a text that does not end": worded('"state":"'),
    "a text that ends in a backslash": worded('"state":"\\'),
    "more than one MiB": worded(f'"state":"{"x" * 2**20}"}}', "bytes of manifest"),
    "more than one MiB of spaces": worded(f'"state":{" " * 2**20}1}}', "bytes of manifest"),
    "more than ten thousand arrays": worded(
        f'"state":[{",".join(['{"array":["0",0,[4]]}'] * 10_001)}]}}', "arrays"
    ),
    "more behind its end": worded('"state":1}}'),
    "a second manifest behind its end": worded('"state":1}{"state":2}'),
}

CORPUS: Final = {"array": ARRAYS, "manifest": KEYS, "JSON": TEXTS}
