"""Each benchmark runs as its own text says, and says what it must."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_routed_execution_takes_less_time_than_masked_at_one_half():
    command = [sys.executable, str(ROOT / "benchmarks/routing.py"), "--repeats", "9"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    rows = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in done.stdout.splitlines()[2:]}
    routed_ms, masked_ms, ratio, _ = rows["0.50"]
    assert routed_ms < masked_ms
    assert abs(ratio - routed_ms / masked_ms) < 0.01
