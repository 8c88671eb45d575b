"""The same where machines of their own cannot be made: a head and two workers on loopback, without `ray up`.

    python -m tests.cluster.loopback FOLDER

Ray is started by `ray start`, in process groups that are this program's own; nothing else of this machine is touched.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from orchestrator.machine.network import free_port
from tests.cluster.scenario import Scenario, learn_alone, runs_a_sweep_while_a_machine_dies, say, status_of, wait


@contextlib.contextmanager
def started(at: Scenario, *arguments: str) -> Iterator[None]:
    """`ray start` with these arguments, until the end of the block; each has temporary files of its own.

    Ray unpacks a job's sources there, and would do so over those with which another node is at work.
    """
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as own:
        places = [f"--temp-dir={own}", f"--dashboard-agent-listen-port={free_port()}"]
        with (at.folder / "ray.log").open("a") as log:
            process = subprocess.Popen(  # noqa: S603
                ["ray", "start", "--block", "--disable-usage-stats", *places, *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield
        finally:
            end_group(process.pid)
            process.wait()


def end_group(group: int) -> None:
    """Kills a process group, and whatever its processes have started."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        children = psutil.Process(group).children(recursive=True)
        os.killpg(group, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def kill_machine(started: dict[str, Any]) -> None:
    """Kills the worker on which the process works that wrote `started`: the `ray start` above it, and all below."""
    above = [process for process in psutil.Process(started["pid"]).parents() if "start" in process.cmdline()]
    end_group(os.getpgid(above[0].pid))


@contextlib.contextmanager
def cluster(at: Scenario) -> Iterator[str]:
    """A head without CPUs and two workers with one each; the dashboard's address."""
    port, dashboard = free_port(), free_port()
    os.environ["PONDERAY_RUNS"] = str(at.shared)
    small = ["--object-store-memory=100000000", "--num-gpus=0"]
    head = ["--head", f"--port={port}", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", "--num-cpus=0"]
    with contextlib.ExitStack() as machines:
        machines.enter_context(started(at, *head, "--node-ip-address=127.0.0.1", *small))
        url = f"http://127.0.0.1:{dashboard}"
        wait(240, "the head answers", lambda: status_of(url + "/api/version") == 401)
        for _ in range(2):
            machines.enter_context(started(at, f"--address=127.0.0.1:{port}", "--num-cpus=1", *small))
        status = ["ray", "status", f"--address=127.0.0.1:{port}"]
        wait(60, "both workers are there", lambda: "0.0/2.0 CPU" in at.run(*status, wanted=None))
        yield url


def main() -> None:
    """All of it, in order."""
    at = Scenario(Path(sys.argv[1]))
    expected = learn_alone(at)
    if not Path("~/.ray/auth_token").expanduser().exists():
        at.run("ray", "get-auth-token", "--generate")
    with cluster(at) as url:
        os.environ["RAY_API_SERVER_ADDRESS"] = url
        assert status_of(f"{url}/api/jobs/") == 401 and status_of(f"{url}/api/jobs/", "0" * 64) in (401, 403)
        say("without a token, and with a wrong one: refused by the job API")
        runs_a_sweep_while_a_machine_dies(at, expected, kill_machine)


if __name__ == "__main__":
    main()
