"""What runs the work of a round: Ray's own processes, two nodes of a cluster, a tracking server by `ponderay serve`."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import psutil

from orchestrator.cluster import token as ray_token
from orchestrator.machine.network import free_port
from tests.faults.processes import MARK, carrying

Setup = Literal["local", "cluster", "server"]
Part = Literal["raylet", "gcs_server", "agent", "log_monitor"]
COMMANDS: Final[dict[Part, str]] = {
    "raylet": "/raylet/raylet ",
    "gcs_server": "/gcs/gcs_server ",
    "agent": "ray::DashboardAgent",
    "log_monitor": "/log_monitor.py ",
}
NODE: Final = "PONDERAY_FAULTS_NODE"
"""The variable that names the node to which a process belongs."""

COORDINATOR: Final = "AutoscalingCoordinator"
"""Ray's own detached actor, one for each cluster, which elastic training starts and Ray keeps."""

START_S: Final = 300
PROGRAMS: Final = Path(sys.executable).parent


def raylets(folder: Path, node: str = "") -> list[psutil.Process]:
    """Those of a round, or of one of its nodes."""
    variable, value = (NODE, node) if node else (MARK, str(folder))
    found = [number for number, command in carrying(variable, value).items() if COMMANDS["raylet"] in command]
    return [psutil.Process(number) for number in found]


def part_of(raylet: psutil.Process, part: Part) -> psutil.Process | None:
    """The process that does `part` on the node of `raylet`; None where there is none."""
    session = option(raylet, "session_dir")
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = " ".join(process.cmdline()) + " "
            is_meant = COMMANDS[part] in command
            if part == "raylet":
                is_meant = process.pid == raylet.pid
            elif part == "agent":
                is_meant &= process.ppid() == raylet.pid
            else:
                is_meant &= session in command
            if is_meant and process.status() != psutil.STATUS_ZOMBIE:
                return process
    return None


def option(process: psutil.Process, name: str) -> str:
    """The value of an option on the command line of a process; empty where it is not there."""
    start = f"--{name}="
    return next((str(one).removeprefix(start) for one in process.cmdline() if one.startswith(start)), "")


def holding(folder: Path) -> list[str]:
    """Processes with an open file below `folder`, for Ray's agents lose their environment when they name themselves."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and any(one.path.startswith(f"{folder}/") for one in process.open_files()):
                found.append(f"process {process.pid} is left: {' '.join(process.cmdline())[:120]}")
    return found


class Nodes:
    """A Ray cluster of a head and a second node with a CPU each, made by `ray start`; `ahead` comes before it."""

    def __init__(self, folder: Path, second: Mapping[str, str], ahead: tuple[str, ...] = ()) -> None:
        ray_token.prepare("local")
        self._folder, self._of_second, self._ahead, self._number = folder, second, ahead, 0
        self._port = free_port()
        self.mend()

    @property
    def address(self) -> str:
        """For RAY_ADDRESS."""
        return f"127.0.0.1:{self._port}"

    def name(self, node: Literal["head", "second"]) -> str:
        """Of a node, in the environment of its processes."""
        return f"{self._folder}:{node}"

    def mend(self) -> None:
        """Starts what is not there: all of it anew where the head is hurt."""
        heads, seconds = raylets(self._folder, self.name("head")), raylets(self._folder, self.name("second"))
        if not heads or not _is_whole(heads[0], is_head=True):
            self.shutdown()
            self._start("head", {}, (), "--head", f"--port={self._port}", "--include-dashboard=false")
            seconds = []
        if not seconds or not _is_whole(seconds[0], is_head=False):
            self._kill("second")
            self._start("second", self._of_second, self._ahead, f"--address={self.address}")

    def lose(self) -> str:
        """Kills the second node, and says so."""
        self._kill("second")
        return "second node killed"

    def left(self) -> list[str]:
        """Actors that live, but Ray's own, and placement groups that are there."""
        import ray
        from ray._private.state import actors

        of_sigterm = signal.getsignal(signal.SIGTERM)  # Ray would end this process by itself
        ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        signal.signal(signal.SIGTERM, of_sigterm)
        try:
            found = [one for one in actors().values() if one["State"] != "DEAD" and one["Name"] != COORDINATOR]
            groups = ray.util.placement_group_table().values()
            return [
                *(f"actor {one['ActorClassName']} {one['Name']} {one['State']}" for one in found),
                *(f"placement group {one['placement_group_id']}" for one in groups if one["state"] != "REMOVED"),
            ]
        finally:
            ray.shutdown()

    def shutdown(self) -> None:
        """Ends both."""
        self._kill("head")
        self._kill("second")

    def _kill(self, node: Literal["head", "second"]) -> None:
        children = [child for raylet in raylets(self._folder, self.name(node)) for child in raylet.children(True)]
        for number in (*carrying(NODE, self.name(node)), *(child.pid for child in children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def _start(
        self, node: Literal["head", "second"], own: Mapping[str, str], ahead: tuple[str, ...], *options: str
    ) -> None:
        self._number += 1
        temporary = self._folder / f"n{self._number}"
        common = ["--num-cpus=1", "--node-ip-address=127.0.0.1", "--object-store-memory=80000000"]
        common += [f"--temp-dir={temporary}", f"--dashboard-agent-listen-port={free_port()}", "--disable-usage-stats"]
        command = [*ahead, str(PROGRAMS / "ray"), "start", *options, *common]
        with (self._folder / "nodes.log").open("ab") as log:
            subprocess.run(  # noqa: S603
                command, env={**os.environ, NODE: self.name(node), **own}, stdout=log, stderr=log, timeout=START_S,
                check=True,
            )  # fmt: skip


def _is_whole(raylet: psutil.Process, is_head: bool) -> bool:
    parts: tuple[Part, ...] = ("agent", "gcs_server", "log_monitor") if is_head else ("agent", "log_monitor")
    return Path(option(raylet, "session_dir")).is_dir() and all(part_of(raylet, part) for part in parts)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[None]:
    """A tracking server by `ponderay serve` for the block, which PONDERAY_TRACKING_URI names in it."""

    def call(*options: str) -> None:
        command = [sys.executable, "-m", "orchestrator", "serve", "--folder", str(folder), *options]
        with (folder.parent.parent / "server.log").open("ab") as log:
            subprocess.run(command, stdout=log, stderr=log, timeout=2 * START_S, check=True)  # noqa: S603

    port = free_port()
    call("--port", str(port), "--background")
    os.environ["PONDERAY_TRACKING_URI"] = f"http://127.0.0.1:{port}"
    try:
        yield
    finally:
        call("--stop")
