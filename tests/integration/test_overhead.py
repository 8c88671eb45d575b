"""What a sweep costs beside plain Tune: the benchmark runs and says both ratios."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_sweep_of_nothing_is_held_against_plain_tune():
    command = [sys.executable, "benchmarks/overhead.py", "--replicates", "5", "--workers", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "ponderay / plain as it comes" in line]
    assert "/ reusing actors" in line
