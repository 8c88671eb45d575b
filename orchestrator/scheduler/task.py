"""The tasks of a scheduler: how each stands, what its end means, and all of them by state and by condition.

A lost process comes back in one of four ways, each from the last checkpoint. The process that was forked for a
replicate died: its trial says so, and `Scheduler.ended` tries it again. The trial itself died: `LostTrials` in
`cluster.tune_adapter` tells the scheduler. Workers of Ray Train died: Ray Train starts them again within the trial
(`cluster.trial`). The whole cluster is gone: `cluster.recovery` begins with a new one, and no try is counted.
"""

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder, looked_at
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.results.study import Replicate, State
from orchestrator.worker.work import Work, evaluation_ids
from search_spaces.sweep import Condition

PREREQUISITES: Final = "prerequisites"
TaskState = Literal["waiting", "live", "complete", "failed", "pruned"]

MAX_TRIES: Final = 4
"""How often a replicate is started in one run, if what ends it is no fault of its own."""

WAITS_S: Final = (0.0, 1.0, 5.0, 15.0)
"""How long it waits before each try: what has gone may need time to come back."""


@dataclass(eq=False)
class Task:
    """A piece of work in a scheduler, and how it stands.

    Attributes:
        condition: None for a prerequisite.
        prerequisites: keys of the tasks it waits for.
        evaluations: ids of the evaluations it must have.
        state: a task whose worker was lost waits again; `tries` counts how often it was started.
        num_excused: how many of its tries were lost with the whole cluster, which says nothing of the replicate.
        is_tried_again: whether it does not count that it failed before this driver.
        is_touched: whether this driver has started it or seen how it ended, so an earlier one's record is not the last.
        not_before_s: by the monotonic clock, when it may be tried again.
        summary: what its journal said when it was last looked at.
        started: the record with which the session under way started: host, process and node.
        driving: the same of the process that drives its workers, where it has some.
        begun_s, running_s, heard_s: by the monotonic clock, when it was handed out, when its worker started, and when
            it last said something.
        last: the last record that says how it ended.
        lost_because: why the driver has ended its process.
        num_rungs: at how many rungs of a search that halves its curve was judged.
        pruned_because: why it goes on no further; its process is ended, unless it has ended already.
        ending: held while the driver ends its process, which is dead before it is known where it hung.
    """

    work: Work
    condition: Condition | None
    seed: int
    fingerprint: str
    prerequisites: tuple[str, ...] = ()
    evaluations: frozenset[str] = frozenset()
    state: TaskState = "waiting"
    error: str = ""
    is_lost: bool = False
    tries: int = 0
    num_excused: int = 0
    is_tried_again: bool = False
    is_touched: bool = False
    not_before_s: float = 0.0
    summary: JournalSummary = field(default_factory=JournalSummary)
    started: Record = field(default_factory=dict)
    driving: Record = field(default_factory=dict)
    begun_s: float = 0.0
    running_s: float = 0.0
    heard_s: float = 0.0
    last: Record = field(default_factory=dict)
    lost_because: str = ""
    num_rungs: int = 0
    pruned_because: str = ""
    ending: threading.Lock = field(default_factory=threading.Lock)

    @property
    def has_ended(self) -> bool:
        """Whether this driver is through with it."""
        return self.state in ("complete", "failed", "pruned")

    @property
    def counted_tries(self) -> int:
        """How many tries count against the replicate: those that were not lost with the whole cluster."""
        return self.tries - self.num_excused

    @property
    def num_devices(self) -> float:
        """The GPUs that a try holds; the CPUs where it holds none."""
        return self.work.resources.num_gpus or self.work.resources.num_cpus

    @property
    def code_version(self) -> str:
        """The version of the sources that made its results; where it failed, of those that failed last."""
        if self.state == "failed":
            return self.summary.last_version or self.work.code_version
        return (self.summary.versions or [self.work.code_version])[0]

    def device_s(self, now_s: float) -> float:
        """Seconds of devices that its present try has held; 0 while it waits for its worker."""
        return self.num_devices * (now_s - self.running_s) if self.running_s else 0.0

    def replicate(self, state: State, earlier: Mapping[str, float]) -> Replicate:
        """The replicate as it is known: its journal's metrics over `earlier` ones."""
        assert self.condition is not None
        return Replicate(
            key=self.work.key,
            condition=self.condition.name,
            seed=self.seed,
            state=state,
            metrics=dict(earlier) | self.summary.metrics,
            error=self.error,
            is_lost=self.is_lost,
            code_version=self.code_version,
            evaluations=frozenset(self.summary.evaluations),
            data_fingerprint=self.fingerprint,
            duration_s=self.summary.duration_s,
            num_devices=self.num_devices,
            size_bytes=self.summary.size_bytes,
            peak_host_bytes=self.summary.peak_host_bytes,
            peak_gpu_bytes=self.summary.peak_gpu_bytes,
            host=self.started.get("host") or self.summary.host,  # the journal is read only where it has ended
            device=self.summary.device,
        )


