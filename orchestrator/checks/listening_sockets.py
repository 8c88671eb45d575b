"""Servers on this machine that others can reach: Ray's dashboard and nodes, MLflow, PostgreSQL."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.checks.check import Check
from orchestrator.checks.unauthenticated_probe import CLOSED, EXPERIMENTS, JOBS, OPEN, status_of
from orchestrator.cluster import address as cluster_address
from orchestrator.cluster import token as ray_token
from orchestrator.machine.network import is_loopback, link

MLFLOW: Final = ("mlflow.server", "orchestrator.server.app")
HERE_ONLY: Final = "Start it with {} 127.0.0.1 and reach it through `ssh -L`."
LISTENS: Final = "LISTEN"


@dataclass(frozen=True)
class ListeningSocket:
    """A socket beyond loopback on which a process of this machine waits for others."""

    program: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Address and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def link(self) -> str:
        """For a client on this machine."""
        return link(self.host, self.port)


def check_listening_sockets() -> list[Check]:
    """What is open, one check each; none where nothing is."""
    return [*_open_clusters(), *(check for one in listeners() if (check := check_listening_socket(one)))]


def check_listening_socket(one: ListeningSocket) -> Check | None:
    """What a server gives to strangers; None where that is nothing and none can overhear."""
    if one.program == "PostgreSQL":
        remedy = "Set scram-sha-256 over hostssl in pg_hba.conf, or set listen_addresses to 127.0.0.1."
        return Check("PostgreSQL", "warning", f"listens on {one.place}, beyond this machine", remedy)
    remedy = HERE_ONLY.format("--dashboard-host" if one.program == "Ray dashboard" else "--host")
    status = status_of(one.link, JOBS if one.program == "Ray dashboard" else EXPERIMENTS)
    if status == OPEN:
        found = f"listens on {one.place} and asks for no password: anyone who reaches it can " + (
            "run anything as its user" if one.program == "Ray dashboard" else "read and change what is recorded"
        )
        return Check(one.program, "failed", found, remedy)
    if status in CLOSED:
        found = f"listens on {one.place} without encryption: others on the network can read what it sends and receives"
        return Check(one.program, "warning", found, remedy)
    return None


def listeners() -> Iterator[ListeningSocket]:
    """Those of the dashboard, MLflow and PostgreSQL that this user may see."""
    import psutil  # type: ignore[import-untyped]

    programs: dict[int, str] = {}
    try:
        sockets = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return
    found = {(one.pid, *one.laddr) for one in sockets if one.status == LISTENS and one.pid and one.laddr}
    for pid, host, port in sorted(found):
        if not is_loopback(host):
            programs.setdefault(pid, _program_of(pid))
            if programs[pid]:
                yield ListeningSocket(programs[pid], host, port)


def _program_of(pid: int) -> str:
    import psutil

    try:
        process = psutil.Process(pid)
        return program(process.name(), process.cmdline())
    except psutil.Error:
        return ""


def program(name: str, arguments: list[str]) -> str:
    """Which of those that are looked at a process is; empty for any other."""
    if name in ("postgres", "postmaster"):
        return "PostgreSQL"
    if any(one.endswith("ray/dashboard/dashboard.py") for one in arguments):
        return "Ray dashboard"
    is_mlflow = any(Path(one).name == "mlflow" or one.startswith(MLFLOW) for one in arguments)
    return "MLflow" if is_mlflow else ""


def _open_clusters() -> Iterator[Check]:
    """Nodes have to listen on their network; a token is what keeps others out. RAY_ADDRESS has a check of its own."""
    for address in sorted(set(cluster_address.other_instances()) - {os.environ.get("RAY_ADDRESS")}):
        if not is_loopback(address.rpartition(":")[0].strip("[]")) and ray_token.ask(address) == "let in":
            found = (
                f"a node of the cluster at {address} runs here without a token: anyone who reaches it can run anything"
            )
            yield Check("Ray node", "warning", found, "Stop it, unset RAY_AUTH_MODE, and start it with a token.")
