"""The command itself under Ray, killed and interrupted in the middle, and run again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_without_ray import starts, statuses
from tests.waiting import LIMIT_S, until

COMMAND = [str(Path(sys.executable).parent / "ponderay"), "run", "asr.demo", "--smoke", "--cpus", "2"]
NAMES = [
    name for c in ("surprisal", "random", "always_small", "always_big") for name in (c, f"{c} seed 1", f"{c} seed 2")
]


def run_until(text: str, log: Path) -> subprocess.Popen[bytes]:
    """A driver whose log holds `text`."""
    process = subprocess.Popen(COMMAND, stdout=log.open("wb"), stderr=subprocess.STDOUT)  # noqa: S603
    until(lambda: text in log.read_text() or process.poll() is not None)
    assert process.poll() is None, log.read_text()
    return process


@pytest.mark.slow
def test_a_sweep_that_was_killed_and_interrupted_and_run_again_is_whole(workplace):
    """SIGTERM, which it takes as Ctrl-C, ends it on a cluster in `tests/cluster/slurm_scenario.py`."""
    log = workplace / "log"
    killed = run_until("surprisal seed", log)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    stopped = run_until("random seed", log)
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait(LIMIT_S) == 1
    assert "`ponderay run asr.demo --smoke --cpus 2` continues from here" in log.read_text()
    assert "RUNNING" not in statuses("asr.demo.smoke").values()
    assert subprocess.run(COMMAND, check=False).returncode == 0  # noqa: S603
    assert statuses("asr.demo.smoke") == dict.fromkeys(NAMES, "FINISHED")
    before = starts()
    assert subprocess.run(COMMAND, check=False).returncode == 0  # noqa: S603
    assert starts() == before
    assert len(before) == 9
