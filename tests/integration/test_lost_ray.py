"""The command itself, while what carries Ray is killed or stopped: the work goes on, or the command says why not."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.machine.network import free_port
from orchestrator.machine.processes import kill, start_time
from orchestrator.tracking.client import Tracking
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import statuses
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
NUM_EPOCHS = 8
SWEEP = f"""
from tests.integration.sweeps import tiny

def sleepy():
    values = {{"sleep_s": %s, "num_epochs": {NUM_EPOCHS}}}
    return tiny({{"a": values, "b": {{"x": 0.25}} | values}})
"""
OUTLASTS_RAY_S = 4.0
"""An epoch of such a length keeps the command at work for longer than the minute in which Ray gives a head up."""
TOKEN = "0123456789abcdef" * 2


class Command:
    """`ponderay run` of two conditions with two seeds, in the working folder, on two CPUs."""

    def __init__(self, *options: str, sleep_s: float = 1.0, **variables: str) -> None:
        Path("sleepy.py").write_text(SWEEP % sleep_s)
        self._log = Path("log")
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "orchestrator", "run", "sleepy.py:sleepy", *options],
            env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
            stdout=self._log.open("wb"),
            stderr=subprocess.STDOUT,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return self._log.read_text()

    def has_said(self, text: str) -> bool:
        assert self._process.poll() is None, self.said
        return text in self.said

    def is_training(self) -> bool:
        assert self._process.poll() is None, self.said
        return num_training() >= 2

    def code(self) -> int:
        return self._process.wait(LIMIT_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def num_training() -> int:
    """How many replicates have reported an epoch."""
    journals = [path.read_text() for path in Path("runs/replicates/tiny.sweep").glob("*/journal.jsonl")]
    return sum('"valid_error@plain"' in text for text in journals)


def process_of_ray(name: str, parent: int) -> int:
    """The process of Ray called `name` that `parent` has started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if fields[0].endswith(f"({name}") and int(fields[2].split()[1]) == parent:
            return int(folder.name)
    raise AssertionError(f"{parent} has started no {name}")


def check_digits() -> None:
    """All is complete, with the digits of a run without Ray, and no step twice."""
    recorded = Tracking(read_settings()).read_study("tiny.sweep").replicates
    values = {"num_epochs": NUM_EPOCHS}
    alone = run_quietly(tiny({"a": values, "b": {"x": 0.25} | values}, name="tiny.alone"))
    assert {r.state for r in recorded} == {"complete"}
    assert [dict(r.metrics) for r in recorded] == [dict(r.metrics) for r in alone.replicates]
    assert "RUNNING" not in statuses("tiny.sweep").values()
    for journal in Path("runs").rglob("journal.jsonl"):
        assert journal.read_text().count('"kind": "metrics"') in (1, NUM_EPOCHS)


@pytest.mark.long
def test_a_local_ray_whose_gcs_server_is_killed_is_left_and_the_work_goes_on(workplace):
    """Without a GCS server some calls of Ray never return; then the command ends, and the same one continues."""
    command = Command("--cpus", "2", sleep_s=OUTLASTS_RAY_S)
    try:
        until(command.is_training)
        os.kill(process_of_ray("gcs_server", command.pid), signal.SIGKILL)
        code = command.code()
    finally:
        command.kill()
    if "Ray does not let go of this process" in command.said:
        assert code == 1
        assert Command("--cpus", "2").code() == 0
    else:
        assert code == 0, command.said
        assert "Ray on this machine has lost its process gcs_server; Ponderay starts Ray again" in command.said
    check_digits()


def test_a_local_ray_whose_raylet_is_killed_is_started_again_also_where_the_shell_has_gone(workplace):
    """As `nohup ponderay run SWEEP &` and a logout leave it; Ray ends orphans with a dead raylet by itself."""
    Path("sleepy.py").write_text(SWEEP % 1.0)
    run = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], stdout=open('log', 'wb'), stderr=-2).pid)"
    command = [sys.executable, "-m", "orchestrator", "run", "sleepy.py:sleepy", "--cpus", "2"]
    started = subprocess.run(  # noqa: S603
        [sys.executable, "-c", run, *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(started.stdout)
    try:
        until(lambda: num_training() >= 2)
        os.kill(process_of_ray("raylet", pid), signal.SIGKILL)
        until(lambda: start_time(pid) in ("", "ended"))
    finally:
        kill(pid, start_time(pid))
    said = Path("log").read_text()
    assert "Ray on this machine has lost its process raylet; Ponderay starts Ray again" in said
    assert "Raylet is terminated" not in said
    assert "lost its worker in try" not in said
    check_digits()


class Head:
    """A cluster of one node that `ray start` has made in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        options = [f"--port={self.port}", "--num-cpus=2", "--include-dashboard=false", f"--temp-dir={folder}"]
        self._log = (folder / "head.log").open("w+b")
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options],
            env=os.environ | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        until(lambda: self._address() != "")
        self.address = self._address()
        self.processes = {name: process_of_ray(name, self._process.pid) for name in ("raylet", "gcs_server")}
        self._started = {pid: start_time(pid) for pid in self.processes.values()}

    def _said(self) -> str:
        return Path(self._log.name).read_text()

    def _address(self) -> str:
        """Empty until Ray has said it, which it does some lines after "Ray runtime started"."""
        assert self._process.poll() is None, self._said()
        found = re.search(rf"[0-9.]+:{self.port}\b", self._said())
        return found[0] if found else ""

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pid, started in self._started.items():
            kill(pid, started)


@pytest.fixture
def head() -> Iterator[Head]:
    """In a folder with a short name: Ray's sockets lie below it, and their paths may have 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="head", ignore_cleanup_errors=True) as folder:
        head = Head(Path(folder))
        yield head
        head.end()


def run_on(head: Head, minutes: str, sleep_s: float = 1.0) -> Command:
    variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "PONDERAY_CLUSTER_WAIT": minutes}
    return Command(RAY_ADDRESS=head.address, sleep_s=sleep_s, **variables)


def test_a_head_that_falls_silent_is_waited_for_and_one_that_is_killed_is_left(workplace, head):
    """One that stays silent for longer than PONDERAY_CLUSTER_WAIT is left as one that is gone."""
    command = run_on(head, "0.5", sleep_s=OUTLASTS_RAY_S)
    try:
        until(command.is_training)
        os.kill(head.processes["gcs_server"], signal.SIGSTOP)
        try:
            until(lambda: command.has_said(f"The Ray cluster at {head.address} has not answered for"))
        finally:
            os.kill(head.processes["gcs_server"], signal.SIGCONT)
        until(lambda: command.has_said("answers again; the work goes on."))
        os.kill(head.processes["gcs_server"], signal.SIGKILL)
        assert command.code() == 1, command.said
    finally:
        command.kill()
    assert f"ponderay: The Ray cluster at {head.address}" in command.said
    assert "`ponderay run sleepy.py:sleepy` continues from here" in command.said
    values = {"num_epochs": NUM_EPOCHS}
    run_quietly(tiny({"a": values, "b": {"x": 0.25} | values}))
    check_digits()
