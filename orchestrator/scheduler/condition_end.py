"""When a condition is closed: its means are written, the search is told, and the front so far is shown."""

import math
import time
from collections.abc import Sequence
from typing import Final

from orchestrator.results.study import Replicate
from orchestrator.scheduler.conditions import Replication, WantedCondition
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.pruning import is_pruned
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.task import Task, TaskList
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.statistics.summary import exact_mean
from search_spaces.sweep import Condition, Sweep

LEAST_S: Final = 2.0
MOST_LINES: Final = 6


class ConditionEnds:
    """Closes each condition once all the replicates that it is to have have ended."""

    def __init__(
        self, factory: TaskFactory, tasks: TaskList, replication: Replication, recorder: Recorder, view: ProgressView
    ) -> None:
        self._factory, self._tasks, self._replication = factory, tasks, replication
        self._recorder, self._view = recorder, view
        self._front = FrontSoFar(factory.sweep, view)

    def num_to_come(self) -> float:
        """As `Replication.num_to_come`."""
        return self._replication.num_to_come()

    def close(self, name: str) -> None:
        """Closes the condition if its time has come."""
        wanted, tasks = self._replication.by_name[name], self._tasks.of(name)
        if wanted.is_closed or len(tasks) < wanted.num_seeds or not all(map(_has_ended, tasks)):
            return
        if wanted.is_undecided and tasks[0].state == "complete":
            return
        wanted.is_closed = True
        if any(task.is_touched for task in tasks) or name in self._recorder.unfinished_conditions:
            self._write(name)
        replicates = [self._recorder.replicate(task) for task in tasks]
        if not any(replicate.is_lost for replicate in replicates):
            means = self._means(wanted.condition, replicates)
            self._replication.tell(wanted.condition, means)
            names = self._factory.objective_names(wanted.condition)
            if not is_pruned(wanted.decision):
                self._front.add(name, [means[name] for name in names] if means else [])

    def decide_on(self, wanted: WantedCondition) -> None:
        """Lets a pruned search decide, once the first seed is complete, whether the condition gets the others.

        One whose first seed failed gets none: it can never be whole. One of which an earlier driver has begun others
        keeps them, also where Optuna's database was lost meanwhile.
        """
        name, tasks = wanted.condition.name, self._tasks.of(wanted.condition.name)
        if not (wanted.is_undecided and tasks and tasks[0].state == "complete"):
            return
        known = self._recorder.known
        has_begun = name in known.conditions and any(one.seed != tasks[0].seed for one in known.of(name))
        first = self._means(wanted.condition, [self._recorder.replicate(tasks[0])]) or {}
        self._replication.decide_on(wanted, first, has_begun)
        if is_pruned(wanted.decision):
            self.announce(name)

    def announce(self, name: str) -> None:
        """Writes and shows what was decided of the condition by its comparison."""
        num_seeds = len(self._tasks.of(name))
        seeds = f"{num_seeds} seed{'' if num_seeds == 1 else 's'}"
        self._view.note(f"{name}: {self._replication.by_name[name].decision} ({seeds})")
        self._write(name)

    def values(self) -> dict[tuple[str, int], Sequence[float] | None]:
        """The objectives of every replicate that ended, by condition and seed; None where it failed."""
        found: dict[tuple[str, int], Sequence[float] | None] = {}
        for task in self._tasks:
            if task.condition and _has_ended(task):
                found[task.condition.name, task.seed] = self._objectives(task, task.condition)
        return found

    def _objectives(self, task: Task, condition: Condition) -> Sequence[float] | None:
        metrics = self._recorder.replicate(task).metrics
        if task.state != "complete" or not metrics:
            return None
        return [metrics.get(name, math.nan) for name in self._factory.objective_names(condition)]

    def _write(self, name: str) -> None:
        wanted, replicates = self._replication.by_name[name], map(self._recorder.replicate, self._tasks.of(name))
        self._recorder.end_condition(wanted.condition, list(replicates), wanted.decision)

    def _means(self, condition: Condition, replicates: Sequence[Replicate]) -> dict[str, float] | None:
        """The mean of every metric over the replicates; None unless all are complete and have every objective."""
        if not replicates or any(replicate.state != "complete" for replicate in replicates):
            return None
        common = set.intersection(*(set(replicate.metrics) for replicate in replicates))
        if not common.issuperset(self._factory.objective_names(condition)):
            return None
        return {name: exact_mean([r.metrics[name] for r in replicates]) for name in sorted(common)}


def _has_ended(task: Task) -> bool:
    return task.state in ("complete", "failed")


class FrontSoFar:
    """Shows which finished conditions no other beats in the means of all objectives."""

    def __init__(self, sweep: Sweep, view: ProgressView) -> None:
        self._objectives, self._view = sweep.objectives, view
        self._means: dict[str, Sequence[float]] = {}
        self._shown_s = -LEAST_S

    def add(self, condition: str, means: Sequence[float]) -> None:
        """Takes in a finished condition, with a mean for each objective; none where it failed."""
        if not means:
            return
        self._means[condition] = means
        if len(self._means) > 1 and time.monotonic() - self._shown_s >= LEAST_S:
            self._shown_s = time.monotonic()
            self._view.front(self._lines())

    def _lines(self) -> list[str]:
        from orchestrator.pareto.front import non_dominated

        names = list(self._means)
        marks = non_dominated([self._means[name] for name in names], self._objectives)
        sign = -1 if self._objectives[0].direction == "maximize" else 1
        best = sorted(
            (name for name, mark in zip(names, marks, strict=True) if mark), key=lambda n: sign * self._means[n][0]
        )
        return [f"{name}: {self._text(name)}" for name in best[:MOST_LINES]]

    def _text(self, name: str) -> str:
        pairs = zip(self._objectives, self._means[name], strict=True)
        return ", ".join(f"{objective.metric} {mean:.4g}" for objective, mean in pairs)
