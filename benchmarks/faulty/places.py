"""Where a round takes place: this machine, a cluster of two nodes, or this machine with a tracking server."""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

Place = Literal["local", "cluster", "server"]
SERVER_START_S: Final = 90.0
COORDINATOR: Final = "AutoscalingCoordinator"
"""Ray's own detached actor, one for each cluster, which elastic training starts and Ray keeps."""

NODE: Final[dict[str, Any]] = {"num_cpus": 1, "object_store_memory": 80 << 20}


class TrackingServer:
    """MLflow's own server over SQLite in `folder`, on one port for all its lives."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, dict(environment) | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        self.wait()

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def is_up(self) -> bool:
        """Whether it was started and not ended."""
        return self._process is not None

    def start(self) -> None:
        """Starts it."""
        database, files = f"sqlite:///{self._folder / 'server.db'}", str(self._folder / "files")
        options = ["--host", "127.0.0.1", "--port", str(self._port), "--workers", "1"]
        command = [sys.executable, "-m", "mlflow", "server", *options]
        command += ["--backend-store-uri", database, "--artifacts-destination", files]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True, cwd=self._folder
            )

    def wait(self) -> None:
        """Until it answers."""
        deadline = time.monotonic() + SERVER_START_S
        while not self._answers():
            if time.monotonic() > deadline:
                raise TimeoutError(f"The tracking server did not answer within {SERVER_START_S:g} s; see its log.")
            time.sleep(0.5)

    def kill(self) -> None:
        """Ends it at once, and all of its processes."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class TwoNodes:
    """A Ray cluster of a head and a second node with a CPU each, made of processes of this one."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        with _same_sigterm():
            self._cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": True})
        self._second: Any = None
        self.add()

    @property
    def address(self) -> str:
        """For RAY_ADDRESS."""
        return str(self._cluster.address)

    @property
    def second(self) -> str:
        """The id of the second node; empty while it is lost."""
        return str(self._second.node_id) if self._second else ""

    def add(self) -> None:
        """Another second node."""
        with _same_sigterm():
            self._second = self._cluster.add_node(**NODE)

    def lose(self) -> None:
        """Kills the processes of the second node."""
        lost, self._second = self._second, None
        self._cluster.remove_node(lost, allow_graceful=False)

    def left(self) -> list[str]:
        """Actors that live, but Ray's own, and placement groups that are there."""
        import ray
        from ray._private.state import actors

        with _same_sigterm():
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
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
        """Ends all its processes."""
        self._cluster.shutdown()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """Ray would end this process on SIGTERM by itself, and the round would not be ended in order."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
