"""Jobs on a real cluster that asks for a token: sent, refused, followed, stopped in order and continued."""

import json
import os
import re
import secrets
import select
import shlex
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.machine.network import free_port
from orchestrator.results.study import Replicate
from orchestrator.run import run_here
from orchestrator.tracking.client import Tracking
from search_spaces.find import find_sweep
from tests.door import PLAIN, ROOT
from tests.integration.test_secrets import NAMES, Place, check_nothing_leaked, made_up

pytestmark = pytest.mark.slow

# Another Ray may run on the host, so the agent has a port of its own, and RAY_TMPDIR is this one's.
HEAD = """
import sys
from ray.cluster_utils import Cluster
arguments = {"num_cpus": 2, "include_dashboard": True, "dashboard_host": "127.0.0.1",
             "dashboard_port": int(sys.argv[1]), "dashboard_agent_listen_port": 0}
cluster = Cluster(initialize_head=True, head_node_args=arguments)
print("ready", flush=True)
sys.stdin.read()
cluster.shutdown()
"""
TOKEN = secrets.token_hex(32)
SWEEP = "act.tau_parity_short.smoke"
OPTIONS = (
    "act.tau_parity_short", "--smoke", "--set", "training.num_iterations=2500", "--set", "training.report_every=100",
)  # fmt: skip
WAIT_S = 600
LIFE_S = 5.0
ROUTES = ("/api/jobs/", "/api/version", "/api/packages/gcs/x.zip", "/nodes?view=summary", "/api/v0/actors")


@dataclass(frozen=True)
class Head:
    """A cluster of two CPUs on this machine.

    Attributes:
        place: with its home, what its jobs keep in `runs`, Ray's files, and what was said and seen.
        environment: of its processes, and of those who use it; the secrets given to them are in it.
    """

    address: str
    place: Place
    environment: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Where all of it is."""
        return self.place.folder

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """`ponderay ARGUMENTS`, as somebody who has the token."""
        command = [sys.executable, "-m", "orchestrator", *arguments]
        environment = {**self.environment, "RAY_API_SERVER_ADDRESS": self.address, **variables}
        how = {"env": environment, "cwd": cwd, "capture_output": True, "text": True, "timeout": WAIT_S}
        with self.place.watching():
            done = subprocess.run(command, **how, check=False)  # noqa: S603
        self.place.said += (done.stdout + done.stderr).encode()
        return done

    def status(self, route: str, token: str | None, content: bytes | None = None) -> int:
        """What the dashboard answers to whoever shows this token, or none."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(urllib.request.Request(self.address + route, content, headers), timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    @property
    def settings(self) -> Settings:
        """Of its jobs."""
        return Settings(self.folder / "runs", f"sqlite:///{self.folder / 'runs' / 'mlflow.db'}")

    def replicates(self) -> Sequence[Replicate]:
        """Of the sweep that its jobs run."""
        return Tracking(self.settings).read_study(SWEEP).replicates


def digits(replicates: Sequence[Replicate]) -> dict[str, dict[str, float]]:
    """Metrics by condition, without speeds."""
    is_speed = re.compile(r".*_per_s(@.*)?").fullmatch
    return {
        one.condition: {metric: value for metric, value in one.metrics.items() if not is_speed(metric)}
        for one in replicates
    }


