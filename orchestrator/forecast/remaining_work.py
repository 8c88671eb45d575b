"""How a sweep stands: which replicates and prerequisites are complete, failed, partly done, to do. Changes nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, Literal

from orchestrator.environment.settings import Settings
from orchestrator.forecast.model import Timing, time_journal
from orchestrator.journal.folder import ReplicateFolder, looked_at
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.capacity import Capacity, check_capacity
from orchestrator.scheduler.earlier_results import EarlierResults, is_known_to_fail, is_recorded, under_recorded_names
from orchestrator.scheduler.pruning import is_pruned
from orchestrator.scheduler.retry import is_settled
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
        step: of its last checkpoint; 0 without one.
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
    study = _read_study(sweep, settings)
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
    earlier, capacity = EarlierResults(study, factory, accept_code), Capacity(num_cpus, num_gpus)
    wanted = [*tasks.values(), *replicates, *([undrawn] if undrawn else [])]
    standings = []
    for task, folder in zip(wanted, looked_at([folder_of(task) for task in wanted]), strict=True):
        earlier.check(task, summarise(folder.records()))
        check_capacity(task, capacity)
        standings.append(_status(task, folder, known.get(task.work.key)))
    before = dict(zip(tasks, standings, strict=False))
    stands = [_doomed(one, before) for one in standings[len(tasks) :][: len(replicates)]]
    decided = _decided(sweep, settings)
    stands = list(_without_barred(sweep, stands, decided))
    needed = {key for one in stands if one.is_left for key in one.task.prerequisites} | set(
        undrawn.prerequisites if undrawn else ()
    )
    shown = tuple(one for key, one in before.items() if key in needed or one.state == "complete")
    kept = frozenset(name for name, decision in decided.items() if not is_pruned(decision))
    return Snapshot(sweep, tuple(stands), shown, num_undrawn, undrawn, kept)


def _without_barred(sweep: Sweep, stands: list[RunStatus], decided: Mapping[str, str]) -> Iterator[RunStatus]:
    """All but the seeds that a pruned search does not give: of what it pruned, and of what failed with its first."""
    barred = {name for name, decision in decided.items() if is_pruned(decision)}
    barred |= {_name(one) for one in stands if one.task.seed == sweep.seeds[0] and one.state == "failed"}
    for one in stands:
        if not sweep.is_pruned or one.task.seed == sweep.seeds[0] or one.state != "to do" or _name(one) not in barred:
            yield one


def _name(status: RunStatus) -> str:
    return status.task.condition.name if status.task.condition else ""


def _decided(sweep: Sweep, settings: Settings) -> Mapping[str, str]:
    """What a pruned search has decided so far, by condition; none of another sweep."""
    if not sweep.is_pruned:
        return {}
    from orchestrator.scheduler.search_store import decisions

    return decisions(sweep.name, settings)


def _read_study(sweep: Sweep, settings: Settings) -> Study:
    """What the store knows of the sweep; a local one that is not there is not made."""
    return load_if_run(sweep.name, settings) or Study(sweep.name, ())


def _drawn(factory: TaskFactory, study: Study) -> list[Condition]:
    """The conditions that a search has drawn under the present base, from the configs in their journals."""
    sweep = factory.sweep
    firsts = [study.of(name)[0] for name in study.conditions]
    folders = [folder_of_replicate(factory.settings, sweep.name, first.key) for first in firsts]
    found = []
    for name, first, folder in zip(study.conditions, firsts, looked_at(folders), strict=True):
        configs = [record["config"] for record in folder.records() if "config" in record]
        if configs and sweep.search:
            config = restored(type(sweep.base), configs[-1])
            drawn = {path: reduce(getattr, path.split("."), config) for path in sweep.search.space}
            condition = Condition(condition_name_of(name), drawn)
            task = factory.replicate(condition, first.seed, factory.prerequisites(condition, first.seed))
            found += [condition] if task.work.key == first.key else []
    return found


def _status(task: Task, folder: ReplicateFolder, known: Replicate | None) -> RunStatus:
    records, checkpoints, sizes = folder.records(), folder.checkpoints(), folder.checkpoint_sizes()
    timing = time_journal(records, task.work.planned_steps)
    if timing.whole_s is None and known and known.state == "complete" and known.duration_s > 0:
        timing = Timing(known.duration_s, known.duration_s)
    done = folder.evaluations() | (known.evaluations if known else set())
    num_steps, last = task.work.num_steps, folder.last_step()
    is_over = any(r["kind"] == "trained" for r in records) if num_steps is None else last >= num_steps
    step = max((one for one in checkpoints if one <= last), default=0)
    if is_over:
        step = last if num_steps is None else num_steps
    return RunStatus(
        task=task,
        state=_state(task, summarise(records), known, step),
        step=step,
        missing=len(task.evaluations - done) / max(1, len(task.evaluations)),
        timing=timing,
        size_bytes=folder.size_bytes() or (known.size_bytes if known else 0),
        checkpoint_bytes=sum(sizes) / max(1, len(sizes)),
        records=records,
    )


def _state(task: Task, journal: JournalSummary, known: Replicate | None, step: int) -> State:
    """As a plan would judge it: complete, failed by a fault of its own, or left."""
    if is_recorded(known, journal, task) or journal.is_complete(task.evaluations):
        return "complete"
    final = journal.final
    if known and is_known_to_fail(known, final, task):
        return "failed"
    if final["state"] == "failed" and is_settled(final, task.work):
        return "failed"
    return "partly done" if step > 0 else "to do"


def _doomed(status: RunStatus, prerequisites: dict[str, RunStatus]) -> RunStatus:
    """Failed where a prerequisite that it waits for has failed for good."""
    is_doomed = any(prerequisites[key].state == "failed" for key in status.task.prerequisites)
    return replace(status, state="failed") if is_doomed and status.is_left else status
