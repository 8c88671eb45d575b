"""What may be in use at once, what fits into it, and what never will."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.console.errors import RefusedError
from orchestrator.scheduler.task import Task
from search_spaces.resources import ResolvedResources


@dataclass(frozen=True)
class Capacity:
    """What may be in use at once, in all and on one node.

    Attributes:
        nodes: CPUs and GPUs of each; empty where they are not known.
        most: what there may be later, where machines are added for work that waits; None: no more than now.
    """

    num_cpus: float
    num_gpus: float
    node_cpus: float = math.inf
    node_gpus: float = math.inf
    nodes: tuple[tuple[float, float], ...] = ()
    most: "Capacity | None" = None


def fits(resources: ResolvedResources, live: Sequence[ResolvedResources], capacity: Capacity) -> bool:
    """Whether work that takes `resources` can start beside what is live.

    Train workers ask for their CPUs only after their trial has started, so beside them nothing may be promised
    twice; otherwise one more trial than fits may queue, which lets Tune reuse its actor. Elastic work starts with
    less than it may take only where nothing else runs.
    """
    if not live:
        return resources.min_cpus <= capacity.num_cpus and resources.min_gpus <= capacity.num_gpus
    num_cpus = sum(needs.num_cpus for needs in live) + resources.num_cpus
    num_gpus = sum(needs.num_gpus for needs in live) + resources.num_gpus
    has_workers = any(needs.num_workers for needs in [*live, resources])
    queue = 0 if has_workers else resources.num_cpus
    return num_cpus <= capacity.num_cpus + queue and num_gpus <= capacity.num_gpus


def leaves_room(resources: ResolvedResources, running: Sequence[ResolvedResources], capacity: Capacity) -> bool:
    """Whether work that takes `resources` has a place beside what runs; what queues for its turn has none."""
    num_cpus = sum(needs.num_cpus for needs in running) + resources.min_cpus
    num_gpus = sum(needs.num_gpus for needs in running) + resources.min_gpus
    return num_cpus <= capacity.num_cpus and num_gpus <= capacity.num_gpus


def check_capacity(task: Task, capacity: Capacity) -> None:
    """Raises RefusedError where there is, and will be, too little for `task`, in all or on every node."""
    resources, capacity = task.work.resources, capacity.most or capacity
    if resources.cpus_per_worker > capacity.node_cpus or resources.gpus_per_worker > capacity.node_gpus:
        raise RefusedError(
            f"{task.work.label} needs {resources.cpus_per_worker} CPUs and {resources.gpus_per_worker:g} GPUs a worker "
            f"on one node, but the largest has {capacity.node_cpus:g} and {capacity.node_gpus:g}; lower its "
            "`--resource`."
        )
    if resources.min_cpus > capacity.num_cpus or resources.min_gpus > capacity.num_gpus:
        raise RefusedError(
            f"{task.work.label} needs {resources.min_cpus} CPUs and {resources.min_gpus:g} GPUs, but there are "
            f"{capacity.num_cpus:g} and {capacity.num_gpus:g}; lower its `--resource` or give Ray more."
        )
    places = [_num_places(resources, *node) for node in capacity.nodes]
    if places and sum(places) < resources.min_workers:
        raise RefusedError(
            f"{task.work.label} needs {resources.min_workers} workers of {resources.cpus_per_worker} CPUs and "
            f"{resources.gpus_per_worker:g} GPUs, but the {len(places)} nodes have room for {sum(places)}; lower its "
            "`--resource`."
        )


def _num_places(resources: ResolvedResources, cpus: float, gpus: float) -> int:
    """How many workers one node holds; a share of a GPU is one of a single card."""
    by_cpus, per_worker = int(cpus // resources.cpus_per_worker), resources.gpus_per_worker
    if not per_worker:
        return by_cpus
    by_gpus = gpus // per_worker if per_worker >= 1 else int(gpus) * int(1 / per_worker + 1e-9)
    return min(by_cpus, int(by_gpus))
