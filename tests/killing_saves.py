"""Kill a process while it saves models over each other; a program, see test_saving.

The file that is left must be one of the models, and load, whenever the process was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import bayesrbf
from tests.mutations import fitted

NAMES = ("density", "mixture with draws")


def main(times: int = 200, seed: int = 0) -> tuple[int, list[str]]:
    """So many kills after random times, and what was wrong after them."""
    rng, models = random.Random(seed), [fitted(name)[0] for name in NAMES]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        digests = {model.save(path) for model in models}
        began = time.monotonic()
        for model in models * 5:
            model.save(path)
        usual = (time.monotonic() - began) / 10
        for number in range(times):
            child = os.fork()
            if not child:
                while True:
                    for model in models:
                        model.save(path)
            time.sleep(rng.uniform(0, 3 * usual))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found not in digests:
                wrong.append(f"kill {number}: a file that nobody wrote")
            elif number % 10 == 0:
                bayesrbf.load(path)
    return times, wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # of threads and fork: the child only saves
    print(json.dumps(main(*map(int, sys.argv[1:2]))))
