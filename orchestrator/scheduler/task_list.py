"""The tasks of a scheduler, found by state and by condition without looking at all of them."""

from collections import Counter, defaultdict
from collections.abc import Iterator

from orchestrator.scheduler.task_factory import Task, TaskState

PREREQUISITES = "prerequisites"


class TaskList:
    """Every task of a sweep, by key.

    Attributes:
        waiting: those that may be started some time, in order.
        live: those under way.
        states: how many tasks of each condition are in each state; prerequisites have a line of their own.
    """

    def __init__(self) -> None:
        self._all: dict[str, Task] = {}
        self._of: defaultdict[str, list[Task]] = defaultdict(list)
        self._needed: Counter[str] = Counter()
        self.waiting: dict[str, Task] = {}
        self.live: dict[str, Task] = {}
        self.states: dict[str, Counter[str]] = {}

    def __getitem__(self, key: str) -> Task:
        return self._all[key]

    def __contains__(self, key: str) -> bool:
        return key in self._all

    def __iter__(self) -> Iterator[Task]:
        return iter(self._all.values())

    def of(self, condition: str) -> list[Task]:
        """The replicates of one condition, in the order they were added."""
        return self._of[condition]

    def add(self, task: Task) -> None:
        """Takes in a task that waits."""
        self._all[task.work.key] = task
        if task.condition:
            self._of[task.condition.name].append(task)
        self._enter(task, +1)

    def move(self, task: Task, state: TaskState) -> None:
        """Gives `task` another state."""
        self._enter(task, -1)
        task.state = state
        self._enter(task, +1)

    def is_open(self, task: Task) -> bool:
        """Whether it waits to be started; a prerequisite only while a replicate that waits needs it."""
        return task.state == "waiting" and (task.condition is not None or self._needed[task.work.key] > 0)

    def has_waiting_replicate(self) -> bool:
        """Whether a replicate waits."""
        return any(task.condition for task in self.waiting.values())

    def _enter(self, task: Task, sign: int) -> None:
        name = task.condition.name if task.condition else PREREQUISITES
        self.states.setdefault(name, Counter())[task.state] += sign
        indexes = {"waiting": self.waiting, "live": self.live}
        if task.state in indexes and sign > 0:
            indexes[task.state][task.work.key] = task
        elif task.state in indexes:
            indexes[task.state].pop(task.work.key, None)
        if task.state == "waiting" and task.condition:
            self._needed.update(dict.fromkeys(task.needs, sign))
