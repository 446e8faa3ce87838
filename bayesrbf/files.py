"""Files that are written whole or not at all, one by one or together."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Buffer, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".bayesrbf-unfinished"
"""Folder beside files that are being replaced together; whoever finds it puts the old ones back."""

_NAMES: Final = ".names"
"""Folder in it, with an empty file of every name: what is replaced."""

_OLD: Final = ".old"
"""Folder in it, with the files that were there before."""


def write_whole(path: str | os.PathLike[str], content: Buffer) -> None:
    """Write a file whole or not at all, and onto the disk before returning.

    Parameters
    ----------
    path : path-like
        File to write or to replace; through a link, the file it points to.
    content : bytes-like
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
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and str(error.filename) in ("None", str(beside)):
            error.filename = os.fspath(path)  # as the caller knows it; a full disk names none
        raise
    _onto_disk(target.parent)


@contextmanager
def writing_together(folder: str | os.PathLike[str], names: Iterable[str]) -> Iterator[Path]:
    """Lend an empty folder; the files written there replace those of ``folder``, all or none.

    No new file ever stands beside an old one: the old ones leave before the new ones come.
    Where that fails or is interrupted, the old ones come back; where it is killed, they do
    when the same folder is written next.

    Parameters
    ----------
    folder : path-like
        Where the files shall be; it is made if it is not there, and other files in it stay.
    names : iterable of str
        Names of the files, all of which are to be written.

    Yields
    ------
    Path
        An empty folder on the same disk.

    Raises
    ------
    OSError
        At once, if the folder cannot be written, or a folder has the name of a file.
    """
    target = Path(os.path.abspath(folder))
    parent = next(above for above in (target, *target.parents) if os.path.lexists(above))
    if not parent.is_dir():
        raise NotADirectoryError(f"{parent} is a file; name a folder for the results.")
    try:
        _put_back(target)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=parent))
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise OSError(f"{folder} cannot be written: {reason}.") from error
    try:
        _refuse_folders(target, names)
        yield beside
        target.mkdir(parents=True, exist_ok=True)
        _exchange(beside, target)
    except OSError as error:
        written = Path(str(error.filename))
        if written.parent == beside:
            error.filename = os.path.join(folder, written.name)
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _refuse_folders(target: Path, names: Iterable[str]) -> None:
    """Nobody's folder is replaced by a file."""
    for name in names:
        if (target / name).is_dir():
            raise IsADirectoryError(
                f"{target / name} is a folder, where a file is to be written; move it away, or "
                "name another folder for the results."
            )


def _exchange(beside: Path, target: Path) -> None:
    """Move old files out and new ones in; each step is one that :func:`_put_back` can read."""
    journal, names = target / UNFINISHED, os.listdir(beside)
    _refuse_folders(target, names)
    (beside / _OLD).mkdir()
    (beside / _NAMES).mkdir()
    for name in names:
        (beside / _NAMES / name).touch()
    try:
        os.replace(beside, journal)
        _onto_disk(target)
        for name in names:
            _move(name, target, journal / _OLD)
        for name in names:
            os.replace(journal / name, target / name)
        _onto_disk(target)
        os.replace(journal, beside)
    except BaseException:
        if not beside.exists():  # else nothing has been moved, or all of it
            _put_back(target)
        raise


def _put_back(target: Path) -> None:
    """Undo an exchange that did not come to its end, from wherever it, or this, had come to."""
    journal = target / UNFINISHED
    if not journal.is_dir():
        return
    names = os.listdir(journal / _NAMES)
    for name in names:
        if not os.path.lexists(journal / name):
            _move(name, target, journal)
    for name in names:
        _move(name, journal / _OLD, target)
    _onto_disk(target)
    ended = target / f"{UNFINISHED}.{secrets.token_hex(4)}"
    os.replace(journal, ended)
    shutil.rmtree(ended, ignore_errors=True)


def _move(name: str, source: Path, to: Path) -> None:
    """Move a file, if there is one."""
    if os.path.lexists(source / name):
        os.replace(source / name, to / name)


def _onto_disk(folder: Path) -> None:
    """Have the names in a folder written, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
