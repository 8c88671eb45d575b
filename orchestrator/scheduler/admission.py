"""What may not go on as it is: other code, another setting under a known name, more than there is to run on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from orchestrator.console.errors import RefusedError
from orchestrator.journal.folder import Record
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task_factory import Task
from orchestrator.worker.work import Work, evaluation_ids
from search_spaces.sweep import ResolvedResources


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


@dataclass
class Admission:
    """Says what of a sweep may be run beside what earlier drivers left.

    Args:
        known: what they left.
        accept_code: go on beside results of another version of the trainable's sources.
    """

    known: Study
    accept_code: bool = False

    @cached_property
    def by_key(self) -> Mapping[str, Replicate]:
        """Replicates that are there already."""
        return {replicate.key: replicate for replicate in self.known.replicates}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, int], Replicate]:
        return {(replicate.condition, replicate.seed): replicate for replicate in self.known.replicates}

    def check(self, task: Task, journal: JournalSummary) -> None:
        """Raises RefusedError where `task`, whose folder holds `journal`, cannot go on as it is."""
        self._check_name(task)
        known = self.by_key.get(task.work.key)
        _check_evaluations(task, journal.asked_for | (known.evaluations if known else frozenset()))
        versions = set(journal.versions) | ({known.code_version} if known and known.code_version else set())
        if versions - {task.work.code_version} and not self.accept_code:
            raise RefusedError(
                f"{task.work.label} was trained by version {min(versions)} of {task.work.trainable}, but the code "
                f"is now version {task.work.code_version}. Add --accept-code to keep and mix both, or set "
                "PONDERAY_RUNS to another folder."
            )

    def _check_name(self, task: Task) -> None:
        """Refuses a second setting or corpus under a name that has results already."""
        if task.condition is None:
            return
        known = self._by_name.get((task.condition.name, task.seed))
        if known and known.key != task.work.key:
            raise RefusedError(
                f"{task.work.label} is recorded with another setting or other data (key {known.key}, now "
                f"{task.work.key}). Rename the condition, or set PONDERAY_RUNS to another folder."
            )


def check_capacity(task: Task, capacity: Capacity) -> None:
    """Raises RefusedError where there is, and will be, too little for `task`, in all or on every node."""
    needs, capacity = task.work.resources, capacity.most or capacity
    if needs.cpus_per_worker > capacity.node_cpus or needs.gpus_per_worker > capacity.node_gpus:
        raise RefusedError(
            f"{task.work.label} needs {needs.cpus_per_worker} CPUs and {needs.gpus_per_worker:g} GPUs a worker on one "
            f"node, but the largest has {capacity.node_cpus:g} and {capacity.node_gpus:g}; lower its `--resource`."
        )
    if needs.min_cpus > capacity.num_cpus or needs.min_gpus > capacity.num_gpus:
        raise RefusedError(
            f"{task.work.label} needs {needs.min_cpus} CPUs and {needs.min_gpus:g} GPUs, but there are "
            f"{capacity.num_cpus:g} and {capacity.num_gpus:g}; lower its `--resource` or give Ray more."
        )
    places = [_num_places(needs, *node) for node in capacity.nodes]
    if places and sum(places) < needs.min_workers:
        raise RefusedError(
            f"{task.work.label} needs {needs.min_workers} workers of {needs.cpus_per_worker} CPUs and "
            f"{needs.gpus_per_worker:g} GPUs, but the {len(places)} nodes have room for {sum(places)}; lower its "
            "`--resource`."
        )


def _num_places(needs: ResolvedResources, cpus: float, gpus: float) -> int:
    """How many workers one node holds; a share of a GPU is one of a single card."""
    by_cpus, per_worker = int(cpus // needs.cpus_per_worker), needs.gpus_per_worker
    if not per_worker:
        return by_cpus
    by_gpus = gpus // per_worker if per_worker >= 1 else int(gpus) * int(1 / per_worker + 1e-9)
    return min(by_cpus, int(by_gpus))


def _check_evaluations(task: Task, earlier: set[str] | frozenset[str]) -> None:
    """Refuses another setting under the name of an evaluation that has results or chose checkpoints already."""
    settings = {one.rpartition(".")[0]: one for one in earlier}
    for one in sorted(task.evaluations):
        name = one.rpartition(".")[0]
        if settings.get(name, one) != one:
            raise RefusedError(
                f"{task.work.label} already has an evaluation {name!r} with other settings; give the new one another "
                "name."
            )


def is_settled(final: Record, work: Work) -> bool:
    """Whether running it once more would end the same way: complete, or failed by a fault of this very code.

    One that failed in an evaluation which is no longer asked for would not.
    """
    is_same_code = final.get("code_version", work.code_version) == work.code_version
    is_asked_for = final.get("evaluation", "") in ("", *evaluation_ids(work.typed_config()))
    is_own_fault = is_same_code and is_asked_for and not final.get("is_lost") and not final.get("is_input_error")
    return bool(final["state"] == "complete" or (final["state"] == "failed" and is_own_fault))


def is_known_to_fail(known: Replicate, final: Record, task: Task) -> bool:
    """Whether an earlier driver saw it fail by a fault of this very code, in something that is still asked for.

    What failed with its prerequisite is judged by the prerequisite again.
    """
    is_same_code = known.code_version == task.work.code_version
    is_own_fault = known.state == "failed" and not known.is_lost and not known.error.startswith("prerequisite ")
    fails_still = final["state"] == "new" or (final["state"] == "failed" and is_settled(final, task.work))
    return is_own_fault and is_same_code and fails_still


def fits(needs: ResolvedResources, live: Sequence[ResolvedResources], capacity: Capacity) -> bool:
    """Whether work with `needs` can start beside what is live.

    Train workers ask for their CPUs only after their trial has started, so beside them nothing may be promised
    twice; otherwise one more trial than fits may queue, which lets Tune reuse its actor. Elastic work starts with
    less than it may take only where nothing else runs.
    """
    if not live:
        return needs.min_cpus <= capacity.num_cpus and needs.min_gpus <= capacity.num_gpus
    num_cpus = sum(resources.num_cpus for resources in live) + needs.num_cpus
    num_gpus = sum(resources.num_gpus for resources in live) + needs.num_gpus
    has_workers = any(resources.num_workers for resources in [*live, needs])
    queue = 0 if has_workers else needs.num_cpus
    return num_cpus <= capacity.num_cpus + queue and num_gpus <= capacity.num_gpus
