"""Where the conditions of a sweep come from, and how many seeds each is to have."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.pruning import KEPT, is_pruned
from orchestrator.scheduler.task import Task
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.sweep import Condition


class ConditionSource(Protocol):
    """A list, or a search that learns from the results."""

    def more(self) -> Sequence[Condition]:
        """Conditions to add now."""

    def is_exhausted(self) -> bool:
        """Whether `more` will never give any again."""

    def num_undrawn(self) -> int:
        """How many `more` will still give."""

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None) -> None:
        """The means of a finished condition's metrics; None where it failed."""

    def decided(self, condition: Condition) -> str:
        """Whether a pruned search gives it more seeds than the first, in words; empty where nothing is decided."""

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        """Decides that by the metrics of the first seed; empty where it cannot be stored now.

        Args:
            has_begun: whether another of its seeds has begun, so that it keeps them.
        """


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

    def num_undrawn(self) -> int:
        """All or none."""
        return len(self._left)

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None) -> None:
        """Nothing to learn."""

    def decided(self, condition: Condition) -> str:
        """Nothing: none of them is pruned."""
        return ""

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        """It gets them all."""
        return KEPT


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
        is_closed: whether all of them have ended and the source knows it.
        decision: of a group-sequential comparison or of a pruned search, in words.
        is_undecided: whether a pruned search has still to decide if it gets more seeds than the first.
    """

    condition: Condition
    num_seeds: int
    is_closed: bool = False
    decision: str = ""
    is_undecided: bool = False


class Replication:
    """The conditions and seeds that a sweep wants now: all that it lists, or more of both as results come in.

    Attributes:
        by_name: what was taken in so far.
        pending: conditions of a pruned search that wait for its decision, or for the seeds that it gives them.
        is_decided: whether no condition will get more seeds than it is to have by now.
    """

    def __init__(self, factory: TaskFactory, source: ConditionSource) -> None:
        self._factory, self._source = factory, source
        self._new: list[WantedCondition] = []
        self.by_name: dict[str, WantedCondition] = {}
        self.pending: list[WantedCondition] = []
        self.is_decided = factory.sweep.sequential is None

    def take_in(self) -> Sequence[WantedCondition]:
        """The new conditions; the same again with any that come meanwhile, until `accept` is called."""
        for condition in self._source.more():
            wanted = self._wanted(condition)
            self.by_name[condition.name] = wanted
            self._new.append(wanted)
            self.pending += [wanted] if wanted.is_undecided else []
        return self._new

    def _wanted(self, condition: Condition) -> WantedCondition:
        sweep, decision = self._factory.sweep, self._source.decided(condition)
        if is_pruned(decision) or (sweep.is_pruned and not decision):
            return WantedCondition(condition, 1, decision=decision, is_undecided=not decision)
        num_seeds = sweep.sequential.minimum if sweep.sequential else len(sweep.seeds)
        return WantedCondition(condition, num_seeds, decision=decision)

    def accept(self) -> None:
        """What was taken in has become tasks."""
        self._new = []

    def missing(self, wanted: WantedCondition, num_tasks: int) -> list[Task]:
        """The replicates that a condition is to have beyond its first `num_tasks`, each behind its prerequisites."""
        tasks: list[Task] = []
        for seed in self._factory.sweep.seeds[num_tasks : wanted.num_seeds]:
            needed = self._factory.prerequisites(wanted.condition, seed)
            tasks += [*needed.values(), self._factory.replicate(wanted.condition, seed, needed)]
        return tasks

    def decide(self, values: Mapping[tuple[str, int], Sequence[float] | None]) -> None:
        """Says anew how many seeds each condition is to have, given the objectives of what ended by condition and seed.

        Failed replicates have None.
        """
        from orchestrator.statistics.group_sequential import wanted

        sweep = self._factory.sweep
        assert sweep.sequential is not None
        names = list(self.by_name)
        progress = wanted(sweep.sequential, names, sweep.reference, sweep.objectives, sweep.seeds, values)
        self.is_decided = progress.is_final
        for name, one in self.by_name.items():
            one.num_seeds, one.decision = progress.num_seeds[name], progress.decisions[name]

    def decide_on(self, wanted: WantedCondition, first: Mapping[str, float], has_begun: bool) -> None:
        """Says whether a condition gets its other seeds; it stays open where that cannot be stored now."""
        wanted.decision = self._source.decide(wanted.condition, first, has_begun)
        wanted.is_undecided = not wanted.decision
        if wanted.decision and not is_pruned(wanted.decision):
            wanted.num_seeds = len(self._factory.sweep.seeds)

    def tell(self, condition: Condition, means: Mapping[str, float] | None) -> None:
        """Lets the source learn from a condition that is closed; None where it failed."""
        self._source.tell(condition, means)

    def num_to_come(self) -> float:
        """Replicates that a search will want beyond its tasks, if it prunes as it has pruned so far."""
        decided = [one.num_seeds for one in self.by_name.values() if not one.is_undecided]
        num_undecided = sum(not one.is_closed for one in self.pending)
        num_seeds = fmean(decided) if decided else len(self._factory.sweep.seeds)
        return num_seeds * self._source.num_undrawn() + (num_seeds - 1) * num_undecided

    def is_exhausted(self) -> bool:
        """Whether neither a condition nor a seed will come any more."""
        waits = any(not one.is_closed for one in self.pending)
        return not self._new and not waits and self._source.is_exhausted() and self.is_decided
