"""What a sweep still has to do: replicates and their prerequisites, handed out once each, judged when they end.

Knows no engine: Ray's searcher and the one-process loop both ask `next`, pass on `reported`, and say `ended`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from orchestrator.draft import Drafter, Task
from orchestrator.progress import ProgressView
from orchestrator.recorder import Recorder
from orchestrator.refusal import RefusedError
from orchestrator.storage import Record, ReplicateFolder
from orchestrator.study import Replicate, State
from orchestrator.work import Work
from search_spaces.sweep import Condition
from trainables.errors import InputError


class ConditionSource(Protocol):
    """Where conditions come from: a list, or a search that learns from the results."""

    def more(self) -> Sequence[Condition]:
        """Conditions to add now."""

    def is_exhausted(self) -> bool:
        """Whether `more` will never give any again."""

    def tell(self, condition: Condition, values: Sequence[float] | None) -> None:
        """The mean of each objective of a finished condition; None where it failed."""


class ListedConditions:
    """The conditions that a sweep lists."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._left = list(conditions)

    def more(self) -> Sequence[Condition]:
        """All of them, once."""
        given, self._left = self._left, []
        return given

    def is_exhausted(self) -> bool:
        """Whether they were given."""
        return not self._left

    def tell(self, condition: Condition, values: Sequence[float] | None) -> None:
        """Nothing to learn."""


@dataclass(frozen=True)
class Capacity:
    """What may be in use at once."""

    num_cpus: float = math.inf
    num_gpus: float = math.inf


