"""What a sweep still has to do: replicates and their prerequisites, handed out once each, judged when they end.

Knows no engine: Ray's searcher and the in-process run both ask `next`, pass on `reported`, and say `ended`.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Final

from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import summarise
from orchestrator.results.study import Replicate
from orchestrator.scheduler.admission import Admission, is_settled
from orchestrator.scheduler.capacity import Capacity, fits, leaves_room
from orchestrator.scheduler.intake import Intake
from orchestrator.scheduler.outage import Outage
from orchestrator.scheduler.retry import TaskRuns, unwritten
from orchestrator.scheduler.stop_request import Stopping
from orchestrator.scheduler.task import Task, TaskList, folder_of
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.lease import StoreLease
from orchestrator.worker.work import Work
from search_spaces.resources import ResolvedResources

RESULTS: Final = ("metrics", "evaluation", "state")
"""Records that only a worker that gets on writes."""


class StartQueue:
    """Which of the tasks that wait may start.

    Args:
        capacity: what may be in use at once, now.
        lease: the lease of a prerequisite, which other sweeps may want at the same time.
        outage: of the buckets that hold journals.
        tell: told once of each prerequisite that another driver is making.
    """

    def __init__(
        self,
        tasks: TaskList,
        admission: Admission,
        runs: TaskRuns,
        capacity: Callable[[], Capacity],
        lease: Callable[[str], StoreLease],
        outage: Outage,
        tell: Callable[[str], None],
    ) -> None:
        self._tasks, self._admission, self._runs = tasks, admission, runs
        self._capacity, self._lease, self._outage, self._tell = capacity, lease, outage, tell
        self._leases: dict[str, StoreLease] = {}
        self._awaited: set[str] = set()

    def first(self) -> Task | None:
        """The first task that fits beside what is live and whose prerequisites are complete; None if there is none.

        Raises:
            RefusedError: if a prerequisite has been made by another version of the code meanwhile.
        """
        capacity, now = self._capacity(), time.monotonic()
        live = [task.work.resources for task in self._tasks.live.values()]
        if sum(resources.num_cpus for resources in live) > capacity.num_cpus:
            return None
        too_large: set[ResolvedResources] = set()
        for task in list(self._tasks.waiting.values()):
            resources = task.work.resources
            if resources in too_large or task.not_before_s > now or not self._tasks.is_open(task):
                continue
            if not fits(resources, live, capacity):
                too_large.add(resources)
            elif self._is_ready(task):
                return task
        return None

    def is_early(self, task: Task) -> bool:
        """Whether a live task waits for its turn: others of this sweep take all places."""
        running = [one.work.resources for one in list(self._tasks.live.values()) if one.running_s]
        return not leaves_room(task.work.resources, running, self._capacity())

    def too_large(self) -> Task | None:
        """A task that waits for more than there is now, even if nothing else ran; None if there is none."""
        capacity = self._capacity()
        waiting = [task for task in list(self._tasks.waiting.values()) if self._tasks.is_open(task)]
        return next((task for task in waiting if not fits(task.work.resources, [], capacity)), None)

    def release(self, task: Task) -> None:
        """Lets other sweeps have a prerequisite that has ended."""
        if task.work.key in self._leases and task.state in ("complete", "failed"):
            _when_there(self._leases[task.work.key].release)

    def _is_ready(self, task: Task) -> bool:
        if task.condition is None:
            return self._is_ours(task)
        prerequisites = [self._tasks[key] for key in task.prerequisites]
        failed = next((one for one in prerequisites if one.state == "failed"), None)
        if failed:
            error = f"{failed.work.label} failed: {failed.error}"
            self._runs.end(task, {"state": "failed", "error": error, "is_lost": failed.is_lost})
        return not failed and all(one.state == "complete" for one in prerequisites)

    def _is_ours(self, task: Task) -> bool:
        """Whether this driver holds the lease of the prerequisite, which still has to be run."""
        key = task.work.key
        if key not in self._leases:
            self._leases[key] = self._lease(f"prerequisite {key}")
        if not _when_there(self._leases[key].acquire):
            self._say_awaited(task)
            return False
        try:
            journal = task.summary = summarise(folder_of(task).records())
            is_left_behind = task.is_tried_again and journal.final["state"] == "failed"
            is_there = (
                not is_left_behind and is_settled(journal.final, task.work) and _has_products(task, journal.final)
            )
        except UnavailableError as error:
            self._outage.tolerate(error)
            return False
        self._outage.is_over()
        self._admission.check(task, journal)
        if is_there:
            self._runs.end(task, journal.final)
            self.release(task)
        return not is_there

    def _say_awaited(self, task: Task) -> None:
        holder = self._leases[task.work.key].holder()
        if holder and task.work.key not in self._awaited:
            self._awaited.add(task.work.key)
            self._tell(f"{task.work.label}: waits for {holder}, which makes it for another sweep.")


class Scheduler:
    """The tasks of one sweep, from the first that starts to the last that ends.

    Attributes:
        num_reports: how many results of work have been reported; grows while the sweep gets on.

    Raises:
        RefusedError: from `extend` and `next`, where results of another code version are found, or one can never fit.
    """

    def __init__(
        self, tasks: TaskList, intake: Intake, queue: StartQueue, runs: TaskRuns, outage: Outage, stopping: Stopping
    ) -> None:
        self._intake, self._queue, self._runs, self._outage = intake, queue, runs, outage
        self._device_s = 0.0
        self.num_reports = 0
        self.tasks, self.stopping = tasks, stopping

    @property
    def input_errors(self) -> Sequence[str]:
        """The user's mistakes that only the work itself found."""
        return self._runs.input_errors

    def replicates(self) -> list[Replicate]:
        """Every replicate as it stands."""
        return self._runs.replicates()

    def next(self) -> Work | None:
        """Work that can start now, or None; then either something is still running, or all is done."""
        while not self.stopping.reason:
            task = self._queue.first()
            if task:
                self._runs.begin(task)
                return task.work
            if self.tasks.has_waiting_replicate() or self._runs.is_stalled or not self._extend_when_there():
                return None
        return None

    def extend(self) -> bool:
        """Takes in the conditions and seeds that are wanted now, and says whether there were any.

        Called before anything starts, it shows what is wrong with them.
        """
        return self._intake.extend()

    def _extend_when_there(self) -> bool:
        try:
            has_more = self.extend()
        except UnavailableError as error:
            self._outage.tolerate(error)
            return False
        if has_more:
            self._outage.is_over()
        return has_more

    def is_finished(self) -> bool:
        """Whether nothing is left to wait for."""
        if self.tasks.live or any(self.tasks.is_open(task) for task in self.tasks.waiting.values()):
            return False
        return self._runs.is_stalled or self._intake.is_exhausted()

    def reported(self, key: str, record: Record) -> None:
        """A live task reported."""
        task = self.tasks[key]
        task.heard_s = time.monotonic()
        if record["kind"] == "started":
            task.started, task.lost_because = record, ""
            self.hear(task)
        self.num_reports += record["kind"] in RESULTS
        self._runs.report(task, record)

    def lose_all(self, why: str) -> None:
        """All live tasks ended with the cluster that ran them, and this try counts against none."""
        for key in list(self.tasks.live):
            self.ended(key, why, is_excused=True)

    def ended(self, key: str, lost: str = "", is_excused: bool = False) -> None:
        """A live task ended; its journal says how, or `lost` why it could not say.

        Args:
            is_excused: whether the whole cluster was lost.
        """
        task = self.tasks[key]
        with contextlib.suppress(UnavailableError):  # then what was not heard of it counts as lost
            self.hear(task)
            task.summary = summarise(folder_of(task).records())
        now = time.monotonic()
        self._device_s, task.running_s = self._device_s + task.device_s(now), now
        final = task.summary.final
        if final.get("attempt") != task.work.attempt:
            final = unwritten(task, lost)
        self._runs.end_or_retry(task, final, is_excused)
        self._queue.release(task)
        if final.get("is_machine_fault"):  # it would take, and fail, all that waits
            self.stopping.stop(final["error"])

    def is_early(self, task: Task) -> bool:
        """Whether a live task waits for its turn: others of this sweep take all places."""
        return self._queue.is_early(task)

    def too_large(self) -> Task | None:
        """A task that waits for more than there is now, as after machines were lost; None if there is none."""
        return self._queue.too_large()

    def device_s(self) -> float:
        """Seconds of devices that this driver's tasks have held so far."""
        now = time.monotonic()
        return self._device_s + sum(task.device_s(now) for task in list(self.tasks.live.values()))

    def hear(self, task: Task) -> None:
        """Learns from its journal that a task has started to work, where it has not said so yet.

        The clock of its machine may be another; at least, it did not start before it was handed out.
        """
        started = task.started or folder_of(task).started(task.work.attempt)
        if started and not task.running_s:
            task.started = started
            age_s = max(0.0, time.time() - started["time_ms"] / 1000)
            task.running_s = max(task.begun_s, time.monotonic() - age_s)
            task.heard_s = max(task.heard_s, task.running_s)


def _has_products(task: Task, final: Record) -> bool:
    """Whether what a complete prerequisite made is still there, undamaged."""
    products, folder = final.get("products", {}).values(), folder_of(task)
    return final["state"] != "complete" or all(folder.product(name) for name in products)


def _when_there(ask: Callable[[], bool | None]) -> bool:
    """What the store answers; no, while it is away: then it is asked again, or the lease expires."""
    try:
        return bool(ask())
    except Exception as error:
        if not is_unavailable(error):
            raise
        return False
