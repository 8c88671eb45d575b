"""The command itself under Ray, stopped in the middle by each signal, and run again."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.test_without_ray import starts, statuses

COMMAND = [str(Path(sys.executable).parent / "ponderay"), "run", "asr.demo", "--smoke", "--cpus", "2"]
NAMES = [
    name for c in ("surprisal", "random", "always_small", "always_big") for name in (c, f"{c} seed 1", f"{c} seed 2")
]


def run_until(text: str, log: Path) -> subprocess.Popen[bytes]:
    """A driver whose log holds `text`."""
    process = subprocess.Popen(COMMAND, stdout=log.open("wb"), stderr=subprocess.STDOUT)  # noqa: S603
    deadline = time.monotonic() + 120
    while text not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return process


@pytest.mark.slow
def test_a_sweep_stopped_by_each_signal_and_run_again_is_whole(workplace):
    log = workplace / "log"
    killed = run_until("surprisal seed", log)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for number, (asked, text) in enumerate([(signal.SIGTERM, "random seed"), (signal.SIGINT, "always_small seed")]):
        stopped = run_until(text, log)
        stopped.send_signal(asked)
        assert stopped.wait(60) == 1, number
        assert "`ponderay run asr.demo --smoke --cpus 2` continues from here" in log.read_text()
        assert "RUNNING" not in statuses("asr.demo.smoke").values()
    assert subprocess.run(COMMAND, check=False).returncode == 0  # noqa: S603
    assert statuses("asr.demo.smoke") == dict.fromkeys(NAMES, "FINISHED")
    before = starts()
    assert subprocess.run(COMMAND, check=False).returncode == 0  # noqa: S603
    assert starts() == before
    assert len(before) == 9
