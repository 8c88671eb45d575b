"""Where a round takes place: on this machine, on a cluster of two nodes, beside a tracking server or a database."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from orchestrator.cluster import token as ray_token
from orchestrator.machine.network import free_port
from orchestrator.server.postgres import Postgres

Place = Literal["local", "cluster", "server"]
Store = Literal["sqlite", "postgresql"]
SERVER_START_S: Final = 90.0
COORDINATOR: Final = "AutoscalingCoordinator"
"""Ray's own detached actor, one for each cluster, which elastic training starts and Ray keeps."""

NODE: Final[dict[str, Any]] = {"num_cpus": 1, "object_store_memory": 80 << 20}


class Database:
    """A PostgreSQL server in `folder`, for tracking and for searches, on one port for all its lives."""

    def __init__(self, folder: Path) -> None:
        self._server = Postgres(folder, free_port())
        self._server.start()

    @property
    def tracking_uri(self) -> str:
        """Of the database for tracking."""
        return self._server.uri("mlflow")

    @property
    def search_uri(self) -> str:
        """Of Optuna's."""
        return self._server.uri("optuna")

    def is_up(self) -> bool:
        """Whether it was started and not ended."""
        return self._server.is_running()

    def start(self) -> None:
        """Starts it again; it recovers first."""
        self._server.start()

    def crash(self) -> None:
        """Ends it at once: it writes nothing more, and cuts every connection."""
        process = int((self._server.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        os.kill(process, signal.SIGQUIT)
        while self.is_up():
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it in order."""
        self._server.stop()


class TrackingServer:
    """MLflow's own server over the database `store`, on one port for all its lives."""

    def __init__(self, folder: Path, environment: Mapping[str, str], store: str) -> None:
        self._folder = folder
        own = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_BACKEND_STORE_URI": store}
        self._environment = dict(environment) | own
        self._port = free_port()
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
        options = ["--host", "127.0.0.1", "--port", str(self._port), "--workers", "1"]
        command = [sys.executable, "-m", "mlflow", "server", *options]
        command += ["--artifacts-destination", str(self._folder / "files")]
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
        ray_token.prepare("local")
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
        return left_in(self.address)

    def shutdown(self) -> None:
        """Ends all its processes."""
        self._cluster.shutdown()  # type: ignore[no-untyped-call]


def left_in(address: str) -> list[str]:
    """Actors that live in the cluster at `address`, but Ray's own, and placement groups that are there."""
    import ray
    from ray._private.state import actors

    with _same_sigterm():
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        found = [one for one in actors().values() if one["State"] != "DEAD" and one["Name"] != COORDINATOR]
        groups = ray.util.placement_group_table().values()
        return [
            *(f"actor {one['ActorClassName']} {one['Name']} {one['State']}" for one in found),
            *(f"placement group {one['placement_group_id']}" for one in groups if one["state"] != "REMOVED"),
        ]
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """Ray would end this process on SIGTERM by itself, and the round would not be ended in order."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
