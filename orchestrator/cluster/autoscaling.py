"""A cluster that grows: what its autoscaler may add, and asking it for what waiting work needs.

Ray adds nodes for whatever is reserved and finds no place. Work is handed out only where there is place now, so what
waits is reserved here, and given back as soon as its place is there.
"""

import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import ray
import yaml  # type: ignore[import-untyped]
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group

from orchestrator.cluster.address import names_cluster
from orchestrator.cluster.ray_internals import DESCRIPTION
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.scheduler import Scheduler
from search_spaces.resources import ResolvedResources

LOOK_S: Final = 1.0
JOIN_S: Final = 30.0
MAX_RESERVED: Final = 64
log = logging.getLogger(__name__)


def addable(description: Mapping[str, Any]) -> Capacity:
    """What head and workers of a description for `ray up` have together at most, and the largest of them.

    Of several kinds of workers those count that have most, of CPUs and of GPUs each. Nothing where the description does
    not say what they have, as that of machines one owns.
    """
    kinds = dict(description.get("available_node_types", {}))
    head = kinds.pop(description.get("head_node_type"), {}).get("resources", {})
    limit = description.get("max_workers", 0)
    most = {}
    for what in ("CPU", "GPU"):
        own = [[kind.get("resources", {}).get(what, 0)] * kind.get("max_workers", limit) for kind in kinds.values()]
        most[what] = sorted(itertools.chain(*own), reverse=True)[:limit]
    if not any(itertools.chain(*most.values())):
        return Capacity(0, 0, 0, 0)
    cpus, gpus = ([head.get(what, 0), *most[what]] for what in ("CPU", "GPU"))
    return Capacity(sum(cpus), sum(gpus), max(cpus), max(gpus))


class GrowingCapacity:
    """What the cluster has, with what it may have at most.

    Args:
        present: what it has now.
        config: the description that its head was started with; need not be there, and counts only where this process
            has joined a cluster.
    """

    def __init__(self, present: Callable[[], Capacity], config: Path = DESCRIPTION) -> None:
        self._present, self._addable = present, Capacity(0, 0, 0, 0)
        file = config.expanduser()
        if names_cluster() and file.is_file():
            try:
                self._addable = addable(yaml.safe_load(file.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, TypeError) as error:
                # perhaps it is of another cluster long ago
                log.warning("%s is no description of a cluster: %s", file, type(error).__name__)

    def __call__(self) -> Capacity:
        """The present one; `most` is the larger of it and what the workers of the description come to."""
        now, more = self._present(), self._addable
        most = Capacity(
            max(now.num_cpus, more.num_cpus),
            max(now.num_gpus, more.num_gpus),
            max(now.node_cpus, more.node_cpus),
            max(now.node_gpus, more.node_gpus),
            nodes=() if more.num_cpus or more.num_gpus else now.nodes,
        )
        return replace(now, most=most)


def bundles(needs: ResolvedResources) -> list[dict[str, float]]:
    """What one replicate reserves, a bundle for each worker."""
    bundle = {"CPU": float(needs.cpus_per_worker)}
    if needs.gpus_per_worker:
        bundle["GPU"] = needs.gpus_per_worker
    return [bundle] * max(1, needs.min_workers)


def unplaced(
    live: list[ResolvedResources], waiting: list[ResolvedResources], capacity: Capacity
) -> list[ResolvedResources]:
    """The part of `waiting`, in order, without a place now beside `live`, but with one in the largest cluster."""
    most = capacity.most or capacity
    cpus, gpus = sum(needs.num_cpus for needs in live), sum(needs.num_gpus for needs in live)
    without_place: list[ResolvedResources] = []
    for needs in waiting:
        cpus, gpus = cpus + needs.min_cpus, gpus + needs.min_gpus
        if cpus > most.num_cpus or gpus > most.num_gpus or len(without_place) == MAX_RESERVED:
            break
        if cpus > capacity.num_cpus or gpus > capacity.num_gpus:
            without_place.append(needs)
    return without_place


class Demand:
    """A context manager around the running of `scheduler`: reserves places for what waits, from a thread of its own.

    Args:
        tell: told how much waits, when the cluster is first asked to grow.
        is_answering: whether the cluster is there; else nothing can be given back to it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        capacity: Callable[[], Capacity],
        tell: Callable[[str], None],
        is_answering: Callable[[], bool],
    ) -> None:
        self._scheduler, self._capacity, self._tell, self._is_answering = scheduler, capacity, tell, is_answering
        self._reserved: list[tuple[ResolvedResources, PlacementGroup]] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="demand", daemon=True)

    def __enter__(self) -> "Demand":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed.set()
        if not self._reserved or self._is_answering():
            self._thread.join(JOIN_S)
            self._keep([])

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            try:
                # what has found its place is given back, so that the work itself can have it
                placed = [r for r in self._reserved if placement_group_table(r[1])["state"] == "CREATED"]
                self._keep([reservation for reservation in self._reserved if reservation not in placed])
                self._reserve()
            except ray.exceptions.RayError as error:  # asked again at the next look
                log.debug("Demand: %s", error)

    def _keep(self, kept: list[tuple[ResolvedResources, PlacementGroup]]) -> None:
        for reservation in self._reserved:
            if reservation not in kept:
                remove_placement_group(reservation[1])
        self._reserved = kept

    def _reserve(self) -> None:
        capacity, tasks = self._capacity(), self._scheduler.tasks
        if capacity.most == replace(capacity, most=None):  # it does not grow, and tasks may be thousands
            self._keep([])
            return
        live = [task.work.resources for task in list(tasks.live.values())]
        waiting = [
            task.work.resources
            for task in list(tasks.waiting.values())
            if tasks.is_open(task) and all(tasks[key].state == "complete" for key in task.prerequisites)
        ]
        wanted = unplaced(live, waiting, capacity)
        if wanted and not self._reserved:
            self._tell(f"Ponderay asks the cluster for machines: {len(wanted)} replicates wait for resources.")
        missing, kept = Counter(wanted), []
        for resources, group in self._reserved:
            if missing[resources]:
                missing[resources] -= 1
                kept.append((resources, group))
        self._keep(kept)
        for needs in missing.elements():
            self._reserved.append((needs, placement_group(bundles(needs), strategy="PACK")))
