"""What would go wrong in Ray: the cluster's address, and what every node sees."""

import contextlib
import os
import platform
import uuid
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from orchestrator.checks.check import Check
from orchestrator.cluster import address as cluster_address
from orchestrator.cluster import token as ray_token
from orchestrator.environment.places import refused_write
from orchestrator.environment.settings import Settings
from orchestrator.journal.bucket import write_fault
from orchestrator.tracking.store import store_kind
from orchestrator.worker.code_version import code_version
from trainables.importing import put_first, root_of

PIN: Final = "Set RAY_ADDRESS to HOST:PORT of the cluster that you mean, or to `local` to start one for the sweep."


def check_ray() -> Check:
    """Which cluster `run` would use, and whether it answers; nothing is joined."""
    address, others = os.environ.get("RAY_ADDRESS"), cluster_address.other_instances()
    running = f"Ray runs here already at {', '.join(others)}" if others else "no Ray runs here"
    if address is None:
        found = f"RAY_ADDRESS is not set: the sweep starts its own Ray here; {running}"
        return Check("ray", "warning" if others else "ok", found, PIN if others else "")
    if address in ("", "local"):
        return Check("ray", "ok", f"RAY_ADDRESS={address}: the sweep starts its own Ray here")
    if address == "auto":
        found = f"RAY_ADDRESS={address!r} takes any cluster that it finds; {running}"
        return Check("ray", "warning" if others else "failed", found, PIN)
    if address.startswith("ray://"):
        found = f"RAY_ADDRESS={address} is Ray Client, which cannot carry a sweep's driver"
        return Check("ray", "failed", found, "Give HOST:PORT of the cluster itself; the port is 6379 by default.")
    if fault := ray_token.fault(address):
        return Check("ray", "failed", f"the cluster at RAY_ADDRESS={address} {fault}", ray_token.remedy())
    if fault := cluster_address.address_fault(address):
        return Check("ray", "failed", f"RAY_ADDRESS={address} cannot be used: {fault}", cluster_address.REMEDY)
    return Check("ray", "ok", f"RAY_ADDRESS={address} answers")


def on_nodes(settings: Settings, trainable: str | None) -> list[Check]:
    """What every node of the cluster that this process has joined sees and has.

    Args:
        trainable: whose sources must be equal on all nodes.
    """
    nodes = cluster_address.living_nodes()
    settings.runs.mkdir(parents=True, exist_ok=True)
    mark = settings.runs / f".ponderay-{uuid.uuid4().hex}"
    mark.write_bytes(b"ponderay")
    try:
        work = (str(mark), settings.storage, trainable, root_of(trainable) if trainable else "")
        answers = cluster_address.ask_nodes(_report, work, list(nodes))
    finally:
        mark.unlink()
    reports = {  # a node that does not answer has a sentence that says why
        nodes[node]: {"fault": answer, "versions": {}} if isinstance(answer, str) else answer
        for node, answer in answers.items()
    }
    return [
        check_shared_storage(settings.runs, reports),
        check_versions(versions(trainable), reports),
        check_shared_tracking(settings, len(nodes)),
    ]


def check_shared_storage(folder: Path, reports: Mapping[str, Mapping[str, Any]]) -> Check:
    """Whether all nodes can write `folder`, and it is the same one."""
    faults = [f"{node}: {report['fault']}" for node, report in reports.items() if report["fault"]]
    if faults:
        remedy = (
            "Set PONDERAY_RUNS to a folder that all nodes mount at the same path and can write; with PONDERAY_STORAGE, "
            "give every node keys for the bucket."
        )
        return Check("storage on nodes", "failed", "; ".join(faults), remedy)
    return Check("storage on nodes", "ok", f"{_nodes(len(reports))} can write {folder}")


def check_versions(here: Mapping[str, str], reports: Mapping[str, Mapping[str, Any]]) -> Check:
    """Whether all nodes have what is `here`."""
    known = {node: report["versions"] for node, report in reports.items() if report["versions"]}
    differences = [
        f"{node} has {name} {there.get(name, 'not at all')} (here {expected})"
        for node, there in known.items()
        for name, expected in here.items()
        if there.get(name) != expected
    ]
    if differences:
        remedy = "Install the same versions and sources on all nodes."
        return Check("versions", "failed", "; ".join(differences), remedy)
    if len(known) < len(reports):
        silent = ", ".join(node for node in reports if node not in known)
        return Check(
            "versions", "failed", f"the versions of {silent} are unknown", "The check `storage on nodes` says why."
        )
    listed = ", ".join(f"{name} {value}" for name, value in here.items())
    return Check("versions", "ok", f"{_nodes(len(reports))}: {listed}" if len(reports) > 1 else "one machine")


def check_shared_tracking(settings: Settings, num_nodes: int) -> Check:
    """Whether the tracking store suits a cluster."""
    if num_nodes > 1 and store_kind(settings.tracking_uri) == "sqlite":
        found = (
            f"SQLite beside a cluster of {num_nodes} nodes: one driver can write, and only machines with the file read"
        )
        remedy = "Set PONDERAY_TRACKING_URI to a server that all machines reach."
        return Check("tracking on nodes", "warning", found, remedy)
    return Check("tracking on nodes", "ok", "only the driver writes to the store")


def versions(trainable: str | None) -> dict[str, str]:
    """What must be equal on all nodes, on this one: Python, torch, Ray, Ponderay's sources."""
    installed = {"python": platform.python_version()}
    for package in ("torch", "ray"):
        with contextlib.suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed | ({f"code of {trainable}": code_version(trainable)} if trainable else {})


def _report(mark: str, storage: str, trainable: str | None, root: str) -> dict[str, Any]:
    """On a node: whether it sees the file that the driver has written, can write beside it, and what it has."""
    put_first(root)
    return {"fault": _storage_fault(Path(mark), storage), "versions": versions(trainable)}


def _storage_fault(mark: Path, storage: str) -> str:
    """Why this node cannot write where the driver reads: in the bucket, or in the folder that both must see."""
    if storage:
        mark.parent.mkdir(parents=True, exist_ok=True)
        if fault := write_fault(storage):
            return fault
    elif not mark.exists():
        return f"{mark.parent} is not the folder that the driver writes"
    reason = refused_write(mark.parent)
    return f"{mark.parent} cannot be written: {reason}" if reason else ""


def _nodes(num: int) -> str:
    return f"{num} nodes" if num != 1 else "1 node"
