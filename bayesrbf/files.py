"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all, and onto the disk before returning.

    Parameters
    ----------
    path : path-like
        File to write or to replace; through a link, the file it points to.
    content : bytes
        What it shall hold.

    Raises
    ------
    OSError
        If it cannot be written; an older file is then left as it was.
    """
    with writing_whole(path) as beside, open(beside, "xb") as file:
        file.write(content)


@contextmanager
def writing_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a name beside a file; what was written there becomes the file at the end.

    Parameters
    ----------
    path : path-like
        File to write or to replace; through a link, the file it points to.

    Yields
    ------
    Path
        A name in the same folder that does not exist yet.

    Raises
    ------
    OSError
        If it cannot be written; an older file is then left as it was, as it is
        after any other error.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
