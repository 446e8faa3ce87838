"""Artefacts taken apart, changed and put together again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayesrbf.base.artefact import MANIFEST, seal

SEAL = re.compile(rb'(\\"sha256\\":\\")[0-9a-f]{64}')
Forgery = Callable[[dict[str, Any], dict[str, Any]], None]
"""A change of header and manifest, in place."""


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header without metadata, manifest, data."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header.pop("__metadata__")[MANIFEST])
    return header, manifest, content[8 + length :]


def assemble(header: dict[str, Any], manifest: str, data: bytes) -> bytes:
    """A file with the right digest, where its manifest has a place for one."""
    encoded = compact({"__metadata__": {MANIFEST: manifest}, **header}).encode()
    return sealed(len(encoded).to_bytes(8, "little") + encoded + data)


def sealed(content: bytes) -> bytes:
    return SEAL.sub(lambda found: found[1] + seal(content).encode(), content, count=1)


def forge(path: Path, change: Forgery) -> None:
    """Rewrite an artefact after a change of header and manifest."""
    header, manifest, data = parts(path.read_bytes())
    change(header, manifest)
    path.write_bytes(assemble(header, compact(manifest), data))


compact: Callable[[object], str] = json.JSONEncoder(separators=(",", ":")).encode


def put(**items: object) -> Forgery:
    return lambda header, manifest: manifest.update(items)
