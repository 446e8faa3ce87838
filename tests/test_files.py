"""A file is written whole or not at all, and keeps what it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from bayesrbf.files import write_whole


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
