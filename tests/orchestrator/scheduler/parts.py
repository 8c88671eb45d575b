"""A scheduler of the tiny trainable with all its parts, and stand-ins for the store, the screen and Optuna."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from orchestrator.environment.settings import Settings
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.conditions import ListedConditions
from orchestrator.scheduler.earlier_results import EarlierResults
from orchestrator.scheduler.recorder import Recorder
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.stop_request import Stopping
from orchestrator.scheduler.task import Task, folder_of
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.distributions import Real
from search_spaces.sweep import Condition, Search, Sweep
from tests.integration.sweeps import tiny

Told = list[tuple[str, Mapping[str, float] | None]]


class Heard:
    """Notes the name of every method that is called, with its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: self.calls.append((name, *arguments, *named.values()))

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """Arguments of the calls of one method."""
        return [call[1:] for call in self.calls if call[0] == name]


class Store(Heard):
    """A recorder whose store holds `known` and is never written; it has left the condition `open` open."""

    unfinished_conditions = ("open",)
    replicate = Recorder.replicate

    def __init__(self, known: Sequence[Replicate]) -> None:
        super().__init__()
        self.known = Study("tiny.sweep", tuple(known))
        self._known_by_key = {replicate.key: replicate for replicate in known}


class Source(ListedConditions):
    """Conditions that are all given at once, what it was told of them, and what a pruned search decides of each.

    Where nothing is set it cannot decide now.
    """

    def __init__(self, conditions: Sequence[Condition]) -> None:
        super().__init__(conditions)
        self.told: Told = []
        self.decisions: dict[str, str] = {}
        self.asked: list[tuple[str, Mapping[str, float], bool]] = []
        self.undrawn = 0

    def num_undrawn(self) -> int:
        return self.undrawn

    def decide(self, condition: Condition, first: Mapping[str, float], has_begun: bool) -> str:
        self.asked.append((condition.name, first, has_begun))
        return self.decisions.get(condition.name, "")

    def tell(self, condition: Condition, metrics: Mapping[str, float] | None, decision: str) -> None:
        self.told.append((condition.name, metrics))


class Lease:
    """A lease of a prerequisite that is another driver's while its name is in `taken`."""

    taken: ClassVar[set[str]] = set()

    def __init__(self, name: str) -> None:
        self.name = name

    def acquire(self) -> bool:
        return self.name not in self.taken

    def holder(self) -> str:
        return "process 7 on lab" if self.name in self.taken else ""

    def release(self) -> None:
        self.taken.discard(self.name)


class Parts:
    """The parts of a scheduler of `sweep`; nothing of it was run before but what `known` says."""

    def __init__(
        self,
        folder: Path,
        sweep: Sweep,
        capacity: Capacity,
        known: Sequence[Replicate],
        drawn: Sequence[Condition] = (),
        attempt: str = "driver",
        storage: str = "",
    ) -> None:
        factory = TaskFactory(sweep, Settings(folder, "", storage=storage), 0, attempt=attempt)
        self.recorder, self.view, self.source = Store(known), Heard(), Source(drawn or sweep.conditions)
        earlier = EarlierResults(Study(sweep.name, tuple(known)), factory)
        self.scheduler = Scheduler(self.source, earlier, self.recorder, self.view, lambda: capacity, Lease, Stopping())
        self.tasks = self.scheduler.tasks

    def start(self) -> Task:
        """The next task, begun."""
        return self.tasks[self.scheduler.next().key]

    def end(self, task: Task, value: float = 0.5, metrics: Mapping[str, float] | None = None, **final: Any) -> None:
        """Ends it as its worker would: the journal says how."""
        folder = folder_of(task)
        started = {"kind": "started", "attempt": task.work.attempt, "code_version": task.work.code_version}
        folder.append(started | {"host": "lab", "device": "cpu", "evaluations": sorted(task.evaluations)})
        state = {"kind": "state", "attempt": task.work.attempt, "state": "complete"} | final
        if state["state"] == "complete" and task.condition:
            (evaluation,) = task.evaluations
            metrics = metrics or {"error@plain": value, "cost@plain": 1.0}
            folder.append({"kind": "evaluation", "id": evaluation, "step": 4, "metrics": metrics})
        folder.append(state)
        self.scheduler.ended(task.work.key)

    def lose(self, task: Task, error: str = "its worker was lost") -> None:
        """Ends it without a word in its journal."""
        self.scheduler.ended(task.work.key, error)


def parts(
    folder: Path,
    conditions: Mapping[str, Mapping[str, Any]],
    capacity: Capacity | None = None,
    known: Sequence[Replicate] = (),
    **changes: Any,
) -> Parts:
    """Of a sweep without prerequisites, unless `changes` name some."""
    sweep = tiny(conditions, **{"prerequisites": (), **changes})
    return Parts(folder, sweep, capacity or Capacity(2, 0), known)


def pruned_parts(folder: Path, num_seeds: int = 3, known: Sequence[Replicate] = ()) -> Parts:
    """Of a pruned search that draws the conditions a and b at once."""
    search = Search({"x": Real(0.1, 1.0)}, num_trials=2, pruned=True)
    sweep = tiny((), search=search, seeds=tuple(range(1, num_seeds + 1)), prerequisites=())
    return Parts(folder, sweep, Capacity(2, 0), known, (Condition("a", {"x": 0.5}), Condition("b", {"x": 0.25})))
