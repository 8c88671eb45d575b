"""The cluster that RAY_ADDRESS names: whether it answers, a connection to it, and a question to each of its nodes."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final

from orchestrator.cluster import ray_internals
from orchestrator.cluster import token as ray_token
from orchestrator.cluster.worker_setup import runtime_environment
from search_spaces.redaction import redacted_text
from trainables.errors import InputError

HIGHEST_PORT: Final = 65535
PROCESSES: Final = Path("/proc")
REMEDY: Final = "Start the cluster, correct RAY_ADDRESS, or unset it to run on this machine."
CONNECT_S: Final = 3.0
ANSWER_S: Final = 8.0
HEALTH_S: Final = 60.0
"""Another process has to load Ray before it asks."""

NODE_S: Final = 60.0
"""A node may have to start its first worker for the answer."""


def names_cluster() -> bool:
    """Whether RAY_ADDRESS names a cluster, so that none is made here."""
    return (os.environ.get("RAY_ADDRESS") or "local") != "local"


def refuse_malformed() -> None:
    """Raises InputError where RAY_ADDRESS can be no cluster's address; nobody is asked."""
    address = _hosts_address()
    host, _, port = address.rpartition(":")
    fault = ""
    if address.startswith("ray://"):
        fault = "must be HOST:PORT of the cluster itself, for Ray Client cannot carry a sweep's driver"
    elif not ray_token.PLACE.fullmatch(address) or not host or not 0 < int(port[:6]) <= HIGHEST_PORT:
        fault = f"must be HOST:PORT with a port from 1 to {HIGHEST_PORT}, `auto` or `local`"
    if address and fault:
        raise InputError(f"RAY_ADDRESS {fault}, but got {redacted_text(address)!r}. {REMEDY}")


def refuse_silent() -> None:
    """Raises InputError where RAY_ADDRESS names a cluster that does not answer within seconds."""
    refuse_malformed()
    if (address := _hosts_address()) and (fault := _silence(address, ANSWER_S)):
        raise _unusable(address, fault)
    if not address:
        _refuse_unfound()


def refuse_unusable() -> None:
    """Raises InputError where RAY_ADDRESS names a cluster that does not answer, or is of another version of Ray."""
    refuse_malformed()
    address = _hosts_address()
    if not address:
        _refuse_unfound()
    if address and not ray_token.fault(address) and (fault := address_fault(address)):  # of a token says Ray's start
        raise _unusable(address, fault)


def _hosts_address() -> str:
    """RAY_ADDRESS where it names a cluster by HOST:PORT; empty where Ray would choose or start one."""
    address = os.environ.get("RAY_ADDRESS") or "local"
    return "" if address in ("local", "auto") else address


def _refuse_unfound() -> None:
    """Raises InputError where RAY_ADDRESS takes any cluster that runs here, and none of them lets this user in."""
    address = os.environ.get("RAY_ADDRESS") or "local"
    if address == "local" or not PROCESSES.is_dir():  # where no processes can be seen, Ray itself looks
        return
    trusted = (0, os.geteuid())  # root has this user's token anyway
    if ray_token.presented_token() and (foreign := set(other_instances()) - set(other_instances(owners=trusted))):
        listed = ", ".join(sorted(foreign))
        raise InputError(
            f"RAY_ADDRESS={address!r} may take a cluster of another user of this machine ({listed}), who would get "
            "your token. Set it to HOST:PORT of the cluster that you mean."
        )
    answers = {cluster: ray_token.ask(cluster, ray_token.presented_token()) for cluster in other_instances()}
    if "let in" not in answers.values():
        listed = "; ".join(f"{cluster}: {answer}" for cluster, answer in answers.items()) or "none runs"
        raise InputError(
            f"RAY_ADDRESS={address!r} takes a cluster that runs on this machine, but none can be used ({listed}). "
            "Set it to HOST:PORT of the cluster that you mean, or unset it to run on this machine."
        )


def _unusable(address: str, fault: str) -> InputError:
    return InputError(f"RAY_ADDRESS={address} cannot be used: {fault.rstrip('.')}. {REMEDY}")


