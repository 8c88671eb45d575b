"""How the run of a task begins and ends, and the retry of one whose worker was lost."""

import time
from typing import Final

from orchestrator.journal.lines import Record
from orchestrator.machine.shared_folder_check import ensure_mark
from orchestrator.results.study import Replicate
from orchestrator.scheduler.admission import is_settled
from orchestrator.scheduler.condition_end import ConditionEnds
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.task import Task, TaskList

MAX_TRIES: Final = 4
"""How often a replicate is started in one run, if what ends it is no fault of its own."""

WAITS_S: Final = (0.0, 1.0, 5.0, 15.0)
"""How long it waits before each try: what has gone may need time to come back."""


class TaskRuns:
    """Moves tasks from one state to the next, and tells the store and the screen.

    Attributes:
        is_stalled: whether one was lost too often; then the sweep ends, and what is left is for another run.
        input_errors: the user's mistakes that only the work itself found.
    """

    def __init__(self, tasks: TaskList, recorder: Recorder, view: ProgressView, conditions: ConditionEnds) -> None:
        self._tasks, self._recorder, self._view, self._conditions = tasks, recorder, view, conditions
        self.is_stalled = False
        self.input_errors: list[str] = []

    def begin(self, task: Task) -> None:
        """A waiting task starts, as an attempt of its own."""
        task.tries += 1
        mark = "" if task.work.shared else ensure_mark(task.work.folder.parent)
        attempt = f"{task.work.attempt.partition('.')[0]}.{task.tries}"
        task.work = task.work.model_copy(update={"attempt": attempt, "mark": mark})
        task.begun_s = task.heard_s = time.monotonic()
        task.running_s = 0.0
        task.started, task.driving, task.last, task.lost_because = {}, {}, {}, ""
        task.is_touched = True
        self._tasks.move(task, "live")
        self._recorder.begin(task)
        self._view.begin(task.work.key, task.work.label, task.work.planned_steps, task.summary.step)
        self._show()

    def report(self, task: Task, record: Record) -> None:
        """A live task reported."""
        if record["kind"] == "driving":
            task.driving = record
            return
        if record["kind"] == "set_aside":
            self._view.note(f"{task.work.label}: {record['said']}")
        if record["kind"] == "state":
            task.last = record
        self._recorder.changed(task)
        self._view.record(task.work.key, record)

    def end_or_retry(self, task: Task, final: Record, is_excused: bool = False) -> None:
        """A live task ended as `final` says; where it was lost, it waits for another try while it has some left.

        Args:
            is_excused: whether the whole cluster was lost: then this try does not count.
        """
        task.num_excused += is_excused
        if not _is_lost(task, final) or task.counted_tries >= MAX_TRIES or final.get("is_input_error"):
            self.end(task, final)
            return
        task.not_before_s = time.monotonic() + WAITS_S[min(task.counted_tries, len(WAITS_S) - 1)]
        self._tasks.move(task, "waiting")
        if is_excused:
            self._view.put_back(task.work.key)
        else:
            self._view.retry(task.work.key, final.get("error", ""), task.counted_tries, MAX_TRIES)
        self._show()

    def end(self, task: Task, final: Record) -> None:
        """A task is complete or failed, as `final` says, for as long as this driver runs."""
        work = task.work
        if not task.is_touched:
            self._view.begin(work.key, work.label, work.planned_steps, step=0)
        task.is_touched = True
        self._tasks.move(task, final["state"])
        task.error, task.is_lost = final.get("error", ""), _is_lost(task, final)
        if final.get("is_input_error"):
            self.input_errors.append(task.error)
        self.is_stalled |= task.is_lost
        self._recorder.end(task, final.get("traceback", ""))
        self._view.end(work.key, task.state, task.error, task.summary.duration_s)
        if task.condition:
            self._conditions.close(task.condition.name)
        self._show()

    def _show(self) -> None:
        self._view.conditions(self._tasks.states, self._conditions.num_to_come())

    def replicates(self) -> list[Replicate]:
        """Every replicate as it stands."""
        return [self._recorder.replicate(task) for task in self._tasks.replicates()]


def unwritten(task: Task, lost: str) -> Record:
    """How a task ended whose journal does not say it: a failure that it could only report, or lost.

    What it says to have completed would be numbers that nobody has.
    """
    if task.last.get("attempt") == task.work.attempt:
        if task.last["state"] == "failed":
            return task.last
        lost = lost or f"it reported to be complete, but its journal is not in {task.work.folder}"
    error = task.lost_because or lost or "ended without a result"
    return {"state": "failed", "error": error, "is_lost": True, "traceback": task.summary.peer_traceback}


def _is_lost(task: Task, final: Record) -> bool:
    return final["state"] == "failed" and not is_settled(final, task.work)
