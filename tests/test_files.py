"""Files are written whole or not at all, one by one or together, and keep what they were."""

from __future__ import annotations

import errno
import inspect
import multiprocessing
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Self

import pytest

from bayesrbf.base import files
from bayesrbf.base.files import write_whole, writing_together

NAMES = ("a", "b", "c")
"""``a`` was there before, ``b`` was a link that led nowhere, ``c`` is new."""


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def noted(*args: Any, name: str = name, real: Any = real) -> None:
            steps.append(name)
            real(*args)

        monkeypatch.setattr(os, name, noted)
    write_whole(tmp_path / "f", b"content")
    assert steps == ["fsync", "replace", "fsync"]


def test_a_replaced_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "absent" / "f", b"")


def test_an_error_names_the_file_as_the_caller_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole(tmp_path / "f", b"content")
    assert caught.value.filename == str(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(OSError, match="No space left") as caught,
        writing_together(tmp_path / "out", NAMES) as beside,
    ):
        write_whole(beside / "a", b"new")
    assert caught.value.filename == str(tmp_path / "out" / "a")
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """The end of a process, after which it does nothing more."""


def old_folder(folder: Path) -> Path:
    """A folder with some of the files, and with one of somebody else's."""
    folder.mkdir()
    (folder / "a").write_bytes(b"old")
    (folder / "b").symlink_to("nowhere")
    (folder / "mine").write_bytes(b"mine")
    return folder


def replace_all(folder: Path) -> None:
    """Write every file anew."""
    with writing_together(folder, NAMES) as beside:
        for name in NAMES:
            (beside / name).write_bytes(b"new")


def seen(folder: Path) -> set[str]:
    """Whether the files that can be seen are old or new."""
    assert (folder / "mine").read_bytes() == b"mine"
    visible = [path for path in folder.iterdir() if path.name in NAMES]
    return {"old" if path.is_symlink() else path.read_text() for path in visible}


def is_whole(folder: Path) -> bool:
    """Whether all files are old or all new, and nothing else was left."""
    names = {path.name for path in folder.iterdir()}
    return (seen(folder), names) in (
        ({"old"}, {"a", "b", "mine"}),
        ({"new"}, {*NAMES, "mine"}),
    )


def failing(at: int, error: BaseException, *, ever_after: bool = False) -> Callable[..., Any]:
    """Wrap a function so that one call of it fails, or all from that one on."""
    steps = count()

    def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            now = next(steps)
            if now == at or (ever_after and now > at):
                raise error
            return real(*args, **options)

        return step

    return wrap


