"""What a sweep still has to do: replicates and their prerequisites, handed out once each, judged when they end.

Knows no engine: Ray's searcher and the in-process run both ask `next`, pass on `reported`, and say `ended`.
"""

import contextlib
import time
from collections.abc import Callable, Collection
from typing import Final

from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.machine.shared_folder_check import ensure_mark
from orchestrator.results.study import Replicate
from orchestrator.scheduler.capacity import Capacity, check_capacity, fits, leaves_room
from orchestrator.scheduler.conditions import Conditions, ConditionSource, WantedCondition
from orchestrator.scheduler.earlier_results import EarlierResults, end_of
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.stop_request import Outage, Stopping
from orchestrator.scheduler.task import (
    MAX_TRIES,
    WAITS_S,
    Task,
    TaskList,
    folder_of,
    is_lost,
    is_settled,
    journals,
    unwritten,
)
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.lease_holder import EXPIRES_S
from orchestrator.worker.work import Work
from search_spaces.resources import ResolvedResources
from trainables.errors import InputError

RESULTS: Final = ("metrics", "evaluation", "state")
"""Records that only a worker that gets on writes."""


class Scheduler:
    """The tasks of one sweep, from the first that starts to the last that ends.

    A task is taken in by `extend`, started by `next`, and moved on by `reported` and `ended`; the methods stand in this
    order. `EarlierResults` says what of it is done already, `Conditions` which seeds are wanted. Whatever changes its
    state tells the store (`recorder`), the screen (`view`) and, with the last seed, the condition.

    Args:
        source: of the conditions.
        earlier: what the store held before this driver.
        capacity: what may be in use at once, now.
        lease: the lease of a prerequisite, which other sweeps may want at the same time.

    Attributes:
        num_reports: how many results of work have been reported; grows while the sweep gets on.
        input_errors: the user's mistakes that only the work itself found.

    Raises:
        RefusedError: from `extend` and `next`, where results of another code version are found, or one can never fit.
    """

    def __init__(
        self,
        source: ConditionSource,
        earlier: EarlierResults,
        recorder: Recorder,
        view: ProgressView,
        capacity: Callable[[], Capacity],
        lease: Callable[[str], StoreLease],
        stopping: Stopping,
    ) -> None:
        self._earlier, self._recorder, self._view, self._capacity = earlier, recorder, view, capacity
        self._lease, self._leases = lease, dict[str, StoreLease]()
        self._announced_holders: set[str] = set()
        self._outage = Outage(view.note)
        self._device_s = 0.0
        self._is_stalled = False  # by a task that was lost too often: what is left is for another run
        self.num_reports = 0
        self.input_errors: list[str] = []
        self.tasks, self.stopping = TaskList(), stopping
        self._conditions = Conditions(earlier.factory, source, self.tasks, recorder, view)

    def extend(self) -> bool:
        """Takes in the conditions and seeds that are wanted now, and returns whether there were any.

        Called before anything starts, it shows what is wrong with them.

        Raises:
            RefusedError: if results of another code version are there, or nothing has started and a task can never fit.
            UnavailableError: if a journal cannot be read now; the same is taken in again.
        """
        # Seeds that a pruned search gives come before new conditions: whole conditions prune others.
        if kept := self._conditions.decide_by_first_seeds():
            self._add_seeds(kept)
            return True
        new = self._conditions.new()
        self._add_seeds(new)
        if new:
            return True
        # A comparison is decided between rounds: all conditions then have the same number of seeds.
        if self._conditions.is_decided or self.tasks.live or self.tasks.has_waiting_replicate():
            return False
        self._add_seeds(self._conditions.decide_by_comparison())
        if self._conditions.is_decided:
            self._conditions.announce_comparison()
        return not self._conditions.is_decided

    def _add_seeds(self, conditions: Collection[WantedCondition]) -> None:
        """Gives each of the conditions the replicates that it still is to have, and those their prerequisites."""
        tasks: list[Task] = []
        for wanted in conditions:
            missing = self._conditions.missing(wanted)
            wanted.is_closed &= not missing
            tasks += missing
        prerequisites = {task.work.key: task for task in reversed(tasks) if task.condition is None}
        new = [task for key, task in reversed(prerequisites.items()) if key not in self.tasks]
        for task, journal in journals(new):
            self._earlier.check(task, journal)
            self.tasks.add(task)
        for task, journal in journals([task for task in tasks if task.condition]):
            self._add(task, journal)
        self.tasks.put_begun_first()
        self._conditions.have_tasks(conditions)
        for wanted in conditions:
            self._conditions.close(wanted.condition.name)

    def _add(self, task: Task, journal: JournalSummary) -> None:
        """Takes in a replicate as earlier drivers left it: complete, pruned, failed for good, or still to run."""
        self._earlier.check(task, journal)
        self.tasks.add(task)
        final, is_recorded, is_tried_again = end_of(
            task, journal, self._earlier.by_key.get(task.work.key), self._earlier.retry
        )
        task.summary = journal
        # What is complete is judged no more, but what an earlier driver has decided holds.
        is_judged = final is None or final["state"] == "pruned"
        if why := self._conditions.halve(task, journal.histories if is_judged else {}):
            is_recorded = is_recorded and final is not None and final["state"] == "pruned"
            final, is_tried_again = {"state": "pruned", "error": why}, False
        if is_tried_again:
            for key in task.prerequisites:
                self.tasks[key].is_tried_again = True
        elif final and is_recorded:  # nothing of it is written again, but what MLflow lacks
            self.tasks.move(task, final["state"])
            task.error = final.get("error", "")
            self._recorder.mirror_again(task, journal)
        elif final:
            self._end(task, final)
        # Only before anything has started: later a node may be away for a moment, which is no reason to refuse.
        if task.state == "waiting" and not self.tasks.has_begun:
            for needed in [task, *(self.tasks[key] for key in task.prerequisites)]:
                check_capacity(needed, self._capacity())

    def next(self) -> Work | None:
        """Work that can start now, or None; then either something is still running, or all is done."""
        while not self.stopping.reason:
            if task := self._first():
                self._begin(task)
                return task.work
            if self.tasks.has_waiting_replicate() or self._is_stalled:
                return None
            try:
                if not self.extend():
                    return None
            except UnavailableError as error:
                self._outage.tolerate(error)
                return None
            self._outage.is_over()
        return None

    def _first(self) -> Task | None:
        """The first task that fits beside what is live and whose prerequisites are complete; None if there is none.

        A task fails here with a prerequisite that has failed.
        """
        capacity, now = self._capacity(), time.monotonic()
        live = [task.work.resources for task in self.tasks.live.values()]
        if sum(resources.num_cpus for resources in live) > capacity.num_cpus:
            return None
        too_large: set[ResolvedResources] = set()  # looked at once for each size: thousands of tasks may wait
        for task in list(self.tasks.waiting.values()):
            resources = task.work.resources
            if resources in too_large or task.not_before_s > now or not self.tasks.is_open(task):
                continue
            if not fits(resources, live, capacity):
                too_large.add(resources)
                continue
            if task.condition is None:
                if self._has_to_make(task):
                    return task
                continue
            prerequisites = [self.tasks[key] for key in task.prerequisites]
            if failed := next((needed for needed in prerequisites if needed.state == "failed"), None):
                error = f"{failed.work.label} failed: {failed.error}"
                self._end(task, {"state": "failed", "error": error, "is_lost": failed.is_lost})
            elif all(needed.state == "complete" for needed in prerequisites):
                return task
        return None

    def _has_to_make(self, task: Task) -> bool:
        """Whether this driver is the one that has to run a prerequisite, and holds its lease.

        The journal is read only under the lease: another sweep's driver may have made it since it was taken in.
        """
        key = task.work.key
        if key not in self._leases:
            self._leases[key] = self._lease(f"prerequisite {key}")
        lease = self._leases[key]
        if not _unless_away(lease.acquire):
            holder = lease.holder()
            if holder and key not in self._announced_holders:
                self._announced_holders.add(key)
                alive = f"; if that has died, for up to {EXPIRES_S:.0f} s"
                self._view.note(f"{task.work.label}: waits for {holder}, which makes it for another sweep{alive}.")
            return False
        try:
            folder = folder_of(task)
            journal = task.summary = summarise(folder.records())
            final = journal.final
            has_result = is_settled(final, task.work) and not (task.is_tried_again and final["state"] == "failed")
            if has_result and final["state"] == "complete":  # of which nobody has removed or damaged a product
                has_result = all(folder.product(name) for name in final.get("products", {}).values())
        except UnavailableError as error:
            self._outage.tolerate(error)
            return False
        self._outage.is_over()
        self._earlier.check(task, journal)
        if has_result:
            self._end(task, final)
            self._release(task)
        return not has_result

    def _begin(self, task: Task) -> None:
        """A waiting task starts, as an attempt of its own: so that no end of an earlier try counts for this one."""
        task.tries += 1
        mark = "" if task.work.shared else ensure_mark(task.work.folder.parent)
        attempt = f"{task.work.attempt.partition('.')[0]}.{task.tries}"
        task.work = task.work.model_copy(update={"attempt": attempt, "mark": mark})
        task.begun_s = task.heard_s = time.monotonic()
        task.running_s = 0.0
        task.started, task.driving, task.last, task.lost_because = {}, {}, {}, ""
        task.is_touched = True
        self.tasks.move(task, "live")
        self._recorder.begin(task)
        self._view.begin(task.work.key, task.work.label, task.work.planned_steps, task.summary.kept_step)
        self._show()

    def reported(self, key: str, record: Record) -> None:
        """A live task reported: it is alive, and is shown so. The values themselves are read from its journal."""
        task = self.tasks[key]
        task.heard_s = time.monotonic()
        self.num_reports += record["kind"] in RESULTS
        if record["kind"] == "started":
            task.started, task.lost_because = record, ""
            self.hear(task)
        if record["kind"] == "driving":
            task.driving = record
            return
        if record["kind"] == "waiting":
            self._view.note(f"{task.work.label}: {record['said']}")
            return
        if record["kind"] == "set_aside":
            self._view.note(f"{task.work.label}: {record['said']}")
        if record["kind"] == "state":
            task.last = record
        self._recorder.changed(task)
        self._view.record(key, record)
        if record["kind"] == "metrics" and self._conditions.is_at_rung(task, record):
            try:
                histories = summarise(folder_of(task).records()).histories
            except (OSError, InputError):  # the next report comes to it
                return
            task.pruned_because = self._conditions.halve(task, histories)

    def hear(self, task: Task) -> None:
        """Learns from its journal that a task has started to work, where no report of that has come.

        The watchdog asks for it too, because a report may be lost with the connection that should bring it.
        """
        started = task.started or folder_of(task).started(task.work.attempt)
        if started and not task.running_s:
            task.started = started
            # The clock of its machine may be another; at least, it did not start before it was handed out.
            age_s = max(0.0, time.time() - started["time_ms"] / 1000)
            task.running_s = max(task.begun_s, time.monotonic() - age_s)
            task.heard_s = max(task.heard_s, task.running_s)

    def ended(self, key: str, lost: str = "", is_excused: bool = False) -> None:
        """A live task ended; its journal says how, or `lost` why it could not say.

        Here it is decided whether it is tried again: where it was lost, it waits for that while it has tries left.

        Args:
            is_excused: whether the whole cluster was lost: then this try does not count.
        """
        task = self.tasks[key]
        with contextlib.suppress(UnavailableError):  # a journal that cannot be read counts as one that ends here
            self.hear(task)
            task.summary = summarise(folder_of(task).records())
        histories = dict(task.summary.histories)  # the recorder lets go of them
        now = time.monotonic()
        self._device_s, task.running_s = self._device_s + task.device_s(now), now
        final = task.summary.final
        if task.pruned_because:  # whatever it has still come to: the search knows it as stopped
            final = {"state": "pruned", "error": task.pruned_because}
        elif final.get("attempt") != task.work.attempt:  # of an earlier try: this one did not come to its end
            final = unwritten(task, lost)
        task.num_excused += is_excused
        if is_lost(final, task.work) and task.counted_tries < MAX_TRIES and not final.get("is_input_error"):
            task.not_before_s = time.monotonic() + WAITS_S[min(task.counted_tries, len(WAITS_S) - 1)]
            self.tasks.move(task, "waiting")
            self.tasks.put_begun_first()
            if is_excused:
                self._view.put_back(key)
            else:
                self._view.retry(key, final.get("error", ""), task.counted_tries, MAX_TRIES)
            self._show()
        else:
            self._end(task, final)
        self._release(task)
        if final["state"] == "complete":
            self._conditions.refuse_unreported(task, histories)
        if final.get("is_machine_fault"):  # it would take, and fail, all that waits
            self.stopping.stop(final["error"])

    def lose_all(self, why: str) -> None:
        """All live tasks ended with the cluster that ran them, and this try counts against none."""
        for key in list(self.tasks.live):
            self.ended(key, why, is_excused=True)

    def _end(self, task: Task, final: Record) -> None:
        """A task is complete, failed or pruned, as `final` says, for as long as this driver runs."""
        work = task.work
        if not task.is_touched:  # it ends without having begun here, and the screen has not seen it
            self._view.begin(work.key, work.label, work.planned_steps, step=0)
        task.is_touched = True
        self.tasks.move(task, final["state"])
        task.error, task.is_lost = final.get("error", ""), is_lost(final, work)
        if final.get("is_input_error"):
            self.input_errors.append(task.error)
        self._is_stalled |= task.is_lost
        self._recorder.end(task, final.get("traceback", ""))
        self._view.end(work.key, task.state, task.error, task.summary.duration_s)
        if task.condition:  # behind the recorder: the condition's means are written after its replicates
            self._conditions.close(task.condition.name)
        self._show()

    def _release(self, task: Task) -> None:
        """Lets other sweeps have a prerequisite that has ended."""
        if task.work.key in self._leases and task.has_ended:
            _unless_away(self._leases[task.work.key].release)

    def _show(self) -> None:
        self._view.conditions(self.tasks.states, self._conditions.num_to_come())

    def is_finished(self) -> bool:
        """Whether nothing is left to wait for."""
        if self.tasks.live or any(self.tasks.is_open(task) for task in self.tasks.waiting.values()):
            return False
        return self._is_stalled or self._conditions.is_exhausted()

    def replicates(self) -> list[Replicate]:
        """Every replicate as it stands."""
        return [self._recorder.replicate(task) for task in self.tasks.replicates()]

    def device_s(self) -> float:
        """Seconds of devices that this driver's tasks have held so far."""
        now = time.monotonic()
        return self._device_s + sum(task.device_s(now) for task in list(self.tasks.live.values()))

    def is_early(self, task: Task) -> bool:
        """Whether a live task waits for its turn: others of this sweep take all places."""
        running = [live.work.resources for live in list(self.tasks.live.values()) if live.running_s]
        return not leaves_room(task.work.resources, running, self._capacity())

    def too_large(self) -> Task | None:
        """A task that waits for more than there is now, as after machines were lost; None if there is none."""
        capacity = self._capacity()
        waiting = [task for task in list(self.tasks.waiting.values()) if self.tasks.is_open(task)]
        return next((task for task in waiting if not fits(task.work.resources, [], capacity)), None)


def _unless_away(ask: Callable[[], bool | None]) -> bool:
    """The store's answer; False while it is away: then it is asked again, or the lease expires."""
    try:
        return bool(ask())
    except Exception as error:
        if not is_unavailable(error):
            raise
        return False
