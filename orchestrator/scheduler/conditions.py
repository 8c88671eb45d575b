"""The conditions and seeds that a sweep wants: where they come from, how many there are to be, and their means."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from orchestrator.journal.lines import Record
from orchestrator.results.curves import Histories
from orchestrator.results.study import Replicate
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.progress import ProgressView
from orchestrator.scheduler.pruning import KEPT, PRUNED, is_pruned, is_stopped
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.task import Task, TaskList
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.statistics import group_sequential
from orchestrator.statistics.summary import exact_mean
from search_spaces.halving import Halving, Rung
from search_spaces.sweep import Condition
from trainables.errors import InputError


class ConditionSource(Protocol):
    """A list, or a search that learns from the results."""

    def more(self) -> Sequence[Condition]:
        """The conditions to add now."""

    def is_exhausted(self) -> bool:
        """Whether `more` will never give any again."""

    def num_undrawn(self) -> int:
        """How many conditions `more` will still give."""

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None, decision: str) -> None:
        """Learns the means of a finished condition's metrics; None where it failed, or was stopped by the decision."""

    def decided(self, condition: Condition) -> str:
        """Whether a pruned search gives it more seeds than the first, in words; empty where nothing is decided."""

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        """Decides by the metrics of its first seed whether it gets more; empty where that cannot be stored now.

        Args:
            has_begun: whether another of its seeds has begun, so that it keeps them.
        """

    def halve(self, condition: Condition, rung: Rung, num_steps: int | None) -> str | None:
        """Decides whether its first seed goes on at a rung: why not, or empty; None where that cannot be stored now."""