class Tunnel(socketserver.ThreadingTCPServer):
    """A port that leads to the dashboard; each connection through it breaks after `LIFE_S`."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.port = port
        self.num_broken = 0


class Connection(socketserver.BaseRequestHandler):
    server: Tunnel

    def handle(self) -> None:
        ends_s = time.monotonic() + LIFE_S
        with socket.create_connection(("127.0.0.1", self.server.port)) as inner:
            other = {self.request: inner, inner: self.request}
            while time.monotonic() < ends_s:
                for one in select.select(list(other), [], [], 0.1)[0]:
                    content = one.recv(65536)
                    if not content:
                        return
                    other[one].sendall(content)
        self.server.num_broken += 1


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    folder = Path(tempfile.mkdtemp(prefix="p", dir="/tmp"))  # sockets' paths are limited
    given = {name: made_up() for name in NAMES}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"HOME": str(folder), "PATH": path, "RAY_AUTH_MODE": "token", "PONDERAY_RUNS": str(folder / "runs")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PONDERAY_"))}
    environment = kept | own | given | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(folder / "r")}
    (folder / "r").mkdir()
    token = folder / ".ray" / "auth_token"
    token.parent.mkdir()
    token.touch(0o600)
    token.write_text(TOKEN)
    port = free_port()
    command = [sys.executable, "-c", HEAD, str(port)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, env=environment, cwd=folder, text=True, **pipes)  # noqa: S603
    try:
        assert process.stdout and process.stdout.readline() == "ready\n"
        yield Head(f"http://127.0.0.1:{port}", Place(folder, given), environment)
        process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def test_who_has_no_token_gets_nothing(head):
    job = json.dumps({"entrypoint": "id"}).encode()
    for route in ROUTES:
        assert (head.status(route, None), head.status(route, "wrong")) == (401, 403), route
    assert (head.status("/api/jobs/", None, job), head.status("/api/jobs/", "wrong", job)) == (401, 403)
    assert head.status("/api/jobs/", TOKEN) == 200
    done = head.run("jobs", RAY_AUTH_TOKEN="wrong")
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not accept the token in RAY_AUTH_TOKEN" in done.stderr and done.stderr.count("\n") == 1


def test_a_job_is_stopped_in_order_and_the_next_one_ends_it_with_the_same_digits_and_leaves_no_secret(head, workplace):
    options = (*OPTIONS, "--env", f"PONDERAY_DATA={head.folder}", "--env", "MARK=a 'b' $HOME")
    done = head.run("submit", *options)
    assert done.returncode == 0, done.stderr
    assert f"ponderay logs {SWEEP}-1 --follow" in done.stdout
    again = head.run("submit", *OPTIONS)
    assert again.returncode == 3 and f"{SWEEP} is already run by the job {SWEEP}-1;" in again.stderr
    check_worker(head, wait_for_worker(head))
    stopped = head.run("stop", SWEEP)
    assert stopped.returncode == 0 and f"{SWEEP}-1 has ended: STOPPED" in stopped.stdout
    assert f"`{shlex.join(['ponderay', 'submit', *options])}` continues from there" in stopped.stdout
    logs = head.run("logs", f"{SWEEP}-1")
    assert logs.returncode == 1 and "Stopping; the last records are being written." in logs.stdout
    said = logs.stdout.partition("Finished work is kept; `")[2].partition("` continues from here")[0]
    assert sorted(shlex.split(said)) == sorted(["ponderay", "submit", *options]), "Ray orders the variables"
    assert "ponderay run" not in logs.stdout
    states = [one.state for one in head.replicates()]
    assert "stopped" in states and set(states) <= {"stopped", "complete"}

    check_followed_through_breaks(head)
    listed = json.loads(head.run("jobs", "--format", "json").stdout)
    assert [(job["job"], job["state"]) for job in listed] == [(f"{SWEEP}-2", "SUCCEEDED"), (f"{SWEEP}-1", "STOPPED")]
    values = {"training.num_iterations": 2500, "training.report_every": 100}
    sweep = find_sweep("act.tau_parity_short", smoke=True).with_values(values)
    alone = run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates
    assert len(digits(alone)) == 3
    assert digits(head.replicates()) == digits(alone)
    assert head.run("doctor").returncode in (0, 3)
    check_nothing_leaked(head.place, {**head.place.given, "of Ray": TOKEN}, {".ray/auth_token"})


def check_followed_through_breaks(head: Head) -> None:
    """A second job, whose log is whole though the tunnel broke again and again."""
    with Tunnel(int(head.address.rpartition(":")[2])) as tunnel:
        threading.Thread(target=tunnel.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{tunnel.server_address[1]}"
        done = head.run("submit", *OPTIONS, "--follow", "--address", address)
        tunnel.shutdown()
    assert done.returncode == 0, done.stdout + done.stderr
    assert tunnel.num_broken > 1
    assert done.stdout.endswith(head.run("logs", f"{SWEEP}-2").stdout)
    assert done.stdout.endswith(f"{SWEEP}: 3 complete, 0 failed\n")
    assert f"Stop    ponderay stop {SWEEP}-2 --address {address}" in done.stdout


def wait_for_worker(head: Head) -> int:
    """Process id of a worker that trains."""
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        for journal in head.folder.glob("runs/replicates/**/journal.jsonl"):
            records = [
                json.loads(line) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")
            ]
            if any(record["kind"] == "metrics" for record in records):
                return next(int(record["pid"]) for record in records if record["kind"] == "started")
        time.sleep(0.2)
    raise AssertionError(head.run("logs", SWEEP).stdout)


def check_worker(head: Head, pid: int) -> None:
    """It has the sources that were sent, the variables of the job as read there, and those that the driver sets."""
    environment = dict(one.split("=", 1) for one in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in one)
    assert "_ray_pkg_" in environment["PYTHONPATH"]
    assert environment["MARK"] == f"a 'b' {head.folder}"
    assert environment["PONDERAY_DATA"] == str(head.folder)
    assert environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("named", "study"),
    [("toy.py:toy", "of_file"), pytest.param("installed", "of_package", marks=pytest.mark.long)],
)
def test_a_sweep_of_ones_own_travels_with_its_code(head, tmp_path, named, study):
    source = PLAIN.replace('name="toy"', f'name="{study}"').replace("seeds=(1, 2, 3)", "seeds=(1,)")
    package = source.replace("import ponderay", "import ponderay\n\nfrom mylab.parts.rate import RATE", 1)
    files = {
        "toy.py": source.replace("import ponderay", "import ponderay\n\nfrom rates import RATE", 1),
        "rates.py": "from pathlib import Path\n\nRATE = float(Path('rate.txt').read_text())",  # in the working folder
        "rate.txt": "0.5",
        "mylab/__init__.py": "",
        "mylab/sweeps.py": package,
        "mylab/parts/__init__.py": "",
        "mylab/parts/rate.py": "RATE = 0.5",
        "mylab-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n",
        "mylab-1.0.dist-info/entry_points.txt": "[ponderay.sweeps]\ninstalled = mylab.sweeps:toy\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace("0.9 * loss", "RATE * loss"))
    path = os.pathsep.join([str(ROOT), str(tmp_path)])  # here alone: the cluster has what is sent
    done = head.run("submit", named, "--follow", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0 and f"{study}: 2 complete, 0 failed" in done.stdout, done
    replicates = Tracking(head.settings).read_study(study).replicates  # in the order in which they started
    narrow, wide = sorted(replicates, key=lambda replicate: replicate.metrics["macs"])
    assert narrow.metrics["macs"] == 16 and 0 < wide.metrics["loss"] < narrow.metrics["loss"]
