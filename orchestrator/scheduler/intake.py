"""What a sweep wants becomes tasks, each as earlier drivers left it."""

from collections.abc import Callable, Collection, Sequence

from orchestrator.journal.summary import JournalSummary
from orchestrator.scheduler.admission import Admission, is_known_to_fail, is_recorded, is_settled
from orchestrator.scheduler.capacity import Capacity, check_capacity
from orchestrator.scheduler.condition_end import ConditionEnds
from orchestrator.scheduler.conditions import Replication, WantedCondition
from orchestrator.scheduler.retry import TaskRuns
from orchestrator.scheduler.task import Task, TaskList, journals


class Intake:
    """Takes in conditions, their seeds and their prerequisites.

    Args:
        capacity: what may be in use at once, now.
    """

    def __init__(
        self,
        tasks: TaskList,
        replication: Replication,
        admission: Admission,
        runs: TaskRuns,
        conditions: ConditionEnds,
        capacity: Callable[[], Capacity],
    ) -> None:
        self._tasks, self._replication, self._admission = tasks, replication, admission
        self._runs, self._conditions, self._capacity = runs, conditions, capacity

    def extend(self) -> bool:
        """Takes in the conditions and seeds that are wanted now, and says whether there were any.

        Raises:
            RefusedError: if results of another code version are there, or nothing has started and a task can never fit.
            UnavailableError: if a journal cannot be read now; the same is taken in again.
        """
        if self._add_seeds_of_kept():
            return True
        new = self._replication.take_in()
        self._add_seeds(new)
        self._replication.accept()
        return bool(new) or self._decide()

    def is_exhausted(self) -> bool:
        """Whether nothing will be taken in any more."""
        return self._replication.is_exhausted()

    def _decide(self) -> bool:
        """Gives undecided conditions more seeds, once all that run have ended; says whether there were any."""
        if self._replication.is_decided or self._tasks.live or self._tasks.has_waiting_replicate():
            return False
        self._replication.decide(self._conditions.values())
        self._add_seeds(self._replication.by_name.values())
        if self._replication.is_decided:
            for name in self._replication.by_name:
                self._conditions.announce(name)
        return not self._replication.is_decided

    def _add_seeds_of_kept(self) -> bool:
        """Has a pruned search decide where it can, and gives seeds to those it keeps; says whether it decided any."""
        for one in self._replication.pending:
            self._conditions.decide_on(one)
        decided = [one for one in self._replication.pending if not one.is_undecided]
        self._add_seeds(decided)
        self._replication.pending = [one for one in self._replication.pending if one.is_undecided]
        return bool(decided)

    def _add_prerequisites(self, tasks: Sequence[Task]) -> None:
        needed = {task.work.key: task for task in reversed(tasks) if task.work.key not in self._tasks}
        for task, journal in journals(list(reversed(needed.values()))):
            self._admission.check(task, journal)
            self._tasks.add(task)

    def _add_seeds(self, conditions: Collection[WantedCondition]) -> None:
        """Gives each of the conditions the replicates that it still is to have, and those their prerequisites."""
        tasks: list[Task] = []
        for one in conditions:
            missing = self._replication.missing(one, len(self._tasks.of(one.condition.name)))
            one.is_closed &= not missing
            tasks += missing
        self._add_prerequisites([task for task in tasks if task.condition is None])
        for task, journal in journals([task for task in tasks if task.condition]):
            self._add(task, journal)
        for one in conditions:
            self._conditions.close(one.condition.name)

    def _add(self, task: Task, journal: JournalSummary) -> None:
        known = self._admission.by_key.get(task.work.key)
        self._admission.check(task, journal)
        self._tasks.add(task)
        final, is_recorded_here = journal.final, is_recorded(known, journal, task)
        is_there = is_recorded_here or journal.is_complete(task.evaluations)
        lacking = task.work.lacking({**(known.metrics if known else {}), **journal.metrics}) if is_there else ""
        if lacking:  # the objectives are others by now, or no worker had looked at them
            version = journal.last_version or (known.code_version if known else task.work.code_version)
            known, final = None, {"state": "failed", "error": lacking, "code_version": version}
        elif is_recorded_here:
            self._tasks.move(task, "complete")
            return
        task.summary = journal
        if is_there and not lacking:
            self._runs.end(task, {"state": "complete"})  # also where another evaluation, no longer wanted, had failed
        elif self._admission.tries_again(task, final):
            for key in task.prerequisites:
                self._tasks[key].is_tried_again = True
        elif known and is_known_to_fail(known, final, task):
            self._tasks.move(task, "failed")
            task.error = known.error
        elif final["state"] == "failed" and is_settled(final, task.work):
            self._runs.end(task, final)
        if task.state == "waiting" and not self._tasks.has_begun:
            for one in [task, *(self._tasks[key] for key in task.prerequisites)]:
                check_capacity(one, self._capacity())