class Plan:
    """The tasks of one sweep and how each stands.

    Args:
        accept_code: go on beside results of another version of the trainable's sources.

    Raises:
        RefusedError: from `extend` and `next`, where results of another code version are found, or one can never fit.
    """

    def __init__(
        self,
        drafter: Drafter,
        recorder: Recorder,
        source: ConditionSource,
        view: ProgressView,
        capacity: Capacity,
        accept_code: bool = False,
    ) -> None:
        self._drafter, self._recorder, self._source, self._view = drafter, recorder, source, view
        self._capacity, self._accept_code = capacity, accept_code
        self._known = {replicate.key: replicate for replicate in recorder.known().replicates}
        self._told: set[str] = set()
        self._is_stalled = False
        self.tasks: dict[str, Task] = {}
        self.input_errors: list[str] = []

    def next(self) -> Work | None:
        """Work that can start now, or None; then either something is still running, or all is done."""
        while True:
            for task in list(self.tasks.values()):
                if self._is_open(task) and self._is_ready(task) and self._fits(task.work):
                    self._start(task)
                    return task.work
            waits = any(task.state == "waiting" and task.condition for task in self.tasks.values())
            if waits or self._is_stalled or not self.extend():
                return None

    def is_finished(self) -> bool:
        """Whether nothing is left to wait for."""
        is_busy = any(task.state == "live" or self._is_open(task) for task in self.tasks.values())
        return not is_busy and (self._is_stalled or self._source.is_exhausted())

    def _is_open(self, task: Task) -> bool:
        """Whether it waits to be started; a prerequisite only while a replicate that waits needs it."""
        needed = task.condition or any(
            task.work.key in other.needs for other in self.tasks.values() if other.state == "waiting"
        )
        return task.state == "waiting" and bool(needed)

    def reported(self, key: str, record: Record) -> None:
        """A live task reported."""
        task = self.tasks[key]
        self._recorder.record(task, record)
        self._view.record(task.work.label, record)

    def ended(self, key: str, lost: str = "") -> None:
        """A live task ended; its journal says how, or `lost` why it could not say."""
        task = self.tasks[key]
        final = ReplicateFolder(task.work.folder, {}).state()
        if final.get("attempt") != task.work.attempt:
            final = {"state": "failed", "error": lost or "ended without a result", "is_lost": True}
        self._judge(task, final)

    def replicates(self) -> list[Replicate]:
        """Every replicate as it stands."""
        return [self._replicate(task) for task in self.tasks.values() if task.condition]

    def extend(self) -> bool:
        """Takes in the conditions that the source has now, and says whether there were any.

        Called before anything starts, it shows what is wrong with them.
        """
        conditions = self._source.more()
        for condition in conditions:
            prerequisites = self._drafter.prerequisites(condition)
            for task in prerequisites.values():
                self.tasks.setdefault(task.work.key, task)
                self._check(task)
            for seed in self._drafter.sweep.seeds:
                self._add(self._drafter.replicate(condition, seed, prerequisites))
            self._close_condition(condition)
        self._count()
        return bool(conditions)

    def _add(self, task: Task) -> None:
        self.tasks[task.work.key] = task
        self._check(task)
        known, folder = self._known.get(task.work.key), ReplicateFolder(task.work.folder, {})
        final = folder.state()
        if known and known.state == "complete" and task.evaluations <= known.evaluations:
            task.state = "complete"
        elif known and known.state == "failed" and not known.is_lost and known.code_version == task.work.code_version:
            task.state, task.error = "failed", known.error
        elif _is_settled(final, task.work) and (final["state"] == "failed" or task.evaluations <= folder.evaluations()):
            self._recorder.begin(task)
            self._judge(task, final)

    def _check(self, task: Task) -> None:
        """Refuses what cannot go on as it is."""
        needs, has = task.work.resources, self._capacity
        if needs.num_cpus > has.num_cpus or needs.num_gpus > has.num_gpus:
            raise RefusedError(
                f"{task.work.label} needs {needs.num_cpus} CPUs and {needs.num_gpus:g} GPUs, but there are "
                f"{has.num_cpus:g} and {has.num_gpus:g}; lower `resources` or give Ray more."
            )
        started = [r for r in ReplicateFolder(task.work.folder, {}).records() if r["kind"] == "started"]
        known = self._known.get(task.work.key)
        self._check_name(task)
        _check_evaluations(task, {one for r in started for one in r.get("evaluations", ())}, known)
        versions = {r["code_version"] for r in started} | ({known.code_version} if known else set())
        if versions - {task.work.code_version} and not self._accept_code:
            raise RefusedError(
                f"{task.work.label} was made by version {min(versions)} of {task.work.trainable}, and this is "
                f"{task.work.code_version}. --accept-code keeps and mixes them; PONDERAY_RUNS names another folder."
            )

    def _check_name(self, task: Task) -> None:
        """Refuses a second setting or corpus under a name that has results already."""
        name = task.condition.name if task.condition else None
        for known in self._known.values():
            if (known.condition, known.seed) == (name, task.seed) and known.key != task.work.key:
                raise RefusedError(
                    f"{task.work.label} is recorded with another setting or other data (key {known.key}, now "
                    f"{task.work.key}). Rename the condition, or set PONDERAY_RUNS to another folder."
                )

    def _is_ready(self, task: Task) -> bool:
        if task.condition is None:
            return self._is_ours(task)
        needed = [self.tasks[key] for key in task.needs]
        failed = next((need for need in needed if need.state == "failed"), None)
        if failed:
            self._recorder.begin(task)
            error = f"{failed.work.label} failed: {failed.error}"
            self._judge(task, {"state": "failed", "error": error, "is_lost": True})
        return not failed and all(need.state == "complete" for need in needed)

    def _is_ours(self, task: Task) -> bool:
        """Whether this driver holds the lease of the prerequisite, which still has to be run."""
        if not task.lease.acquire():
            return False
        final = ReplicateFolder(task.work.folder, {}).state()
        if _is_settled(final, task.work):
            self._recorder.begin(task)
            self._judge(task, final)
            return False
        return True

    def _fits(self, work: Work) -> bool:
        """Whether `work` can start beside what is live.

        Train workers ask for their CPUs only after their trial has started, so beside them nothing may be promised
        twice; otherwise one more trial than fits may queue, which lets Tune reuse its actor.
        """
        live = [task.work.resources for task in self.tasks.values() if task.state == "live"]
        num_cpus = sum(resources.num_cpus for resources in live) + work.resources.num_cpus
        num_gpus = sum(resources.num_gpus for resources in live) + work.resources.num_gpus
        has_workers = any(resources.num_workers for resources in [*live, work.resources])
        queue = 0 if has_workers else work.resources.num_cpus
        return num_cpus <= self._capacity.num_cpus + queue and num_gpus <= self._capacity.num_gpus

    def _start(self, task: Task) -> None:
        task.state = "live"
        self._recorder.begin(task)
        self._view.begin(task.work.label, task.work.num_steps)

    def _judge(self, task: Task, final: Record) -> None:
        task.state, task.error = final["state"], final.get("error", "")
        if final.get("is_input_error"):
            self.input_errors.append(task.error)
        task.is_lost = task.state == "failed" and not _is_settled(final, task.work)
        self._is_stalled |= task.is_lost
        self._recorder.end(task, task.state, task.error, task.is_lost, final.get("traceback", ""))
        self._view.end(task.work.label, task.state, task.error)
        if task.condition:
            self._close_condition(task.condition)
        else:
            task.lease.release()
        self._count()

    def _close_condition(self, condition: Condition) -> None:
        """Once all its replicates have ended: writes its summary and tells the search."""
        tasks = [t for t in self.tasks.values() if t.condition and t.condition.name == condition.name]
        wanted = len(self._drafter.sweep.seeds)
        ended = [task for task in tasks if task.state in ("complete", "failed")]
        if len(ended) < wanted or condition.name in self._told:
            return
        self._told.add(condition.name)
        replicates = [self._replicate(task) for task in tasks]
        others = [r for key, r in self._known.items() if r.condition == condition.name and key not in self.tasks]
        self._recorder.end_condition(condition, replicates + others)
        if not any(replicate.is_lost for replicate in replicates):
            self._source.tell(condition, self._objective_means(condition, replicates))

    def _objective_means(self, condition: Condition, replicates: Sequence[Replicate]) -> list[float] | None:
        if any(replicate.state != "complete" for replicate in replicates):
            return None
        config = self._drafter.sweep.config(condition, self._drafter.sweep.seeds[0])
        first = next((f"@{evaluation.name}" for evaluation in getattr(config, "evaluations", ())), "")
        names = [objective.metric + first for objective in self._drafter.sweep.objectives]
        missing = [name for name in names if any(name not in replicate.metrics for replicate in replicates)]
        if missing:
            raise InputError(f"The objective {missing[0]!r} is not among what {self._drafter.sweep.trainable} reports.")
        return [math.fsum(r.metrics[name] for r in replicates) / len(replicates) for name in names]

    def _replicate(self, task: Task) -> Replicate:
        assert task.condition is not None
        known = self._known.get(task.work.key)
        records = ReplicateFolder(task.work.folder, {}).records()
        metrics: dict[str, float] = dict(known.metrics) if known else {}
        for record in records:
            metrics |= record.get("metrics", {})
        state: State = "running"
        if task.state == "complete" or task.state == "failed":
            state = task.state
        return Replicate(task.work.key, task.condition.name, task.seed, state, metrics, task.error, task.is_lost)

    def _count(self) -> None:
        done = sum(task.state in ("complete", "failed") for task in self.tasks.values())
        self._view.total(done, len(self.tasks))


def _check_evaluations(task: Task, asked_for: set[str], known: Replicate | None) -> None:
    """Refuses another setting under the name of an evaluation that has results or chose checkpoints already."""
    earlier = asked_for | (known.evaluations if known else set())
    settings = {one.rpartition(".")[0]: one for one in earlier}
    for one in sorted(task.evaluations):
        name = one.rpartition(".")[0]
        if settings.get(name, one) != one:
            raise RefusedError(
                f"{task.work.label} has an evaluation {name!r} of another setting; give this one a name of its own."
            )


def _is_settled(final: Record, work: Work) -> bool:
    """Whether running it once more would end the same way: complete, or failed by a fault of this very code."""
    is_same_code = final.get("code_version", work.code_version) == work.code_version
    is_own_fault = is_same_code and not final.get("is_lost") and not final.get("is_input_error")
    return bool(final["state"] == "complete" or (final["state"] == "failed" and is_own_fault))
