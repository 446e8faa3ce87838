"""Names of tests are short, plain, and the same in every process: workers compare them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_no_seed_clock_or_address_decides_a_name() -> None:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    running = []
    for seed, zone in (("1", "UTC+12"), ("2", "UTC-14")):  # 26 hours apart: never the same day
        variables = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        running.append(
            subprocess.Popen(words, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True)
        )
        time.sleep(3)
    one, other = (
        [line for line in process.communicate()[0].splitlines() if "::" in line]
        for process in running
    )
    assert [process.returncode for process in running] == [0, 0]
    assert [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize("name", ["x" * 130, "ß", r"\d", "two\nlines"], ids=str.__len__)
def test_a_name_that_cannot_be_typed_ends_the_run(pytestconfig: pytest.Config, name: str) -> None:
    refuse = pytestconfig.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    refuse.pytest_collection_modifyitems([SimpleNamespace(nodeid="test[a name]")])
    with pytest.raises(pytest.UsageError, match="no short and plain name"):
        refuse.pytest_collection_modifyitems([SimpleNamespace(nodeid=f"test[{name}]")])


@pytest.mark.parametrize("value", [b"bytes", "two\nlines", "\\d", "ß", "long" * 21])
def test_what_is_no_plain_text_goes_by_the_name_of_its_argument(
    pytestconfig: pytest.Config, value: str | bytes
) -> None:
    name = pytestconfig.hook.pytest_make_parametrize_id(
        config=pytestconfig, val=value, argname="cell"
    )
    assert name == "cell"
