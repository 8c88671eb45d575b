"""What `test_cluster.py` has done to a cluster of three machines; run by `hosts.sh`, as the user's own machine.

    python -m tests.cluster.scenario FOLDER

Prints a line for each thing that was seen to hold, and ends with an AssertionError at the first that does not.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[2]
HEAD, WORKERS = "10.77.0.2", ("10.77.0.3", "10.77.0.4")
SWEEP: Final = "act.tau_parity_laptop"
SIZE: Final = (
    "--smoke", "--seeds", "1", "--set", "training.num_iterations=2000", "--set", "training.report_every=50",
)  # fmt: skip
STUDY: Final = f"{SWEEP}.smoke"
DASHBOARD, SERVER = "http://127.0.0.1:8265", "http://127.0.0.1:5000"
READ: Final = """
import json, sys
from orchestrator.tracking.load import load_study
print(json.dumps([[r.condition, r.seed, r.state, dict(r.metrics)] for r in load_study(sys.argv[1]).replicates]))
"""
OURS: Final = ("ray/", "ray::", "mlflow", "postgres", "ponderay")
"""What the command lines of a cluster's processes have in them."""


Digits = dict[tuple[str, int], dict[str, float]]
"""Metrics by condition and seed."""


class Scenario:
    """The user's machine, with all that lies below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared = folder, folder / "shared"
        self.file = folder / "cluster.yaml"
        self.shared.mkdir()
        os.environ["PONDERAY_RUNS"] = str(folder / "own")  # of this machine, where what was read is kept

    def run(self, *command: str, wanted: int | None = 0, **environment: str) -> str:
        """What a command prints; it must end with `wanted`."""
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, env=os.environ | environment, cwd=ROOT, check=False
        )
        assert wanted is None or done.returncode == wanted, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def on_head(self, command: str) -> str:
        """What a command prints there."""
        return self.run("ray", "exec", str(self.file), command, wanted=None)

    def describe_cluster(self) -> None:
        """The shipped file with these machines in it, one CPU each."""
        content = yaml.safe_load((ROOT / "cluster.local.yaml").read_text(encoding="utf-8"))
        content["provider"] |= {"head_ip": HEAD, "worker_ips": list(WORKERS)}
        content["auth"] = {"ssh_user": "root", "ssh_private_key": str(self.folder / "key")}
        text = json.dumps(content).replace("/mnt/shared/ponderay", str(self.shared))
        self.file.write_text(text.replace("ray start --address", "ray start --num-cpus=1 --address"), encoding="utf-8")

    def job(self) -> dict[str, Any]:
        """The one that was submitted, as `ponderay jobs` tells."""
        (found,) = json.loads(self.run("ponderay", "jobs", "--format", "json"))
        return dict(found)

    def journals(self) -> dict[str, list[dict[str, Any]]]:
        """What every replicate has written so far, by the name of its folder."""
        files = (self.shared / "replicates" / STUDY).glob("*/journal.jsonl")
        lines = {file.parent.name: file.read_text(encoding="utf-8").splitlines(keepends=True) for file in files}
        return {key: [json.loads(line) for line in some if line.endswith("\n")] for key, some in lines.items()}

    def digits(self, study: str, **environment: str) -> Digits:
        """Every metric of every replicate but those that measure time."""
        rows = json.loads(self.run(sys.executable, "-c", READ, study, **environment).splitlines()[-1])
        assert {row[2] for row in rows} == {"complete"}, rows
        timed = ("_s", "_ms", "real_time_factor", "seconds")
        return {
            (name, seed): {
                metric: value for metric, value in metrics.items() if not metric.partition("@")[0].endswith(timed)
            }
            for name, seed, _, metrics in rows
        }


def wait(limit_s: float, what: str, condition: Callable[[], Any], pause_s: float = 1.0) -> Any:
    """What `condition` says once it says something."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}"
        time.sleep(pause_s)
    return found


def say(text: str) -> None:
    """One thing that holds."""
    print(f"{time.strftime('%X')}  {text}", flush=True)


