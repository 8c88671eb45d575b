"""Every part of Ray that Ray calls its own: no other file touches one. Read in Ray 2.60.0.

`tests/orchestrator/cluster/test_ray_internals.py` fails where a later Ray has moved one, and names it.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

CLUSTER_ID: Final = "/ray.rpc.NodeInfoGcsService/GetClusterId"
"""A call of the cluster's head that any client makes first, and that takes nothing."""

JOB_VARIABLE: Final = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Ray sets it for the drivers of submitted jobs."""

DESCRIPTION: Final = Path("~/ray_bootstrap_config.yaml")
"""Where `ray up` puts the cluster's description on its head."""

COMMANDS: Final = "ray.scripts.scripts"
"""The module behind the command `ray`."""

FAREWELL: Final = "Raylet is terminated|has been marked dead"
"""What Ray prints where a node has gone."""

RAYLET_VARIABLE: Final = "RAY_RAYLET_PID"
"""Every worker has in it the process number of the raylet that started the worker."""

STREAM_HANDLER: Final = "ray_print_logs"
"""Under this name Ray's driver prints what raylet and workers say."""


def read_mode_again() -> None:
    """Has Ray read its variables again; else it goes by the RAY_AUTH_MODE of the moment when it was imported."""
    from ray._raylet import Config  # type: ignore[attr-defined]

    Config.initialize("")


def living_hosts(address: str, answer_s: float) -> list[str]:
    """Hostnames of the living nodes of the cluster at HOST:PORT, which is not joined; none where it does not answer."""
    from ray._raylet import GcsClient  # type: ignore[attr-defined]
    from ray.core.generated.gcs_pb2 import GcsNodeInfo  # type: ignore[attr-defined]
    from ray.exceptions import RpcError

    try:
        nodes = GcsClient(address=address).get_all_node_info(timeout=answer_s, state_filter=GcsNodeInfo.ALIVE)
    except RpcError:
        return []
    return [node.node_manager_hostname for node in nodes.values()]


def raylet_socket() -> str:
    """The socket of the node that this process has joined."""
    from ray._private import worker

    node: Any = worker.global_worker.node
    return str(node.raylet_socket_name)


def started_processes() -> dict[str, int]:
    """Processes of the cluster that `ray.init` has made for this one, by name; none where it was there before."""
    from ray._private import worker

    node: Any = worker.global_worker.node
    return {name: infos[0].process.pid for name, infos in node.all_processes.items()}


def propagated_variables() -> set[str]:
    """The names of variables that Tune sends with each trial; what is removed from this set stays here."""
    from ray.tune.execution import class_cache

    names: set[str] = class_cache.ENV_VARS_TO_PROPAGATE
    return names


@contextlib.contextmanager
def sending_no_variables() -> Iterator[None]:
    """A block in which Tune sends no variables with its trials, so that they run in workers that Ray started ahead."""
    from ray.tune.execution import class_cache

    names, values = set(class_cache.ENV_VARS_TO_PROPAGATE), dict(class_cache.DEFAULT_ENV_VARS)
    class_cache.ENV_VARS_TO_PROPAGATE.clear()
    class_cache.DEFAULT_ENV_VARS.clear()
    try:
        yield
    finally:
        class_cache.ENV_VARS_TO_PROPAGATE.update(names)
        class_cache.DEFAULT_ENV_VARS.update(values)


@contextlib.contextmanager
def starting_little(is_verbose: bool) -> Iterator[None]:
    """A block in which `ray.init` makes a cluster without what a sweep on one machine has no use for.

    That is the autoscaler, the dashboard's server, which `include_dashboard=False` starts to count users, and what
    reads the workers' logs, unless they are to be shown. Each loads Ray first, and `ray.init` waits for the second. The
    dashboard's agent, without which no raylet starts, is that of a Ray installed without `default`.
    """
    from ray._private import utils
    from ray._private.node import Node

    unused = {"start_monitor", "start_api_server"} | (set() if is_verbose else {"start_log_monitor"})
    kept = {name: getattr(Node, name) for name in unused}
    lacking = utils.get_dashboard_dependency_error
    try:
        for name in unused:
            setattr(Node, name, lambda node, **_: setattr(node, "_webui_url", ""))
        utils.get_dashboard_dependency_error = lambda: ImportError("not wanted")
        yield
    finally:
        for name, method in kept.items():
            setattr(Node, name, method)
        utils.get_dashboard_dependency_error = lacking


def quieten_raylet() -> None:
    """Prints no more of what the raylet says, nor its farewell of twenty lines: `log_to_driver` does not reach it."""
    from ray._private.ray_logging import global_worker_stdstream_dispatcher, stdout_deduplicator

    global_worker_stdstream_dispatcher.remove_handler(STREAM_HANDLER)
    stdout_deduplicator.skip_re = re.compile(FAREWELL)


def start_nothing_unasked() -> None:
    """Has no call start or join a Ray by itself where this process has just left one."""
    from ray._private import auto_init_hook

    auto_init_hook.enable_auto_connect = False


def placement_group_of(name: str) -> "PlacementGroup":
    """The placement group whose id `placement_group_table` gives as `name`, in hexadecimal digits."""
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    return PlacementGroup(PlacementGroupID(bytes.fromhex(name)))


def autoscaling_coordinator() -> Any:
    """The actor by which elastic training learns what it may use; made on this node where there is none."""
    from ray.data._internal.cluster_autoscaler.default_autoscaling_coordinator import (
        get_or_create_autoscaling_coordinator,
    )

    return get_or_create_autoscaling_coordinator()  # type: ignore[no-untyped-call]


def trainer(has_process_group: bool) -> type[Any]:
    """Ray Train's trainer, without the process that serves Ray's own datasets: nobody here has any.

    Its controller runs in the trial, which does nothing but wait for it, and not in a process that must start first.
    Without a process group it is the trainer under that of torch: it loads no torch in the processes that only look on.
    """
    from ray.train.v2._internal.execution.controller import TrainController

    if has_process_group:
        from ray.train.torch import TorchTrainer as Plain
    else:
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer as Plain  # type: ignore[assignment]

    class Trainer(Plain):
        def _create_default_callbacks(self) -> list[Any]:
            callbacks = super()._create_default_callbacks()  # type: ignore[misc]
            return [one for one in callbacks if type(one).__name__ != "DatasetsCallback"]

        def _initialize_and_run_controller(self, **arguments: Any) -> Any:
            controller = TrainController(**arguments)
            asyncio.run(controller.run())  # type: ignore[no-untyped-call]
            return controller.get_result()

    return Trainer
