"""What a sweep costs beside plain Tune: the benchmark runs and says the ratio."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.long
def test_a_sweep_of_nothing_is_held_against_plain_tune():
    command = [sys.executable, "benchmarks/overhead.py", "--replicates", "5", "--workers", "0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    (row,) = found["replicates"]
    assert row["num_replicates"] == 5 and min(row["ratio_to_reusing"], row["ponderay_driver_cpu_s"]) > 0
