"""How a sweep stands: which replicates and prerequisites are complete, failed, partly done, to do. Changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Literal

from orchestrator.environment.settings import Settings
from orchestrator.forecast.model import Timing, time_journal
from orchestrator.journal.folder import ReplicateFolder, looked_at
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary, is_over, summarise
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.capacity import Capacity, check_capacity
from orchestrator.scheduler.earlier_results import EarlierResults, end_of, under_recorded_names
from orchestrator.scheduler.pruning import is_pruned, is_stopped
from orchestrator.scheduler.task import Task, folder_of, folder_of_replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import load_if_run
from search_spaces.names import condition_name_of
from search_spaces.sweep import Condition, Sweep
from trainables.config import restored

State = Literal["complete", "failed", "partly done", "to do"]
STATES: Final[tuple[State, ...]] = ("complete", "failed", "partly done", "to do")


@dataclass(frozen=True)
class RunStatus:
    """How a replicate or prerequisite stands.

    Attributes:
        step: of its last checkpoint, 0 without one; where training is over, the last.
        missing: the share of its evaluations that are not done.
        timing: what its journal says; None without a journal.
    """

    task: Task
    state: State
    step: int = 0
    missing: float = 1.0
    timing: Timing | None = None
    size_bytes: float = 0.0
    checkpoint_bytes: float = 0.0
    records: list[Record] = field(default_factory=list)

    @property
    def is_left(self) -> bool:
        """Whether `run` would start it."""
        return self.state in STATES[2:]

    @property
    def group(self) -> str:
        """The name of its condition, whose replicates share a mean time; each prerequisite stands for itself."""
        return self.task.condition.name if self.task.condition else self.task.work.key


@dataclass(frozen=True)
class Snapshot:
    """All that a sweep asks for, and how it stands.

    Attributes:
        prerequisites: those that are done, or that something left needs.
        num_undrawn: conditions that a search has still to draw.
        undrawn: one replicate of such a condition, as far as the base says; None where there is none.
        kept: names of the conditions to which a pruned search gives all seeds.
    """

    sweep: Sweep
    replicates: tuple[RunStatus, ...]
    prerequisites: tuple[RunStatus, ...]
    num_undrawn: int
    undrawn: Task | None
    kept: frozenset[str] = frozenset()


def look(sweep: Sweep, settings: Settings, num_cpus: float, num_gpus: float, accept_code: bool) -> Snapshot:
    """How everything that `sweep` asks for stands.

    Raises:
        RefusedError: if `run` would be refused on a machine of this size, or for another version of the code.
    """
    study = load_if_run(sweep.name, settings) or Study(sweep.name, ())
    factory = under_recorded_names(TaskFactory(sweep, settings, num_gpus), study)
    sweep = factory.sweep
    known = {replicate.key: replicate for replicate in study.replicates}
    conditions = _drawn(factory, study) if sweep.search else list(sweep.conditions)
    num_undrawn = max(0, sweep.search.num_settings() - len(conditions)) if sweep.search else 0
    tasks: dict[str, Task] = {}
    replicates: list[Task] = []
    for condition in conditions + ([Condition("not drawn yet")] if num_undrawn else []):
        for seed in sweep.seeds:
            before_it = factory.prerequisites(condition, seed)
            tasks |= {task.work.key: task for task in before_it.values()}
            replicates.append(factory.replicate(condition, seed, before_it))
    undrawn = replicates[-1] if num_undrawn else None
    replicates = replicates[: len(conditions) * len(sweep.seeds)]
    earlier, capacity = EarlierResults(study, factory, accept_code, is_anew=True), Capacity(num_cpus, num_gpus)
    wanted = [*tasks.values(), *replicates, *([undrawn] if undrawn else [])]
    standings = []
    for task, folder in zip(wanted, looked_at([folder_of(task) for task in wanted]), strict=True):
        earlier.check(task, summarise(folder.records()))
        check_capacity(task, capacity)
        standings.append(_status(task, folder, known.get(task.work.key)))
    prerequisites = dict(zip(tasks, standings, strict=False))
    stands = []
    for status in standings[len(tasks) :][: len(replicates)]:
        never_gets = any(prerequisites[key].state == "failed" for key in status.task.prerequisites)
        stands.append(replace(status, state="failed") if never_gets and status.is_left else status)
    kept: frozenset[str] = frozenset()
    if sweep.is_pruned:
        from orchestrator.scheduler.search_store import decisions  # loads Optuna

        decided = decisions(sweep.name, settings)
        stands = _given(sweep, stands, decided)
        kept = frozenset(name for name, decision in decided.items() if not is_pruned(decision))
    needed = {key for status in stands if status.is_left for key in status.task.prerequisites}
    needed |= set(undrawn.prerequisites if undrawn else ())
    relevant = [status for key, status in prerequisites.items() if key in needed or status.state == "complete"]
    return Snapshot(sweep, tuple(stands), tuple(relevant), num_undrawn, undrawn, kept)


def _given(sweep: Sweep, stands: list[RunStatus], decided: Mapping[str, str]) -> list[RunStatus]:
    """The replicates but for those that a pruned search does not start: where it pruned, or the first seed failed.

    Of those that it stopped by their curves nothing is left, their first seeds neither.
    """
    first = sweep.seeds[0]
    barred = {name for name, decision in decided.items() if is_pruned(decision)}
    barred |= {status.group for status in stands if status.task.seed == first and status.state == "failed"}
    stopped = {name for name, decision in decided.items() if is_stopped(decision)}
    return [
        status
        for status in stands
        if status.group not in stopped
        and (status.task.seed == first or status.state != "to do" or status.group not in barred)
    ]


def _drawn(factory: TaskFactory, study: Study) -> list[Condition]:
    """The conditions that a search has drawn under the present base, from the configs in their journals."""
    sweep = factory.sweep
    firsts = [study.of(name)[0] for name in study.conditions]
    folders = [folder_of_replicate(factory.settings, sweep.name, first.key) for first in firsts]
    conditions = []
    for name, first, folder in zip(study.conditions, firsts, looked_at(folders), strict=True):
        configs = [record["config"] for record in folder.records() if "config" in record]
        if configs and sweep.search:
            config = restored(type(sweep.base), configs[-1])
            drawn = {path: reduce(getattr, path.split("."), config) for path in sweep.search.space}
            condition = Condition(condition_name_of(name), drawn)
            task = factory.replicate(condition, first.seed, factory.prerequisites(condition, first.seed))
            conditions += [condition] if task.work.key == first.key else []
    return conditions


def _status(task: Task, folder: ReplicateFolder, known: Replicate | None) -> RunStatus:
    records, checkpoints, sizes = folder.records(), folder.checkpoints(), folder.checkpoint_sizes()
    journal, timing = summarise(records), time_journal(records, task.work.planned_steps)
    if timing.whole_s is None and known and known.state == "complete" and known.duration_s > 0:
        timing = Timing(known.duration_s, known.duration_s)
    done = journal.evaluations | (known.evaluations if known else set())
    step = max((checkpoint for checkpoint in checkpoints if checkpoint <= journal.step), default=0)
    if is_over(records, task.work.num_steps):
        step = task.work.num_steps or journal.step
    return RunStatus(
        task=task,
        state=_state(task, journal, known, step),
        step=step,
        missing=len(task.evaluations - done) / max(1, len(task.evaluations)),
        timing=timing,
        size_bytes=folder.size_bytes() or (known.size_bytes if known else 0),
        checkpoint_bytes=sum(sizes) / max(1, len(sizes)),
        records=records,
    )


def _state(task: Task, journal: JournalSummary, known: Replicate | None, step: int) -> State:
    """How it stands to a run that starts now: complete, failed by a fault of its own, or left.

    What a search has decided against counts as its journal has it: the search's own record says what is not started.
    """
    final = end_of(task, journal, None if known and known.state == "pruned" else known).final
    if final:
        return "complete" if final["state"] == "complete" else "failed"
    return "partly done" if step > 0 else "to do"
