"""A command that is told to end, ends: by itself, or by the thread that waits for the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from bayesrbf.app.arguments import TERMINATED, TIMED_OUT, limit_time, obeying
from bayesrbf.app.commands import INTERRUPTED
from tests.app.report.tables import mixed_table

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")

DEAF = """
import os, signal, sys, time
from contextlib import suppress
from bayesrbf.app import arguments as ending
from bayesrbf.base.files import writing_together

ending.GRACE = 0.1
with ending.obeying(), writing_together(sys.argv[1], ["a"]) as beside:
    (beside / "a").write_text("half")
    {act}
    while True:  # as a compiler that loses exceptions
        with suppress(KeyboardInterrupt):
            time.sleep(60)
"""


def deaf(folder: Path, act: str) -> subprocess.CompletedProcess[str]:
    """A process that hears no signal, with something half written."""
    code = DEAF.format(act=act)
    words = [sys.executable, "-c", code, str(folder / "out")]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("act", "code", "sentence"),
    [
        ("signal.raise_signal(signal.SIGTERM)", TERMINATED, "terminated; nothing was written."),
        pytest.param(
            "ending.limit_time(0.1)",
            TIMED_OUT,
            "the time limit was reached; nothing was written.",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_process_that_hears_nothing_is_ended_and_leaves_nothing(tmp_path, act, code, sentence):
    act = f"with suppress(KeyboardInterrupt): {act}"
    done = deaf(tmp_path, act)
    assert done.returncode == code
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


WORKER = """
    from loky.process_executor import ProcessPoolExecutor
    pool = ProcessPoolExecutor(1)
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    with suppress(KeyboardInterrupt): signal.raise_signal(signal.SIGTERM)
"""


def test_the_processes_that_work_for_it_end_with_it(tmp_path):
    done = deaf(tmp_path, WORKER.strip())
    assert done.returncode == TERMINATED, done.stderr
    left = [one for one in psutil.process_iter() if one.pid == int(done.stdout)]
    assert [one for one in left if one.status() != psutil.STATUS_ZOMBIE] == []


def test_a_command_ends_by_itself_at_the_limit(tmp_path):
    mixed_table(60).to_csv(tmp_path / "table.csv", index=False)
    words = ["fit", tmp_path / "table.csv", "--target", "outcome", "--out", tmp_path / "out"]
    command = [sys.executable, "-m", "bayesrbf", *map(str, words), "--time-limit", "0.5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == TIMED_OUT
    assert done.stderr.endswith(
        "Allow twice the time that is announced, or take --model mixture --inference map, "
        "which fits sooner.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_an_interrupt_of_source_that_is_executed_has_the_same_code(tmp_path):
    """As while a dataclass is made: Python would end by SIGINT in place of the exit code."""
    (tmp_path / "planted.py").write_text(
        "from bayesrbf.app import commands as cli\n"
        "cli.app = lambda *_, **__: exec('raise KeyboardInterrupt')\n"
        "cli.main()\n"
    )
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    command = [sys.executable, "-m", "planted"]
    done = subprocess.run(command, capture_output=True, env=os.environ | paths, check=False)
    assert done.returncode == INTERRUPTED, done.stderr


def test_handlers_and_alarms_are_as_before():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)]
    with obeying():
        limit_time(100.0)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_limit_must_be_above_0():
    with pytest.raises(ValueError, match="--time-limit takes seconds above 0; got -1"):
        limit_time(-1.0)


REFUSED = """
import sys
from bayesrbf.app import commands as cli
sys.argv = ["bayesrbf", *sys.argv[1:]]
try:
    cli.main()
finally:
    heavy = {"sklearn", "scipy", "numba", "arviz_stats", "pymc", "matplotlib", "xarray"}
    print(*sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("command", ["report", "fit"])
def test_a_bad_table_is_refused_before_anything_heavy_is_imported(tmp_path, command):
    mixed_table(30).to_csv(tmp_path / "table.csv", index=False)
    words = [command, tmp_path / "table.csv", "--target", "outcom", "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "did you mean 'outcome'?" in done.stderr
    assert done.stdout.split() == []
