"""Modules of the tests that are programs of their own: what is measured is a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]


def program(module: str, *words: object) -> Any:
    """What a module prints as JSON; what it says on the way is shown as it comes."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}.")
    return json.loads(done.stdout)
