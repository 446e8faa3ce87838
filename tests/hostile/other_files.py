"""What is no artefact at all, and what stands in the place of a file."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import socket
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import numpy as np

from tests.hostile.corpus import Hostile, holding


class Runs:
    """A pickle of it runs a command."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch got-in",)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.safetensors", bytes(2**20))
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"))
    return file.getvalue()


def numpy_pickle() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Runs()], dtype=object), allow_pickle=True)
    return file.getvalue()


def behind(length: int, content: bytes = b"") -> bytes:
    """The length of a header, and what follows it."""
    return length.to_bytes(8, "little") + content


def header(text: str | bytes) -> bytes:
    """A file of a header and nothing else."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return behind(len(content), content)


def metadata(value: object) -> bytes:
    return header(json.dumps({"__metadata__": value}))


OTHER: Final = {
    "empty": holding(b""),
    "one byte": holding(b"{"),
    "seven bytes": holding(bytes(7)),
    "eight bytes of zeros": holding(bytes(8)),
    "zeros": holding(bytes(4096)),
    "ones": holding(b"\xff" * 4096),
    "a pickle that runs a command": holding(pickle.dumps(Runs())),
    "a pickle of the first protocol": holding(pickle.dumps(Runs(), protocol=0)),
    "an array of NumPy that is a pickle": holding(numpy_pickle()),
    "a zip file": holding(zipped()),
    "a tar file that leaves its folder": holding(tarred()),
    "a gzip file that grows": holding(gzip.compress(bytes(2**24))),
    "a Parquet file": holding(b"PAR1" + bytes(64) + b"PAR1"),
    "an HDF5 file": holding(b"\x89HDF\r\n\x1a\n" + bytes(512)),
    "a picture": holding(b"\x89PNG\r\n\x1a\n" + bytes(512)),
    "a program": holding(b"\x7fELF" + bytes(512)),
    "a script": holding(b"#!/bin/sh\ntouch got-in\n"),
    "a program of Python": holding(b"import os\nos.system('touch got-in')\n"),
    "a page": holding(b"<!doctype html><script>alert(1)</script>"),
    "a table": holding(b"a,b\n1,2\n" * 100),
    "YAML that builds an object": holding(b"!!python/object/apply:os.system ['touch got-in']"),
    "JSON without a length": holding(b'{"__metadata__": {"bayesrbf": "{}"}}'),
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def plug(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def sparse(size: int) -> Hostile:
    def write(path: Path) -> None:
        with open(path, "wb") as file:
            file.truncate(size)

    return Hostile(write)


PLACES: Final = {
    "a pipe that nobody writes": Hostile(pipe, "no plain file"),
    "a socket": Hostile(plug, "no plain file"),
    "a folder": Hostile(lambda path: path.mkdir(), "is a folder"),
    "a link to a folder": Hostile(lambda path: path.symlink_to("/"), "is a folder"),
    "a link to zeros without an end": Hostile(
        lambda path: path.symlink_to("/dev/zero"), "no plain file"
    ),
    "a link to a terminal": Hostile(lambda path: path.symlink_to("/dev/tty"), "no plain file"),
    "a link to random bytes": Hostile(
        lambda path: path.symlink_to("/dev/urandom"), "no plain file"
    ),
    "four GiB of nothing": sparse(2**32),
    "sixteen TiB of nothing": sparse(2**43),
}

HEADERS: Final = {
    "of no bytes": holding(behind(0, bytes(64))),
    "longer than the file": holding(behind(1000, bytes(10))),
    "as long as a number can be": holding(behind(2**64 - 1, bytes(64))),
    "negative, were it signed": holding(behind(2**63, bytes(64))),
    "longer than the limit": holding(behind(2**22 + 1, b"[" * (2**22 + 1))),
    "of four MiB of brackets": holding(header("[" * 2**22)),
    "of four MiB of opened strings": holding(header('["' * 2**21)),
    "of backslashes": holding(header('"' + "\\" * 2**20)),
    "no UTF-8": holding(header(b"\xff\xfe")),
    "UTF-16": holding(header('{"__metadata__":{}}'.encode("utf-16"))),
    "with a mark of its encoding": holding(header("\ufeff{}")),
    "overlong UTF-8": holding(header(b'{"\xc0\xaf":1}')),
    "half of a surrogate": holding(header('{"\ud800":1}')),
    "a list": holding(header("[]")),
    "a number": holding(header("7")),
    "a text": holding(header('"x"')),
    "nothing": holding(header("null")),
    "cut short": holding(header('{"__metadata__":{"bayesrbf":"{')),
    "followed by more": holding(header("{}{}")),
    "without metadata": holding(header("{}")),
    "with two metadata": holding(header('{"__metadata__":{},"__metadata__":{"bayesrbf":"{}"}}')),
    "metadata that are a list": holding(metadata([])),
    "metadata that are nothing": holding(metadata(None)),
    "metadata of another format": holding(metadata({"format": "pt"})),
    "a manifest that is a number": holding(metadata({"bayesrbf": 1})),
    "a manifest that is a list": holding(metadata({"bayesrbf": [1]})),
    "a manifest that is an object": holding(metadata({"bayesrbf": {"protocol": 1}})),
    "an empty manifest": holding(metadata({"bayesrbf": ""})),
    "a manifest of another text": holding(metadata({"bayesrbf": "import os"})),
    "ten thousand and one arrays": holding(
        header(
            json.dumps(
                {"__metadata__": {"bayesrbf": "{}"}, **dict.fromkeys(map(str, range(10_001)))}
            )
        ),
        "at most 10000 arrays",
    ),
}

CORPUS: Final = {"another file": OTHER, "place": PLACES, "header": HEADERS}
