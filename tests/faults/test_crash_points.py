"""All crash points, as their command tries them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.replicate import Run

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_wherever_a_replicate_is_cut_off_it_comes_to_the_same_end():
    command = [sys.executable, "-m", "tests.faults.crash_points", "--pairs", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, cwd=ROOT)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    counted = re.search(r"(\d+) operations on files, (\d+) requests to a bucket", done.stdout)
    assert counted and int(counted[1]) > 100 and int(counted[2]) > 60
    assert re.search(r"^\d+ courses, 0 with problems", done.stdout, re.MULTILINE)


def test_a_run_that_nothing_disturbs_comes_to_what_its_trainable_says(workplace):
    """Which the others are held against: by hand, the sums of eighths to steps 2 and 4 behind a product of 1.0."""
    run = Run(workplace, "undisturbed")
    run.to_its_end()
    outcome = run.outcome()
    ((_, _, state, _, metrics),) = outcome["replicates"]
    assert state == "complete"
    assert {name: metrics[name] for name in metrics if "error" in name} == {"error@early": 1.375, "error@late": 2.25}
    kept = {name: json.loads(content) for name, (_, content) in outcome["checkpoints"].items()}
    assert kept["early"] == kept["None"] == {"step": 2, "total": 1.375}
    assert kept["late"] == {"step": 4, "total": 2.25}
    files = {path.partition(".")[0] for files in outcome["files"].values() for path in files if "/" not in path}
    assert files == {"step_000002", "step_000004", "artifacts"}
