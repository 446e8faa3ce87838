"""Where ``bayesrbf reproduce`` finds its scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

import bayesrbf
from bayesrbf.app.reproduce import scripts
from reproduce import commands


def test_scripts_are_those_of_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Path(bayesrbf.__file__).parents[1]
    monkeypatch.syspath_prepend(tmp_path)  # restores the path afterwards
    monkeypatch.chdir(tmp_path)
    assert scripts() is commands.app  # an editable install, from any folder
    monkeypatch.setattr(bayesrbf, "__file__", str(tmp_path / "bayesrbf" / "__init__.py"))
    absent = scripts()  # which a wrong name of another command loads, too
    with pytest.raises(FileNotFoundError, match="Clone the repository"):
        absent(["table", "--json"], exit_on_error=False)
    monkeypatch.chdir(clone)
    assert scripts() is commands.app