def status_of(url: str, token: str = "") -> int:
    """How a server answers; 0 where there is none."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@contextlib.contextmanager
def tunnel() -> Iterator[None]:
    """The dashboard and the tracking server of the head, here."""
    forwards = [f"{port}:127.0.0.1:{port}" for port in ("8265", "5000")]
    options = [option for forward in forwards for option in ("-L", forward)]
    process = subprocess.Popen(["ssh", "-N", *options, HEAD])  # noqa: S603
    try:
        wait(120, "the tunnel is open", lambda: status_of(f"{SERVER}/health") == 200)
        yield
    finally:
        process.kill()
        process.wait()


def status_lines(at: Scenario) -> list[str]:
    """What `ray status` says of the cluster."""
    return [line.strip() for line in at.on_head("ray status").splitlines()]


def comes_up(at: Scenario) -> None:
    """`ray up` with nothing done by hand before; all machines are there."""
    at.run("ray", "get-auth-token", "--generate")
    Path("~/.ray/auth_token").expanduser().chmod(0o600)
    began = time.monotonic()
    up(at)
    say(f"ray up: {time.monotonic() - began:.0f} s")
    all_there(at)
    say(f"ray status sees three machines after {time.monotonic() - began:.0f} s")


def up(at: Scenario, *options: str) -> None:
    """`ray up` of a user who has not turned Ray's reports off."""
    at.run("ray", "up", "-y", *options, "--no-config-cache", str(at.file), RAY_USAGE_STATS_ENABLED="1")


def all_there(at: Scenario) -> None:
    """Three machines, two of which train."""
    there = {"3 local.cluster.node", "0.0/2.0 CPU"}
    wait(600, "three nodes", lambda: there <= {*status_lines(at)}, pause_s=5.0)  # to ask takes seconds of both machines


def comes_up_again(at: Scenario) -> None:
    """`ray up --no-restart` leaves Ray alone; `ray up` starts it anew, and leaves nothing of before on any machine."""

    def session() -> str:
        return at.run("ssh", HEAD, "readlink /tmp/ray/session_latest")

    def starters() -> list[str]:
        commands = [at.run("ssh", host, "ps -eo args").splitlines() for host in (HEAD, *WORKERS)]
        return [line for lines in commands for line in lines if "ray start" in line or line.count("/raylet/raylet ")]

    before = session()
    up(at, "--no-restart")
    assert session() == before
    up(at)
    assert session() != before
    all_there(at)
    assert len(starters()) == 3, starters()
    say("ray up --no-restart leaves Ray alone; ray up starts it anew, with one raylet on each machine and no starter")


def tells_nobody(at: Scenario) -> None:
    """The head says itself that it reports nothing, and no machine has a metric page."""
    log = at.run("ssh", HEAD, "cat /tmp/ray/session_latest/logs/dashboard.log")
    assert "Usage reporting is disabled." in log and "Usage reporting is enabled." not in log
    assert at.run("ssh", HEAD, "ls /tmp/ray/session_latest/usage_stats.json", wanted=None).startswith("ls: ")
    for host in (HEAD, *WORKERS):
        assert at.run("ssh", host, "cat /tmp/ray/session_latest/metrics_export_port_*") == "-1", host
    assert [status_of(f"http://{HEAD}:{port}/") for port in (44217, 44227)] == [0, 0]
    say("Ray reports nothing to its makers, and its metric pages are closed")


def keeps_its_doors_closed(at: Scenario) -> None:
    """Nobody without token or password gets in, and nobody reaches the head's own ports from elsewhere."""
    token = Path("~/.ray/auth_token").expanduser().read_text(encoding="utf-8")
    for path in ("/api/jobs/", "/api/version", "/nodes?view=summary", "/api/v0/actors"):
        assert status_of(DASHBOARD + path) in (401, 403), path
        assert status_of(DASHBOARD + path, "0" * len(token)) in (401, 403), path
    assert status_of(f"{DASHBOARD}/api/jobs/", token) == 200
    search = f"{SERVER}/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"
    assert status_of(search) == 401 and status_of(SERVER) == 401
    assert [status_of(f"http://{HEAD}:{port}/") for port in (8265, 5000)] == [0, 0]
    said = at.run("ponderay", "submit", SWEEP, *SIZE, wanted=2, RAY_AUTH_TOKEN="0" * len(token))
    assert token not in said
    say("without a token, with a wrong one, and without a password: refused by dashboard, job API and MLflow")


def learn_alone(at: Scenario) -> Digits:
    """What the sweep comes to on this machine alone."""
    own = {"PONDERAY_RUNS": str(at.folder / "alone"), "PONDERAY_TRACKING_URI": ""}
    at.run("ponderay", "run", SWEEP, *SIZE, "--cpus", "2", **own)
    expected = at.digits(STUDY, **own)
    say(f"{len(expected)} replicates on this machine alone")
    return expected


