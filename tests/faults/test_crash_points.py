"""All crash points, as their command tries them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_wherever_a_replicate_is_cut_off_it_comes_to_the_same_end():
    command = [sys.executable, "-m", "tests.faults.crash_points"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    counted = re.search(r"(\d+) operations on files, (\d+) requests to a bucket", done.stdout)
    assert counted and int(counted[1]) > 100 and int(counted[2]) > 60
    assert re.search(r"^\d+ courses, 0 with problems", done.stdout, re.MULTILINE)
