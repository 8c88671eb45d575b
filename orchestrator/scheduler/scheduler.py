"""What a sweep still has to do: replicates and their prerequisites, handed out once each, judged when they end.

Knows no engine: Ray's searcher and the one-process loop both ask `next`, pass on `reported`, and say `ended`.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.folder import Record
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.machine.shared_folder_check import ensure_mark
from orchestrator.results.study import Replicate, State
from orchestrator.scheduler.admission import Admission, Capacity, check_capacity, fits, is_known_to_fail, is_settled
from orchestrator.scheduler.conditions import ConditionSource
from orchestrator.scheduler.front_so_far import FrontSoFar
from orchestrator.scheduler.outage import Outage
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.stopping import Stopping
from orchestrator.scheduler.task_factory import Task, TaskFactory
from orchestrator.scheduler.task_journals import folder_of, has_products, journals, unwritten
from orchestrator.scheduler.task_list import TaskList
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.lease import StoreLease
from orchestrator.worker.work import Work
from search_spaces.sweep import Condition, ResolvedResources
from trainables.errors import InputError

MAX_TRIES: Final = 4
"""How often a replicate is started in one run, if what ends it is no fault of its own."""

WAITS_S: Final = (0.0, 1.0, 5.0, 15.0)
"""How long it waits before each try: what has gone may need time to come back."""


class Scheduler:
    """The tasks of one sweep and how each stands.

    Args:
        capacity: what may be in use at once, now.
        lease: the lease of a prerequisite, which other sweeps may want at the same time.

    Raises:
        RefusedError: from `extend` and `next`, where results of another code version are found, or one can never fit.
    """

    def __init__(
        self,
        factory: TaskFactory,
        recorder: Recorder,
        admission: Admission,
        source: ConditionSource,
        view: ProgressView,
        capacity: Callable[[], Capacity],
        lease: Callable[[str], StoreLease],
        stopping: Stopping,
    ) -> None:
        self._factory, self._recorder, self._admission = factory, recorder, admission
        self._source, self._view, self._capacity, self._lease = source, view, capacity, lease
        self._front = FrontSoFar(factory.sweep, view)
        self._outage = Outage(view.note)
        self._conditions: dict[str, tuple[Condition, dict[str, Task]]] = {}
        self._taken_in: list[Condition] = []
        self._wanted: dict[str, int] = {}
        self._leases: dict[str, StoreLease] = {}
        self._told: set[str] = set()
        self._touched: set[str] = set()
        self._decisions: dict[str, str] = {}
        self._is_decided = factory.sweep.sequential is None
        self._is_stalled = False
        self._has_begun = False
        self._device_s = 0.0
        self.stopping = stopping
        self.tasks = TaskList()
        self.input_errors: list[str] = []

    def next(self) -> Work | None:
        """Work that can start now, or None; then either something is still running, or all is done."""
        while not self.stopping.reason:
            task = self._startable()
            if task:
                self._start(task)
                return task.work
            if self.tasks.has_waiting_replicate() or self._is_stalled or not self._extend_when_there():
                return None
        return None

    def _extend_when_there(self) -> bool:
        try:
            return self.extend()
        except UnavailableError as error:
            self._outage.tolerate(error)
            return False

    def is_finished(self) -> bool:
        """Whether nothing is left to wait for."""
        is_open = any(self.tasks.is_open(task) for task in self.tasks.waiting.values())
        is_busy = bool(self.tasks.live or self._taken_in) or is_open
        return not is_busy and (self._is_stalled or (self._source.is_exhausted() and self._is_decided))

    def reported(self, key: str, record: Record) -> None:
        """A live task reported."""
        task = self.tasks[key]
        task.heard_s = time.monotonic()
        if record["kind"] == "started":
            task.started, task.lost_because = record, ""
            self.hear(task)
        if record["kind"] == "driving":
            task.driving = record
            return
        if record["kind"] == "state":
            task.last = record
        self._recorder.changed(task)
        self._view.record(key, record)

    def ended(self, key: str, lost: str = "") -> None:
        """A live task ended; its journal says how, or `lost` why it could not say."""
        task = self.tasks[key]
        with contextlib.suppress(UnavailableError):  # then what was not heard of it counts as lost
            self.hear(task)
            task.summary = summarise(folder_of(task).records())
        now = time.monotonic()
        self._device_s, task.running_s = self._device_s + task.device_s(now), now
        final = task.summary.final
        if final.get("attempt") != task.work.attempt:
            final = unwritten(task, lost)
        self._judge(task, final, may_retry=True)
        if final.get("is_machine_fault"):  # it would take, and fail, all that waits
            self.stopping.stop(final["error"])

    def device_s(self) -> float:
        """Seconds of devices that this driver's tasks have held so far."""
        now = time.monotonic()
        return self._device_s + sum(task.device_s(now) for task in list(self.tasks.live.values()))

    def hear(self, task: Task) -> None:
        """Learns from its journal that a task has started to work, where it has not said so yet."""
        started = task.started or folder_of(task).started(task.work.attempt)
        if started and not task.running_s:
            task.started = started
            task.running_s = time.monotonic() - max(0.0, time.time() - started["time_ms"] / 1000)
            task.heard_s = max(task.heard_s, task.running_s)

    def replicates(self) -> list[Replicate]:
        """Every replicate as it stands."""
        return [self._replicate(task) for task in self.tasks if task.condition]

    def extend(self) -> bool:
        """Takes in the conditions and seeds that are wanted now, and says whether there were any.

        Called before anything starts, it shows what is wrong with them.
        """
        self._taken_in += self._source.more()
        conditions, sweep = self._taken_in, self._factory.sweep
        number = sweep.sequential.minimum if sweep.sequential else len(sweep.seeds)
        needed: dict[str, Task] = {}
        for condition in conditions:
            prerequisites = self._factory.prerequisites(condition)
            for task in prerequisites.values():
                if task.work.key not in self.tasks:
                    needed.setdefault(task.work.key, task)
            self._conditions[condition.name] = condition, prerequisites
        for task, journal in journals(list(needed.values())):
            self._admission.check(task, journal)
            self.tasks.add(task)
        self._add_seeds({condition.name: number for condition in conditions})
        self._taken_in = []
        has_more = bool(conditions) or self._decide()
        self._view.conditions(self.tasks.states)
        return has_more

    def _decide(self) -> bool:
        """Gives undecided conditions more seeds, once all that run have ended; says whether there were any."""
        sequential, sweep = self._factory.sweep.sequential, self._factory.sweep
        if sequential is None or self._is_decided or self.tasks.live or self.tasks.has_waiting_replicate():
            return False
        from orchestrator.statistics.group_sequential import wanted

        progress = wanted(
            sequential, list(self._conditions), sweep.reference, sweep.objectives, sweep.seeds, self._values()
        )
        self._is_decided = progress.is_final
        self._decisions = dict(progress.decisions)
        self._add_seeds(progress.num_seeds)
        if progress.is_final:
            for name, decision in self._decisions.items():
                self._view.note(f"{name}: {decision} ({len(self.tasks.of(name))} seeds)")
                self._end_condition(self._conditions[name][0])
        return not progress.is_final

    def _values(self) -> dict[tuple[str, int], Sequence[float] | None]:
        values: dict[tuple[str, int], Sequence[float] | None] = {}
        for task in self.tasks:
            if task.condition and task.state in ("complete", "failed"):
                metrics = self._replicate(task).metrics if task.state == "complete" else None
                names = self._objective_names(task.condition)
                found = [metrics.get(name, math.nan) for name in names] if metrics else None
                values[task.condition.name, task.seed] = found
        return values

    def _add_seeds(self, numbers: Mapping[str, int]) -> None:
        """Gives each of these conditions so many seeds in all."""
        tasks: list[Task] = []
        for name, number in numbers.items():
            condition, prerequisites = self._conditions[name]
            self._wanted[name] = number
            seeds = self._factory.sweep.seeds[len(self.tasks.of(name)) : number]
            tasks += [self._factory.replicate(condition, seed, prerequisites) for seed in seeds]
            self._told -= {name} if seeds else set()
        for task, journal in journals(tasks):
            self._add(task, journal)
        if tasks:
            self._outage.is_over()
        for name in numbers:
            self._close_condition(self._conditions[name][0])

    def _add(self, task: Task, journal: JournalSummary) -> None:
        known = self._admission.by_key.get(task.work.key)
        self._admission.check(task, journal)
        self.tasks.add(task)
        final, done = journal.final, journal.evaluations | (known.evaluations if known else frozenset())
        if known and known.state == "complete" and task.evaluations <= known.evaluations:
            self.tasks.move(task, "complete")
            return
        task.summary = journal
        if task.evaluations and task.evaluations <= done:
            self._judge(task, {"state": "complete"})  # also where another evaluation, no longer asked for, had failed
        elif known and is_known_to_fail(known, final, task):
            self.tasks.move(task, "failed")
            task.error = known.error
        elif is_settled(final, task.work) and (final["state"] == "failed" or task.evaluations <= done):
            self._judge(task, final)
        if task.state == "waiting" and not self._has_begun:
            for one in [task, *(self.tasks[need] for need in task.needs)]:
                check_capacity(one, self._capacity())

    def _startable(self) -> Task | None:
        capacity, now = self._capacity(), time.monotonic()
        live = [task.work.resources for task in self.tasks.live.values()]
        if sum(resources.num_cpus for resources in live) > capacity.num_cpus:
            return None
        too_large: set[ResolvedResources] = set()
        for task in list(self.tasks.waiting.values()):
            needs = task.work.resources
            if needs in too_large or task.not_before_s > now or not self.tasks.is_open(task):
                continue
            if not fits(needs, live, capacity):
                too_large.add(needs)
            elif self._is_ready(task):
                return task
        return None

    def _is_ready(self, task: Task) -> bool:
        if task.condition is None:
            return self._is_ours(task)
        needed = [self.tasks[key] for key in task.needs]
        failed = next((need for need in needed if need.state == "failed"), None)
        if failed:
            error = f"{failed.work.label} failed: {failed.error}"
            self._judge(task, {"state": "failed", "error": error, "is_lost": failed.is_lost})
        return not failed and all(need.state == "complete" for need in needed)

    def _is_ours(self, task: Task) -> bool:
        """Whether this driver holds the lease of the prerequisite, which still has to be run."""
        key = task.work.key
        if key not in self._leases:
            self._leases[key] = self._lease(f"prerequisite {key}")
        if not _when_there(self._leases[key].acquire):
            return False
        try:
            journal = task.summary = summarise(folder_of(task).records())
            is_there = is_settled(journal.final, task.work) and has_products(task, journal.final)
        except UnavailableError as error:
            self._outage.tolerate(error)
            return False
        self._outage.is_over()
        self._admission.check(task, journal)
        if is_there:
            self._judge(task, journal.final)
        return not is_there

    def _start(self, task: Task) -> None:
        task.tries += 1
        self._has_begun = True
        mark = "" if task.work.shared else ensure_mark(task.work.folder.parent)
        task.work = task.work.model_copy(update={"attempt": f"{self._factory.attempt}.{task.tries}", "mark": mark})
        task.heard_s, task.running_s = time.monotonic(), 0.0
        task.started, task.driving, task.last, task.lost_because = {}, {}, {}, ""
        self._touched.add(task.work.key)
        self.tasks.move(task, "live")
        self._recorder.begin(task, self._replicate(task) if task.condition else None)
        self._view.begin(task.work.key, task.work.label, task.work.num_steps, task.summary.step)
        self._view.conditions(self.tasks.states)

    def _judge(self, task: Task, final: Record, may_retry: bool = False) -> None:
        error = final.get("error", "")
        is_lost = final["state"] == "failed" and not is_settled(final, task.work)
        if is_lost and may_retry and task.tries < MAX_TRIES and not final.get("is_input_error"):
            self._retry(task, error)
            return
        if not task.tries and task.work.key not in self._touched:
            self._view.begin(task.work.key, task.work.label, task.work.num_steps, step=0)
        self._touched.add(task.work.key)
        self.tasks.move(task, final["state"])
        task.error, task.is_lost = error, is_lost
        if final.get("is_input_error"):
            self.input_errors.append(task.error)
        self._is_stalled |= is_lost
        replicate = self._replicate(task) if task.condition else None
        self._recorder.end(task, replicate, task.state, final.get("traceback", ""))
        self._view.end(task.work.key, task.state, task.error, task.summary.duration_s)
        if task.condition:
            self._close_condition(task.condition)
        elif task.work.key in self._leases:
            _when_there(self._leases[task.work.key].release)
        self._view.conditions(self.tasks.states)

    def _retry(self, task: Task, error: str) -> None:
        task.not_before_s = time.monotonic() + WAITS_S[min(task.tries, len(WAITS_S) - 1)]
        self.tasks.move(task, "waiting")
        self._view.retry(task.work.key, error, task.tries, MAX_TRIES)
        self._view.conditions(self.tasks.states)

    def _close_condition(self, condition: Condition) -> None:
        """Once all its replicates have ended: writes its summary and tells the search."""
        tasks = self.tasks.of(condition.name)
        if condition.name in self._told or len(tasks) < self._wanted[condition.name]:
            return
        if any(task.state in ("waiting", "live") for task in tasks):
            return
        self._told.add(condition.name)
        is_changed = any(task.work.key in self._touched for task in tasks)
        if is_changed or condition.name in self._recorder.unfinished_conditions:
            self._end_condition(condition)
        replicates = [self._replicate(task) for task in tasks]
        if not any(replicate.is_lost for replicate in replicates):
            means = self._means(condition, replicates)
            self._source.tell(condition, means)
            self._front.add(condition.name, [means[name] for name in self._objective_names(condition)] if means else [])

    def _end_condition(self, condition: Condition) -> None:
        replicates = [self._replicate(task) for task in self.tasks.of(condition.name)]
        ours = {replicate.key for replicate in replicates}
        others = [r for r in self._admission.known.of(condition.name) if r.key not in ours]
        self._recorder.end_condition(condition, replicates + others, self._decisions.get(condition.name, ""))

    def _means(self, condition: Condition, replicates: Sequence[Replicate]) -> dict[str, float] | None:
        """The mean of every metric over the replicates; None unless all are complete."""
        if not replicates or any(replicate.state != "complete" for replicate in replicates):
            return None
        common = set.intersection(*(set(replicate.metrics) for replicate in replicates))
        missing = [name for name in self._objective_names(condition) if name not in common]
        if missing:
            raise InputError(f"The objective {missing[0]!r} is not among what {self._factory.sweep.trainable} reports.")
        return {name: math.fsum(r.metrics[name] for r in replicates) / len(replicates) for name in sorted(common)}

    def _objective_names(self, condition: Condition) -> list[str]:
        end = self._factory.first_evaluation(condition)
        return [objective.metric + end for objective in self._factory.sweep.objectives]

    def _replicate(self, task: Task) -> Replicate:
        assert task.condition is not None
        known = self._admission.by_key.get(task.work.key)
        if task.state in ("complete", "failed") and known and task.work.key not in self._touched:
            return known
        state: State = "running"
        if task.state == "complete" or task.state == "failed":
            state = task.state
        return task.replicate(state, dict(known.metrics) if known else {})


def _when_there(ask: Callable[[], bool | None]) -> bool:
    """What the store answers; no, while it is away: then it is asked again, or the lease expires."""
    try:
        return bool(ask())
    except Exception as error:
        if not Tracking.is_unavailable(error):
            raise
        return False
