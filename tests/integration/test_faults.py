"""The campaign of faults in what runs the work: a round of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLOCK_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


def campaign(name: str, *arguments: str) -> str:
    """What a campaign of `benchmarks/` prints, run as its text says."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_round_with_a_clock_that_is_set_back_by_an_hour_loses_and_doubles_nothing():
    """Of the campaign against what runs the work; where clocks cannot be set, with the death of the log monitor."""
    kind = "clock_back" if CLOCK_LIBRARY.exists() and shutil.which("cc") else "log_monitor_killed"
    printed = campaign("node_faults", "--only", kind, "--setups", "local").splitlines()
    struck = "clock set back by 1 h" if kind == "clock_back" else "log_monitor killed"
    (row,) = [line for line in printed if line.startswith(f"| local | {kind} | {struck} | 0 | ")]
    assert row.endswith("| faults.small: 6 complete, 0 failed | - | held |")