class TaskList:
    """Every task of a sweep, by key.

    Attributes:
        waiting: tasks that may be started some time, in order.
        live: tasks under way.
        has_begun: whether any task was ever started.
        states: how many tasks of each condition are in each state; prerequisites have a line of their own.
    """

    def __init__(self) -> None:
        self._all: dict[str, Task] = {}
        self._of: defaultdict[str, list[Task]] = defaultdict(list)
        self._needed: Counter[str] = Counter()
        self.waiting: dict[str, Task] = {}
        self.live: dict[str, Task] = {}
        self.has_begun = False
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

    def replicates(self) -> Iterator[Task]:
        """The replicates of every condition, in the order they were added.

        A search may draw two conditions that are one piece of work: such a task is among both.
        """
        return itertools.chain.from_iterable(self._of.values())

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
        self.has_begun |= state == "live"
        self._enter(task, +1)

    def put_begun_first(self) -> None:
        """Has what was begun before start before what is new: work that a lost machine did is soonest of use.

        What it needs stays before it: the same look through the list that finds a prerequisite made finds it ready.
        """
        begun = {key: task for key, task in self.waiting.items() if task.tries or task.summary.kept_step >= 0}
        needed = {
            key: self.waiting[key] for task in begun.values() for key in task.prerequisites if key in self.waiting
        }
        if begun:
            self.waiting = {**needed, **begun, **self.waiting}  # a new one, for other threads go through the old one

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
            self._needed.update(dict.fromkeys(task.prerequisites, sign))


def is_settled(final: Record, work: Work) -> bool:
    """Whether running it once more would end the same way: complete, or failed by a fault of this very code.

    What failed in an evaluation that the sweep has dropped, or for the user's own mistake, would not.
    """
    is_same_code = final.get("code_version", work.code_version) == work.code_version
    is_wanted = final.get("evaluation", "") in ("", *evaluation_ids(work.loaded(), work.typed_config()))
    is_own_fault = is_same_code and is_wanted and not final.get("is_lost") and not final.get("is_input_error")
    return bool(final["state"] == "complete" or (final["state"] == "failed" and is_own_fault))


def is_lost(final: Record, work: Work) -> bool:
    """Whether it ended without having come to anything, by nothing that it did itself."""
    return final["state"] == "failed" and not is_settled(final, work)


def unwritten(task: Task, lost: str) -> Record:
    """The end of a task whose journal does not say it: a failure that it could only report, or its loss.

    A report that it is complete is not believed: without a journal its numbers are nowhere.
    """
    if task.last.get("attempt") == task.work.attempt:
        if task.last["state"] == "failed":
            return task.last
        lost = lost or f"it reported to be complete, but its journal is not in {task.work.folder}"
    with task.ending:
        error = task.lost_because or lost or "ended without a result"
    return {"state": "failed", "error": error, "is_lost": True, "traceback": task.summary.peer_traceback}


def folder_of(task: Task, must_answer: bool = False) -> ReplicateFolder:
    """The folder of a task's journal."""
    return ReplicateFolder(task.work.folder, {}, task.work.shared, must_answer)


def folder_of_replicate(settings: Settings, sweep: str, key: str) -> ReplicateFolder:
    """The folder of a replicate that may be no task of this driver."""
    path = settings.replicates(sweep) / key
    return ReplicateFolder(path, {}, settings.shared(path))


def journals(tasks: Sequence[Task]) -> Iterator[tuple[Task, JournalSummary]]:
    """Each task with what its journal says now."""
    folders = looked_at([folder_of(task) for task in tasks])
    return ((task, summarise(folder.records())) for task, folder in zip(tasks, folders, strict=True))