class ListedConditions:
    """The conditions that a sweep lists."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._left = list(conditions)

    def more(self) -> Sequence[Condition]:
        """All listed conditions, once."""
        given, self._left = self._left, []
        return given

    def is_exhausted(self) -> bool:
        """Whether they were given."""
        return not self._left

    def num_undrawn(self) -> int:
        """All or none."""
        return len(self._left)

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None, decision: str) -> None:
        """Nothing to learn."""

    def decided(self, condition: Condition) -> str:
        """Nothing: none of them is pruned."""
        return ""

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        """Always that it gets all seeds."""
        return KEPT

    def halve(self, condition: Condition, rung: Rung, num_steps: int | None) -> str | None:
        """Always that it goes on."""
        return ""


def source_of(factory: TaskFactory, capacity: Capacity, tell: Callable[[str], None]) -> ConditionSource:
    """The conditions of the factory's sweep: those that it lists, or a search.

    A search is asked for as many conditions as can start together with the seeds that they begin with: more would be
    drawn without the results that they could have learnt from.

    Args:
        capacity: what may be in use at once, with all machines that may come.
        tell: told once when Optuna's database goes away.
    """
    sweep, settings = factory.sweep, factory.settings
    if sweep.search is None:
        return ListedConditions(sweep.conditions)
    from orchestrator.scheduler.optuna_search import SearchedConditions

    needs = sweep.resources.resolve(factory.num_gpus)
    by_cpus = 1 if math.isinf(capacity.num_cpus) else capacity.num_cpus // needs.num_cpus  # in this process, one
    by_gpus = capacity.num_gpus / needs.num_gpus if needs.num_gpus else math.inf
    max_open = max(1, int(min(by_cpus, by_gpus)) // (1 if sweep.is_pruned else len(sweep.seeds)))
    fingerprint = factory.fingerprint(sweep.trainable, sweep.base)
    evaluation = factory.first_evaluation(Condition("base"))
    lock = settings.runs / "optuna.lock"
    return SearchedConditions(sweep, fingerprint, evaluation, settings.search_store, lock, max_open, tell)


@dataclass
class WantedCondition:
    """A condition that a sweep wants now.

    Attributes:
        num_seeds: how many of the sweep's first seeds it is to have by now.
        is_closed: whether all its replicates have ended, and the source knows it.
        decision: of a group-sequential comparison or of a pruned search, in words.
        is_undecided: whether a pruned search has still to decide if it gets more seeds than the first.
    """

    condition: Condition
    num_seeds: int
    is_closed: bool = False
    decision: str = ""
    is_undecided: bool = False


class Conditions:
    """All conditions that a sweep has wanted so far, each from its first seed until its means are written.

    Attributes:
        by_name: every condition that the source has given.
        is_decided: whether no condition will get more seeds than it is to have by now.
    """

    def __init__(
        self, factory: TaskFactory, source: ConditionSource, tasks: TaskList, recorder: Recorder, view: ProgressView
    ) -> None:
        self._factory, self._source, self._tasks = factory, source, tasks
        self._recorder, self._view = recorder, view
        self._new: dict[str, WantedCondition] = {}
        self._pruning: dict[str, WantedCondition] = {}
        self.by_name: dict[str, WantedCondition] = {}
        self.is_decided = factory.sweep.sequential is None
        self._halving: Halving | None = factory.sweep.search.halving if factory.sweep.search else None

    def new(self) -> Collection[WantedCondition]:
        """The conditions that have no replicates yet; again, with what comes meanwhile, until `have_tasks`."""
        sweep = self._factory.sweep
        for condition in self._source.more():
            decision = self._source.decided(condition)
            if is_pruned(decision) or (sweep.is_pruned and not decision):
                wanted = WantedCondition(condition, 1, decision=decision, is_undecided=not decision)
            else:
                num_seeds = sweep.sequential.minimum if sweep.sequential else len(sweep.seeds)
                wanted = WantedCondition(condition, num_seeds, decision=decision)
            self.by_name[condition.name] = self._new[condition.name] = wanted
            if wanted.is_undecided:
                self._pruning[condition.name] = wanted
        return list(self._new.values())

    def have_tasks(self, conditions: Collection[WantedCondition]) -> None:
        """All seeds that these conditions are to have by now are tasks.

        Only then they are forgotten here: a journal that could not be read cuts off the taking in of any of them.
        """
        for wanted in conditions:
            self._new.pop(wanted.condition.name, None)
            if not wanted.is_undecided:
                self._pruning.pop(wanted.condition.name, None)

    def missing(self, wanted: WantedCondition) -> list[Task]:
        """The replicates that a condition is still to have, each behind its prerequisites."""
        tasks: list[Task] = []
        for seed in self._factory.sweep.seeds[len(self._tasks.of(wanted.condition.name)) : wanted.num_seeds]:
            needed = self._factory.prerequisites(wanted.condition, seed)
            tasks += [*needed.values(), self._factory.replicate(wanted.condition, seed, needed)]
        return tasks

    def decide_by_first_seeds(self) -> Collection[WantedCondition]:
        """Has a pruned search decide which conditions get their other seeds, and returns the decided ones.

        A condition whose first seed failed gets none: it can never be whole. A condition of which an earlier driver has
        begun other seeds keeps them, also where Optuna's database was lost meanwhile.
        """
        for name, wanted in self._pruning.items():
            tasks = self._tasks.of(name)
            if not (wanted.is_undecided and tasks and tasks[0].state == "complete"):
                continue
            first = self._mean_of(wanted.condition, [self._recorder.replicate(tasks[0])]) or {}
            wanted.decision = self._source.decide(wanted.condition, first, self._has_begun_others(name))
            wanted.is_undecided = not wanted.decision  # while the decision cannot be stored
            if is_pruned(wanted.decision):
                self._announce(name)
            elif wanted.decision:
                wanted.num_seeds = len(self._factory.sweep.seeds)
        return [wanted for wanted in self._pruning.values() if not wanted.is_undecided]

    def _has_begun_others(self, name: str) -> bool:
        """Whether an earlier driver has begun more of a condition than its first seed."""
        known, first = self._recorder.known, self._factory.sweep.seeds[0]
        return name in known.conditions and any(other.seed != first for other in known.of(name))

    def is_at_rung(self, task: Task, record: Record) -> bool:
        """Whether a live task may have reached a rung by what it reported now, of a search that halves."""
        if self._halving is None or not self._is_judged(task):
            return False
        next_rung = self._halving.first * self._halving.factor**task.num_rungs
        return self._halving.metric in record["metrics"] and bool(record["step"] >= next_rung)

    def _is_judged(self, task: Task) -> bool:
        """Whether its curve says if it goes on: it is a first seed on which nothing is decided, and alone so far."""
        if self._halving is None or task.condition is None or task.seed != self._factory.sweep.seeds[0]:
            return False
        name = task.condition.name
        return self.by_name[name].is_undecided and not self._has_begun_others(name)

    def halve(self, task: Task, histories: Histories) -> str:
        """Why a task goes on no further where its curves stand now; empty where it does, and of all but first seeds.

        What was decided before, by an earlier driver too, holds whatever the curves are.
        """
        if task.condition is None or task.seed != self._factory.sweep.seeds[0]:
            return ""
        wanted = self.by_name[task.condition.name]
        if self._halving and self._is_judged(task):
            reached = self._halving.reached(histories.get(self._halving.metric, {}), task.work.num_steps)
            for rung in list(reached)[task.num_rungs :]:
                decision = self._source.halve(wanted.condition, rung, task.work.num_steps)
                if decision is None:
                    break
                task.num_rungs += 1
                wanted.decision, wanted.is_undecided = decision, not decision
                if decision:
                    break
        return wanted.decision.removeprefix(PRUNED) if is_stopped(wanted.decision) else ""

    def refuse_unreported(self, task: Task, histories: Histories) -> None:
        """Raises InputError where a whole curve lacks the metric by which the search halves."""
        if self._halving and task.condition and self._halving.metric not in histories:
            given = ", ".join(sorted(histories))
            raise InputError(
                f"{self._factory.sweep.name}: the metric of `halving` must be one that `trial.report` gives in "
                f"training ({given}), but got {self._halving.metric!r}."
            )

    def decide_by_comparison(self) -> Collection[WantedCondition]:
        """Says anew, from all that ended so far, how many seeds each condition is to have."""
        sweep = self._factory.sweep
        assert sweep.sequential is not None
        values: dict[tuple[str, int], Sequence[float] | None] = {}
        for task in self._tasks:
            if task.condition and task.has_ended:
                metrics = self._recorder.replicate(task).metrics if task.state == "complete" else {}
                objectives = self._factory.objective_names(task.condition)
                means = [metrics.get(name, math.nan) for name in objectives] if metrics else None
                values[task.condition.name, task.seed] = means
        names = list(self.by_name)
        progress = group_sequential.wanted(
            sweep.sequential, names, sweep.reference, sweep.objectives, sweep.seeds, values
        )
        self.is_decided = progress.is_final
        for name, wanted in self.by_name.items():
            wanted.num_seeds, wanted.decision = progress.num_seeds[name], progress.decisions[name]
        return self.by_name.values()

    def announce_comparison(self) -> None:
        """Writes and shows what the comparison has decided of every condition."""
        for name in self.by_name:
            self._announce(name)

    def close(self, name: str) -> None:
        """Writes the means of a condition and tells the search, once all its replicates have ended."""
        wanted, tasks = self.by_name[name], self._tasks.of(name)
        if wanted.is_closed or len(tasks) < wanted.num_seeds or not all(task.has_ended for task in tasks):
            return
        if wanted.is_undecided and tasks[0].state == "complete":
            return
        wanted.is_closed = True
        if tasks[0].state == "pruned" and not is_stopped(wanted.decision):  # by another search, which drew the same
            wanted.decision, wanted.is_undecided = f"{PRUNED}{tasks[0].error}", False
        if any(task.is_touched for task in tasks) or name in self._recorder.unfinished_conditions:
            self._write(name)
        replicates = [self._recorder.replicate(task) for task in tasks]
        if any(replicate.is_lost for replicate in replicates):
            return  # another run may complete it, and a search could never take back what it was told
        self._source.tell(wanted.condition, self._mean_of(wanted.condition, replicates), wanted.decision)

    def num_to_come(self) -> float:
        """Replicates that a search will want beyond its tasks, if it prunes as it has pruned so far."""
        decided = [wanted.num_seeds for wanted in self.by_name.values() if not wanted.is_undecided]
        num_undecided = sum(not wanted.is_closed for wanted in self._pruning.values())
        num_seeds = fmean(decided) if decided else len(self._factory.sweep.seeds)
        return num_seeds * self._source.num_undrawn() + (num_seeds - 1) * num_undecided

    def is_exhausted(self) -> bool:
        """Whether neither a condition nor a seed will come any more."""
        is_waiting = any(not wanted.is_closed for wanted in self._pruning.values())
        return not self._new and not is_waiting and self._source.is_exhausted() and self.is_decided

    def _announce(self, name: str) -> None:
        num_seeds = len(self._tasks.of(name))
        seeds = f"{num_seeds} seed{'' if num_seeds == 1 else 's'}"
        self._view.note(f"{name}: {self.by_name[name].decision} ({seeds})")
        self._write(name)

    def _write(self, name: str) -> None:
        wanted, replicates = self.by_name[name], map(self._recorder.replicate, self._tasks.of(name))
        self._recorder.end_condition(wanted.condition, list(replicates), wanted.decision)

    def _mean_of(self, condition: Condition, replicates: Sequence[Replicate]) -> dict[str, float] | None:
        """The mean of every metric over the replicates; None unless all are complete and have every objective."""
        if not replicates or any(replicate.state != "complete" for replicate in replicates):
            return None
        common = set.intersection(*(set(replicate.metrics) for replicate in replicates))
        if not common.issuperset(self._factory.objective_names(condition)):
            return None
        return {name: exact_mean([replicate.metrics[name] for replicate in replicates]) for name in sorted(common)}
