"""The cluster that RAY_ADDRESS names: whether it answers, a connection to it, and a question to each of its nodes."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.cluster import ray_internals
from orchestrator.cluster import token as ray_token

CONNECT_S: Final = 3.0
ANSWER_S: Final = 20.0
NODE_S: Final = 60.0
"""A node may have to start its first worker for the answer."""


def names_cluster() -> bool:
    """Whether RAY_ADDRESS names a cluster, so that none is made here."""
    return os.environ.get("RAY_ADDRESS", "local") != "local"


def address_fault(address: str, answer_s: float = ANSWER_S) -> str:
    """Why no cluster of this version of Ray answers at HOST:PORT; empty where one does.

    `ray.init` would try for more than a minute, deaf to signals, and then end the process: so another process asks.
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, ValueError) as error:
        return str(error)
    command = [sys.executable, "-m", ray_internals.COMMANDS, "health-check", "--address", address]
    as_here = os.environ | {ray_token.MODE: ray_token.mode()}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=as_here, capture_output=True, text=True, timeout=answer_s, check=False
        )
    except subprocess.TimeoutExpired:
        return f"what listens there does not answer as Ray within {answer_s:g} s"
    lines = done.stderr.strip().splitlines() or ["it is not healthy"]
    return lines[-1][:200] if done.returncode else ""


def other_instances(processes: Path = Path("/proc")) -> list[str]:
    """Addresses of the clusters that have a process on this host; found by looking at the processes only."""
    found = set()
    for file in processes.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            arguments = file.read_bytes().decode(errors="replace").split("\0")
            if Path(arguments[0]).name in ("raylet", "gcs_server"):
                found.add(_address(arguments))
    return sorted(found - {""})


def _address(arguments: list[str]) -> str:
    options = dict(one.lstrip("-").partition("=")[::2] for one in arguments[1:])
    if "gcs-address" in options:
        return options["gcs-address"]
    port = options.get("gcs_server_port", "0")
    return f"{options.get('node-ip-address', 'this host')}:{port}" if port != "0" else ""


@contextlib.contextmanager
def joined(address: str) -> Iterator[str]:
    """A connection to the cluster at `address`; one that this process has already is used and kept.

    Yields:
        HOST:PORT of the cluster's dashboard; empty where it has none, or the connection was there.

    Raises:
        InputError: if the cluster does not take this user's token.
    """
    import ray

    from orchestrator.cluster.worker_setup import runtime_environment

    if ray.is_initialized():
        yield ""
        return
    environment = runtime_environment()
    ray_token.prepare(address)
    context = ray.init(address=address, runtime_env=environment, logging_level=logging.ERROR, log_to_driver=False)
    try:
        yield context.dashboard_url or ""
    finally:
        ray.shutdown()


def living_nodes() -> dict[str, str]:
    """Every living node of the cluster that this process has joined: its id, and its name for people."""
    import ray

    nodes = (node for node in ray.nodes() if node["Alive"])  # type: ignore[no-untyped-call]
    return {str(node["NodeID"]): _label(node) for node in nodes}


def _label(node: Mapping[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {str(node['NodeID'])[:6]})"


def ask_nodes(question: Callable[..., Any], arguments: tuple[Any, ...], nodes: list[str]) -> dict[str, Any | str]:
    """What `question(*arguments)` returns on each node, by the node's id; where it cannot say, why, as text."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(question)
    there = {node: NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes}
    asked = {task.options(scheduling_strategy=place).remote(*arguments): node for node, place in there.items()}
    ready, late = ray.wait(list(asked), num_returns=len(asked), timeout=NODE_S)
    answers: dict[str, Any | str] = {asked[one]: f"no answer within {NODE_S:g} s" for one in late}
    for one in late:
        ray.cancel(one, force=True)
    for one in ready:
        try:
            answers[asked[one]] = ray.get(one)
        except Exception as error:  # whatever a node without our sources, or one that dies, may say
            said = str(error).strip().splitlines() or [type(error).__name__]
            answers[asked[one]] = said[-1][:200]
    return {node: answers[node] for node in nodes}
