"""The fault campaign: a round of it, and that its checks see what is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAMPAIGN = ROOT / "benchmarks" / "faults.py"


@pytest.mark.slow
def test_a_round_in_which_a_worker_and_then_driver_and_worker_are_killed_loses_and_doubles_nothing():
    command = [sys.executable, str(CAMPAIGN), "--rounds", "1", "--only", "worker_killed", "driver_and_worker_killed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("    1  listed, local"))
    assert line.endswith("passed      worker_killed 1/1, driver_and_worker_killed 1/1")
    counts = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.endswith("0")}
    assert counts["worker_killed"] == counts["driver_and_worker_killed"] == ["1", "1", "0"]
