"""Files that are written whole or not at all, one by one or together."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Buffer, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".bayesrbf-unfinished"
"""Folder beside files that are being replaced together; the next writer restores the old ones."""

_NAMES: Final = ".names"  # Folder in it, with an empty file for every name that is replaced.

_OLD: Final = ".old"  # Folder in it, with the old files.

_SCRATCH: Final[set[Path]] = set()  # Folders of this process that are removed at their end.


def check_regular(path: str | os.PathLike[str], error: type[Exception]) -> None:
    """Refuse a folder, pipe or device by its mode, without opening it."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no plain file (a pipe, socket or device)"
        raise error(f"{path} is {kind}, where a file was expected.")


def write_whole(path: str | os.PathLike[str], content: Buffer) -> None:
    """Write a file whole or not at all, and onto the disk before returning.

    Through a link, the file it points to is replaced. After an OSError an older file is as it was.
    """
    with writing_whole(path) as beside, open(beside, "xb") as file:
        file.write(content)


@contextmanager
def writing_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an unused path in the file's folder; its content replaces the file at the end.

    Through a link, the file it points to is replaced. After any error an older file is as it was.
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
            error.filename = os.fspath(path)  # the caller's name; a full disk gives none
        raise
    _onto_disk(target.parent)


@contextmanager
def writing_together(folder: str | os.PathLike[str], names: Iterable[str]) -> Iterator[Path]:
    """Yield an empty folder whose files, ``names``, replace those of ``folder``, all or none.

    No new file is ever beside an old one: the old ones leave before the new ones come. If that
    fails or is interrupted, the old ones come back; if the process is killed, they come back when
    the same folder is written next. ``folder`` is made if it does not exist, and its other files
    stay. OSError comes at once if it cannot be written or if a folder has the name of a file.
    """
    target = Path(os.path.abspath(folder))
    parent = next(above for above in (target, *target.parents) if os.path.lexists(above))
    if not parent.is_dir():
        raise NotADirectoryError(f"{parent} is a file; name a folder for the results.")
    beside = parent / f".{target.name}.{secrets.token_hex(4)}"
    absent = [above for above in (target, *target.parents) if not os.path.lexists(above)]
    with _removing(beside, *absent):
        try:
            if (target / UNFINISHED).is_dir():
                with _alone(target):
                    _undo(target)
            beside.mkdir(mode=0o700)
        except OSError as error:
            reason = (error.strerror or "unknown reason").lower()
            raise OSError(f"{folder} cannot be written: {reason}.") from error
        try:
            _refuse_folders(target, names)
            yield beside
            target.mkdir(parents=True, exist_ok=True)
            with _alone(target):
                _undo(target)  # of a writer that was killed meanwhile
                _exchange(beside, target)
        except OSError as error:
            written = Path(str(error.filename))
            if written.parent == beside:
                error.filename = os.path.join(folder, written.name)
            raise


def _refuse_folders(target: Path, names: Iterable[str]) -> None:
    """IsADirectoryError if a folder in ``target`` has one of the names."""
    for name in names:
        if (target / name).is_dir():
            raise IsADirectoryError(
                f"{target / name} is a folder, where a file is to be written; move it away, or "
                "name another folder for the results."
            )


def _exchange(beside: Path, target: Path) -> None:
    """Move the files of ``beside`` into ``target``, in steps that :func:`_undo` can reverse.

    Old files of equal names move the other way. After an error ``target`` is as before.
    """
    journal = target / UNFINISHED
    names = os.listdir(beside)
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
        if not beside.exists():  # otherwise nothing has been moved, or everything
            _undo(target)
        raise


def _undo(target: Path) -> None:
    """Reverse an exchange that was interrupted at any step, including an interrupted reversal."""
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
    with _removing(ended):
        os.replace(journal, ended)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder against exchanges by other processes, where the system has locks."""
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _removing(folder: Path, *around: Path) -> Iterator[None]:
    """Remove a folder at the end, and the empty folders around it from the inside out.

    An interrupt may come into the first removal; the second one is then the first.
    """
    _SCRATCH.add(folder)
    try:
        try:
            yield
        finally:
            _remove(folder, around)
    finally:
        _remove(folder, around)
        _SCRATCH.discard(folder)


def remove_scratch() -> None:
    """Remove this process's unfinished folders before it exits without its handlers.

    An exchange of files that is under way is left to the next writer, as after a kill.
    """
    for folder in tuple(_SCRATCH):
        _remove(folder, ())


def _remove(folder: Path, around: Iterable[Path]) -> None:
    """Remove a folder, and each of the folders around it that is empty."""
    shutil.rmtree(folder, ignore_errors=True)
    for empty in around:
        with suppress(OSError):
            empty.rmdir()


def _move(name: str, source: Path, to: Path) -> None:
    """Move a file, if it exists."""
    if os.path.lexists(source / name):
        os.replace(source / name, to / name)


def _onto_disk(folder: Path) -> None:
    """Sync the names in a folder to the disk, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