@pytest.mark.parametrize("error", [OSError(errno.EIO, "bad disk"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [False, True])
def test_files_are_exchanged_all_or_none(tmp_path: Path, error: BaseException, after: bool) -> None:
    """Whichever move fails, before or after it was made."""
    for at in count():
        folder = old_folder(tmp_path / str(at))
        with pytest.MonkeyPatch.context() as patch:
            real, fails = os.replace, failing(at, error)(lambda: None)

            def move(*paths: Any, real: Any = real, fails: Any = fails) -> None:
                if after:
                    real(*paths)
                fails()
                if not after:
                    real(*paths)

            patch.setattr(os, "replace", move)
            try:
                replace_all(folder)
            except type(error):
                assert is_whole(folder)
            else:
                assert seen(folder) == {"new"}
                break
        with suppress(ZeroDivisionError), writing_together(folder, NAMES):
            _ = 1 / 0
        assert is_whole(folder)
    assert at > 5


def test_killed_exchange_mixes_nothing_and_is_undone_by_the_next(tmp_path: Path) -> None:
    """Killed at any step, and so is the process that undoes it."""

    def killed(folder: Path, at: int, work: Callable[[Path], None]) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            wrap = failing(at, Killed(), ever_after=True)
            patch.setattr(os, "replace", wrap(os.replace))
            patch.setattr(shutil, "rmtree", wrap(shutil.rmtree))
            try:
                work(folder)
            except Killed:
                return True
        return False

    def undo(folder: Path) -> None:
        with suppress(ZeroDivisionError), writing_together(folder, NAMES):
            _ = 1 / 0

    def at_rest(folder: Path) -> bool:
        """Hold that no old file stands beside a new one; whether undoing found its end."""
        assert len(seen(folder)) <= 1
        return not (folder / ".bayesrbf-unfinished").exists()

    for at in count():
        folder = old_folder(tmp_path / str(at))
        if not killed(folder, at, replace_all):
            break
        at_rest(folder)
        for again in range(6):
            killed(folder, again, undo)
            at_rest(folder)
        undo(folder)
        assert at_rest(folder)
        assert seen(folder) in ({"old"}, {"new"})
        assert len([name for name in os.listdir(folder) if name in NAMES]) == (
            2 if seen(folder) == {"old"} else 3
        )
    assert at > 5


def test_a_folder_with_the_name_of_a_file_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "mine").write_bytes(b"mine")
    with pytest.raises(IsADirectoryError, match="move it away"), writing_together(tmp_path, NAMES):
        raise AssertionError("begun")

    def comes_later() -> None:
        with writing_together(tmp_path, ("a", "d")) as beside:
            (beside / "a").write_bytes(b"new")
            (beside / "d").write_bytes(b"new")
            (tmp_path / "d").mkdir()

    with pytest.raises(IsADirectoryError, match="move it away"):
        comes_later()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert {path.name for path in tmp_path.rglob("*")} == {"a", "c", "mine", "d"}


def writer(folder: Path, word: bytes, times: int) -> None:
    """Write all files again and again; a program of :func:`test_writers_take_turns`."""
    for _ in range(times):
        with writing_together(folder, NAMES) as beside:
            for name in NAMES:
                (beside / name).write_bytes(word)


def test_writers_take_turns(tmp_path: Path) -> None:
    """Of several processes: whichever was last, the files are of one of them."""
    context = multiprocessing.get_context("spawn")
    words = [b"one", b"two", b"three"]
    writers = [context.Process(target=writer, args=(tmp_path / "out", w, 60)) for w in words]
    for one in writers:
        one.start()
    for one in writers:
        one.join(60)
    assert [one.exitcode for one in writers] == [0] * len(words)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sorted(os.listdir(tmp_path / "out")) == sorted(NAMES)
    assert len({(tmp_path / "out" / name).read_bytes() for name in NAMES}) == 1


unclosed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""An interrupt at the end of ``with`` leaves a file to the collector."""


class Interrupter:
    """Interrupts at a line of the module that writes files, counted from the beginning."""

    TOOL = 4

    def __init__(self, at: int) -> None:
        self.at, self.seen = at, 0

    def __enter__(self) -> Self:
        events = sys.monitoring
        events.use_tool_id(self.TOOL, "interrupter")
        events.register_callback(self.TOOL, events.events.LINE, self._line)
        for code in codes_of(files):
            events.set_local_events(self.TOOL, code, events.events.LINE)
        return self

    def __exit__(self, *_: object) -> None:
        for code in codes_of(files):
            sys.monitoring.set_local_events(self.TOOL, code, sys.monitoring.events.NO_EVENTS)
        sys.monitoring.free_tool_id(self.TOOL)

    def _line(self, *_: object) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt


def codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The code of every function of a module."""
    for value in vars(module).values():
        function = inspect.unwrap(value) if callable(value) else None
        if inspect.isfunction(function) and function.__code__.co_filename == module.__file__:
            yield function.__code__


@unclosed
def test_interrupt_at_any_line_leaves_old_files_or_new_ones(tmp_path: Path) -> None:
    """And no other file, nor a folder that was not there."""
    for at in count(1):
        folder = old_folder(tmp_path / str(at))
        with Interrupter(at) as interrupter, suppress(KeyboardInterrupt):
            replace_all(folder)
            break
        assert interrupter.seen >= at
        assert is_whole(folder)
        assert {path.name for path in tmp_path.iterdir()} == {str(one) for one in range(1, at + 1)}
    assert at > 60
    for at in count(1):
        with Interrupter(at), suppress(KeyboardInterrupt):
            replace_all(tmp_path / "new" / "deep")
            break
        left = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*")}
        assert left in (set(), {"deep", *(f"deep/{name}" for name in NAMES)})
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
    assert at > 50


@unclosed
def test_interrupt_at_any_line_of_one_file_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    for at in count(1):
        (tmp_path / "f").write_bytes(b"old")
        with Interrupter(at), suppress(KeyboardInterrupt):
            write_whole(tmp_path / "f", b"new")
            break
        assert (tmp_path / "f").read_bytes() in (b"old", b"new")
        assert os.listdir(tmp_path) == ["f"]
    assert at > 10
