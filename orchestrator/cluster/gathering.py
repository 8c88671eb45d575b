"""Waits until the nodes of a job belong to its cluster.

    python -m orchestrator.cluster.gathering HOST:PORT SECONDS NODE...

Ends with code 1 and a sentence that names the missing ones where they do not come in time.
"""

import socket
import sys
from typing import Final

from orchestrator.cluster import ray_internals
from orchestrator.machine.waiting import wait_until

CONNECT_S: Final = 3.0
PAUSE_S: Final = 0.5


def gather(address: str, limit_s: float, nodes: list[str]) -> str:
    """Which of `nodes` are not in the cluster at HOST:PORT after at most `limit_s`, as a sentence; empty if all are.

    They are counted: a node's name in the job may be another than the one it has itself.
    """
    if wait_until(lambda: len(_hosts(address)) >= len(nodes), limit_s, PAUSE_S):
        return ""
    hosts = _hosts(address)
    known = {_short(host) for host in hosts}
    missing = [node for node in nodes if _short(node) not in known] or nodes
    return (
        f"Of {len(nodes)} nodes {len(hosts)} belong to the Ray cluster at {address} after {limit_s:g} s; "
        f"missing: {', '.join(missing)}."
    )


def _hosts(address: str) -> list[str]:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except OSError:
        return []
    return ray_internals.living_hosts(address, CONNECT_S)


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def main(arguments: list[str]) -> None:
    """Waits for the nodes, and exits with a sentence where they do not come."""
    address, limit_s, *nodes = arguments
    if missing := gather(address, float(limit_s), nodes):
        raise SystemExit(f"ponderay: {missing}")


if __name__ == "__main__":
    main(sys.argv[1:])
