"""Ray for as long as a sweep runs: the cluster at RAY_ADDRESS, or one made on this machine."""

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from typing import Any, Final

import ray
from ray.util.placement_group import placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.cluster import ray_internals
from orchestrator.cluster import token as ray_token
from orchestrator.cluster.worker_setup import runtime_environment
from orchestrator.journal.folder import Record
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.watchdog import end_process
from trainables.errors import InputError

RAY_SETTINGS: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "120",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")
LOOK_AGAIN_S: Final = 1.0
END_TIMEOUT_S: Final = 20.0
COORDINATOR_TIMEOUT_S: Final = 15.0


@contextlib.contextmanager
def ray_session(num_cpus: int | None, is_verbose: bool) -> Iterator[None]:
    """Ray, started or reached; one that was there before stays.

    Args:
        num_cpus: of a cluster made here; default: this machine's.

    Raises:
        InputError: if Ray does not start, or the cluster does not answer or does not take this user's token.
    """
    os.environ.update({name: value for name, value in RAY_SETTINGS.items() if name not in os.environ})
    keep_keys_here()
    if ray.is_initialized():
        yield
        return
    for name in ("ray.tune", "ray.train", "ray._private.authentication"):
        logging.getLogger(name).setLevel(logging.INFO if is_verbose else logging.CRITICAL)
    address = os.environ.get("RAY_ADDRESS", "local")
    ray_token.prepare(address)
    made_here: dict[str, Any] = {"num_cpus": num_cpus, "include_dashboard": False} if address == "local" else {}
    try:
        ray.init(
            address=address,
            runtime_env=runtime_environment(),
            logging_level=logging.INFO if is_verbose else logging.WARNING,
            log_to_driver=is_verbose,
            **made_here,
        )
    except ray.exceptions.AuthenticationError:
        raise InputError(
            f"RAY_AUTH_MODE is token, but this machine has no token for {address}. {ray_token.REMEDY}"
        ) from None
    except ConnectionError as error:
        raise InputError(f"No Ray cluster answers at RAY_ADDRESS={address}: {error}.") from None
    except Exception as error:  # Ray raises bare ones where a node does not come up in time
        raise InputError(
            f"Ray did not start at {address}: {str(error).splitlines()[0]} Run the same command again."
        ) from error
    if not is_verbose:
        with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
            ray_internals.quieten_raylet()
    try:
        yield
    finally:
        ray.shutdown()


def keep_keys_here() -> None:
    """Has Tune send no keys of a bucket with its trials, for Ray logs and shows all variables that are sent.

    Processes of a cluster made here have them from this one; the nodes of another one must have keys of their own.
    """
    with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
        ray_internals.propagated_variables().difference_update(KEYS)


def num_nodes() -> int:
    """Nodes of the cluster that are alive."""
    return sum(node["Alive"] for node in ray.nodes())  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def removing_leftovers() -> Iterator[None]:
    """Gives back what was reserved within the block and is still held when it is cut off.

    Tune leaves its actors behind then, which matters where Ray goes on. A placement group's id ends with its job's.
    """
    before, job = set(placement_group_table()), ray.get_runtime_context().get_job_id()
    try:
        yield
    except BaseException:
        for name, group in placement_group_table().items():
            if name not in before and name.endswith(job) and group["state"] != "REMOVED":
                remove_placement_group(ray_internals.placement_group_of(name))
        raise


def keep_coordinator_here() -> None:
    """Has the actor by which elastic training learns what it may use live on the driver's node.

    Ray 2.60 pins it to the node that asks first; when that one is lost, it can never come back, and elastic training
    stands still on the whole cluster. One that has gone so already is removed.
    """
    coordinator = ray_internals.autoscaling_coordinator()
    try:
        ray.get(coordinator.get_reserved_resources.remote("ponderay"), timeout=COORDINATOR_TIMEOUT_S)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        ray.kill(coordinator)
        ray_internals.autoscaling_coordinator()
    except ray.exceptions.RayError:
        return  # it lives, and knows of no request of this name


class ClusterCapacity:
    """What the cluster has at present: nodes may come and go."""

    def __init__(self) -> None:
        self._asked_s = -LOOK_AGAIN_S
        self._known = Capacity(0, 0)

    def __call__(self) -> Capacity:
        """At most a second old."""
        if time.monotonic() - self._asked_s >= LOOK_AGAIN_S:
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
            cpus, gpus = ([node.get(kind, 0.0) for node in nodes] for kind in ("CPU", "GPU"))
            each = tuple(zip(cpus, gpus, strict=True))
            self._known = Capacity(sum(cpus), sum(gpus), max(cpus, default=0.0), max(gpus, default=0.0), each)
            self._asked_s = time.monotonic()
        return self._known


def end_on_node(started: Record) -> str:
    """Ends the process that wrote `started`, by a task on its node, and returns where that hung.

    A node that is gone needs nothing.
    """
    on_its_node = NodeAffinitySchedulingStrategy(started["node_id"], soft=False)
    task = ray.remote(num_cpus=0)(end_process).options(scheduling_strategy=on_its_node)
    with contextlib.suppress(ray.exceptions.RayError):
        return str(ray.get(task.remote(started), timeout=END_TIMEOUT_S))
    return ""
