"""Names of tests are short, plain, and the same in every process: workers compare them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 120


def test_names_are_short_and_plain_and_no_seed_clock_or_address_decides_them() -> None:
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
    for name in one:
        assert len(name.partition("[")[2]) <= LONGEST, name
        assert name.isascii(), name
        assert name.isprintable(), name
        assert "\\" not in name, name  # stands for what cannot be printed


@pytest.mark.parametrize("value", [b"bytes", "two\nlines", "\\d", "ß", "long" * 21])
def test_what_is_no_plain_text_goes_by_the_name_of_its_argument(
    pytestconfig: pytest.Config, value: str | bytes
) -> None:
    name = pytestconfig.hook.pytest_make_parametrize_id(
        config=pytestconfig, val=value, argname="cell"
    )
    assert name == "cell"