def runs_a_sweep_while_a_machine_dies(
    at: Scenario, expected: Digits, kill_machine: Callable[[dict[str, Any]], None]
) -> None:
    """Submitted from here; one worker is killed in the middle; every digit is as on one machine.

    Args:
        kill_machine: kills the one on which the process works that wrote such a `started` record.
    """
    began = time.monotonic()
    print(at.run("ponderay", "submit", SWEEP, *SIZE))
    job = at.job()["job"]
    assert "ponderay logs" in at.run("ponderay", "submit", SWEEP, *SIZE, wanted=3)
    looks = itertools.count(1)

    def at_work() -> dict[str, Any]:
        if next(looks) % 20 == 0:
            assert at.job()["state"] in ("PENDING", "RUNNING"), at.run("ponderay", "logs", job, wanted=None)
        for records in at.journals().values():
            steps = sum(record["kind"] == "metrics" for record in records)
            if 3 <= steps <= 20 and records[-1]["kind"] != "state":
                return next(record for record in records if record["kind"] == "started")
        return {}

    victim = wait(240, "a replicate is at work", at_work)
    say(f"a sweep runs after {time.monotonic() - began:.0f} s; a second submit is refused")
    kill_machine(victim)
    log = at.run("ponderay", "logs", job, "--follow")
    assert f"{len(expected)} complete, 0 failed" in log, log
    nodes = [[r["node_id"] for r in rs if r["kind"] == "started"] for rs in at.journals().values()]
    moved = [some for some in nodes if some[0] == victim["node_id"] != some[-1]]
    assert moved, nodes
    assert at.digits(STUDY) == expected
    assert at.job()["state"] == "SUCCEEDED"
    say(f"a machine was killed; its replicate ended on the other; all done after {time.monotonic() - began:.0f} s")
    say(f"all metrics of all {len(expected)} replicates equal those of one machine, digit for digit")


def kill_host(at: Scenario, started: dict[str, Any]) -> None:
    """As if its power was cut: every process of the host is gone, and its network."""
    host = started["host"]
    assert host in ("h2", "h3"), started
    os.kill(int((at.folder / host / "pid").read_text()), 9)
    at.run("ip", "link", "set", f"v{host}", "down")


def leaves_no_secret(at: Scenario) -> None:
    """Token and password are in no log, store, checkpoint or temporary file of any machine."""
    from configparser import ConfigParser

    credentials = ConfigParser()
    credentials.read(Path("~/.mlflow/credentials").expanduser())
    secrets = [
        Path("~/.ray/auth_token").expanduser().read_text(encoding="utf-8"),
        credentials["mlflow"]["mlflow_tracking_password"],
    ]
    assert all(len(secret) >= 16 for secret in secrets)
    meant = (".ray/auth_token", ".mlflow/credentials", "/server/credentials", "/server/authentication.ini")
    leaks = []
    for file in [Path(parent) / name for parent, _, names in os.walk(at.folder) for name in names]:
        is_meant = str(file).endswith(meant)
        with contextlib.suppress(FileNotFoundError):  # of a process that has just ended
            content = b"" if is_meant or file.is_symlink() or not file.is_file() else file.read_bytes()
            leaks += [str(file) for secret in secrets if secret.encode() in content]
    assert not leaks, leaks
    say("token and password are in no file but those that are meant to hold them")


def goes_down(at: Scenario) -> None:
    """Nothing is left running on the machines that are."""
    at.on_head("ponderay serve --stop")
    at.run("ray", "down", "-y", str(at.file))
    began = time.monotonic()

    def left() -> list[str]:
        found = [at.run("ssh", "-o", "ConnectTimeout=2", host, "ps -eo args", wanted=None) for host in (HEAD, *WORKERS)]
        return [line for text in found for line in text.splitlines() if any(one in line for one in OURS)]

    wait(150, "nothing is left", lambda: not left(), pause_s=5.0)
    say(f"ray down: nothing is left running after {time.monotonic() - began:.0f} s")


@contextlib.contextmanager
def cluster(at: Scenario) -> Iterator[None]:
    """A cluster that is brought up, and taken down however the block ends."""
    at.describe_cluster()
    comes_up(at)
    try:
        yield
    except BaseException:
        traceback.print_exc()  # now, for going down may fail as well
        raise
    finally:
        goes_down(at)


def log_in(at: Scenario) -> None:
    """Has from now on what the head's tracking server asks for."""
    credentials = Path("~/.mlflow/credentials").expanduser()
    credentials.parent.mkdir(mode=0o700)
    at.run("ray", "rsync-down", str(at.file), "~/.mlflow/credentials", str(credentials))
    os.environ["PONDERAY_TRACKING_URI"] = SERVER


def main() -> None:
    """All of it, in order."""
    at = Scenario(Path(sys.argv[1]))
    expected = learn_alone(at)
    with cluster(at):
        comes_up_again(at)
        with tunnel():
            log_in(at)
            keeps_its_doors_closed(at)
            tells_nobody(at)
            runs_a_sweep_while_a_machine_dies(at, expected, lambda started: kill_host(at, started))
            leaves_no_secret(at)


if __name__ == "__main__":
    main()