def _silence(address: str, answer_s: float) -> str:
    """Why nobody answers as Ray at HOST:PORT; empty where somebody does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        return str(error)
    start_s = time.monotonic()
    if ray_token.ask(address, answer_s=answer_s) != "unknown":
        return ""
    is_late = time.monotonic() - start_s >= answer_s
    return "what listens there does not answer as Ray" + f" within {answer_s:g} s" * is_late


def address_fault(address: str, answer_s: float = ANSWER_S) -> str:
    """Why no cluster of this version of Ray answers at HOST:PORT; empty where one does.

    `ray.init` would try for more than a minute, deaf to signals, and then end the process: so another process asks.
    """
    if fault := _silence(address, answer_s):
        return fault
    command = [sys.executable, "-P", "-m", ray_internals.COMMANDS, "health-check", "--address", address]
    as_here = os.environ | {ray_token.MODE: ray_token.mode()}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=as_here, capture_output=True, text=True, timeout=HEALTH_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"what listens there does not answer as Ray within {HEALTH_S:g} s"
    lines = done.stderr.strip().splitlines() or ["it is not healthy"]
    return lines[-1][:200] if done.returncode else ""


def other_instances(processes: Path = PROCESSES, owners: Collection[int] = ()) -> list[str]:
    """Addresses of the clusters that have a process on this host; found by looking at the processes only.

    Args:
        owners: user ids; only their processes are looked at, if any are named.
    """
    addresses = set()
    for file in processes.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if owners and file.stat().st_uid not in owners:
                continue
            arguments = file.read_bytes().decode(errors="replace").split("\0")
            if Path(arguments[0]).name not in ("raylet", "gcs_server"):
                continue
            options = dict(argument.lstrip("-").partition("=")[::2] for argument in arguments[1:])
            port = options.get("gcs_server_port", "0")
            of_head = f"{options.get('node-ip-address', 'this host')}:{port}" if port != "0" else ""
            addresses.add(options.get("gcs-address", of_head))
    return sorted(addresses - {""})


def raylet_at(socket_name: str, processes: Path = PROCESSES) -> int:
    """The process number of the raylet whose socket has this name; 0 where none is seen."""
    for file in processes.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"--raylet_socket_name={socket_name}" in file.read_bytes().decode(errors="replace").split("\0"):
                return int(file.parent.name)
    return 0


@contextlib.contextmanager
def joined(address: str) -> Iterator[str]:
    """A connection to the cluster at `address`; one that this process has already is used and kept.

    Yields:
        HOST:PORT of the cluster's dashboard; empty where it has none, or the connection was there.

    Raises:
        InputError: if the cluster does not take this user's token.
    """
    import ray

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
    """The names for people of all living nodes of the cluster that this process has joined, by the node's id."""
    import ray

    nodes = (node for node in ray.nodes() if node["Alive"])  # type: ignore[no-untyped-call]
    return {
        str(node["NodeID"]): f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, {str(node['NodeID'])[:6]})"
        for node in nodes
    }


def ask_nodes(question: Callable[..., Any], arguments: tuple[Any, ...], nodes: list[str]) -> dict[str, Any | str]:
    """The value of `question(*arguments)` on each node, by the node's id; where there is none, the cause as text."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(question)
    places = {node: NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes}
    node_of = {task.options(scheduling_strategy=place).remote(*arguments): node for node, place in places.items()}
    ready, late = ray.wait(list(node_of), num_returns=len(node_of), timeout=NODE_S)
    answers: dict[str, Any | str] = {node_of[future]: f"no answer within {NODE_S:g} s" for future in late}
    for future in late:
        ray.cancel(future, force=True)
    for future in ready:
        try:
            answers[node_of[future]] = ray.get(future)
        except Exception as error:  # whatever a node without our sources, or one that dies, may say
            lines = str(error).strip().splitlines() or [type(error).__name__]
            answers[node_of[future]] = lines[-1][:200]
    return {node: answers[node] for node in nodes}
