"""What may not go on as it is beside what earlier drivers left: other code, another setting under a known name."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from orchestrator.console.errors import RefusedError
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task import Task
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.work import Work, evaluation_ids
from search_spaces.sweep import Condition


@dataclass
class Admission:
    """Says what of a sweep may be run beside what earlier drivers left.

    Args:
        known: what they left.
        factory: of the sweep as it is now.
        accept_code: go on beside results of another version of the trainable's sources.
        retry: conditions whose failed replicates are tried again, whatever they failed by.
    """

    known: Study
    factory: TaskFactory
    accept_code: bool = False
    retry: Collection[str] = ()
    _keys_now: dict[str, str] = field(default_factory=dict)

    @cached_property
    def by_key(self) -> Mapping[str, Replicate]:
        """Replicates that are there already."""
        return {replicate.key: replicate for replicate in self.known.replicates}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, int], Replicate]:
        return {(replicate.condition, replicate.seed): replicate for replicate in self.known.replicates}

    @cached_property
    def _any_by_name(self) -> Mapping[str, Replicate]:
        return {replicate.condition: replicate for replicate in self.known.replicates}

    @cached_property
    def _by_version(self) -> Mapping[str, Replicate]:
        """One of the complete replicates of each version of the code, of those that say theirs."""
        return {one.code_version: one for one in self.known.replicates if one.state == "complete" and one.code_version}

    def check(self, task: Task, journal: JournalSummary) -> None:
        """Raises RefusedError where `task`, whose folder holds `journal`, cannot go on as it is."""
        self._check_name(task)
        known = self.by_key.get(task.work.key)
        _check_evaluations(task, journal.asked_for | (known.evaluations if known else frozenset()))
        versions = set(journal.versions) | ({known.code_version} if known and known.code_version else set())
        trained = dict.fromkeys(versions, task.work.label)
        if task.condition:  # the others of its study, with which it is compared, have the same trainable
            trained |= {version: f"{one.condition} seed {one.seed}" for version, one in self._by_version.items()}
        trained.pop(task.work.code_version, None)
        if trained and not self.accept_code:
            version, label = min(trained.items())
            raise RefusedError(
                f"{label} was trained by version {version} of {task.work.trainable}, but the code is now version "
                f"{task.work.code_version}. Add --accept-code to keep and mix both, or set PONDERAY_RUNS to another "
                "folder."
            )

    def tries_again(self, task: Task, final: Record) -> bool:
        """Whether `task`, whose journal ends with `final`, is to be tried again though it failed for good."""
        return task.condition is not None and task.condition.name in self.retry and final["state"] != "complete"

    def _check_name(self, task: Task) -> None:
        """Refuses a second setting or corpus under a name that has results already, of whatever seeds."""
        if task.condition is None:
            return
        known = self._by_name.get((task.condition.name, task.seed))
        known = known or self._any_by_name.get(task.condition.name)
        if known is None:
            return
        now = task.work.key if known.seed == task.seed else self._key_now(task.condition, known.seed)
        if known.key != now:
            raise RefusedError(
                f"{known.condition} seed {known.seed} is recorded with another setting or other data (key {known.key}, "
                f"now {now}). Rename the condition, or set PONDERAY_RUNS to another folder."
            )

    def _key_now(self, condition: Condition, seed: int) -> str:
        """Of the known replicate that its condition is compared by; asked once for each condition."""
        if condition.name not in self._keys_now:
            needed = self.factory.prerequisites(condition, seed)
            self._keys_now[condition.name] = self.factory.replicate(condition, seed, needed).work.key
        return self._keys_now[condition.name]


def _check_evaluations(task: Task, earlier: set[str] | frozenset[str]) -> None:
    """Refuses another setting under the name of an evaluation that has results or chose checkpoints already."""
    settings = {one.rpartition(".")[0]: one for one in earlier}
    for one in sorted(task.evaluations):
        name = one.rpartition(".")[0]
        if settings.get(name, one) != one:
            raise RefusedError(
                f"{task.work.label} already has an evaluation {name!r} with other settings; give the new one another "
                "name."
            )


def is_recorded(known: Replicate | None, journal: JournalSummary, task: Task) -> bool:
    """Whether earlier drivers recorded `task` as complete with all evaluations, as its journal, where it has one, does.

    Drivers of earlier versions recorded that of one that was killed before it chose its best checkpoints: its journal
    has all evaluations and no end.
    """
    if known is None or known.state != "complete" or not task.evaluations <= known.evaluations:
        return False
    is_cut_off = journal.completed is None and task.evaluations <= journal.evaluations
    return not (task.evaluations and is_cut_off)


def is_settled(final: Record, work: Work) -> bool:
    """Whether running it once more would end the same way: complete, or failed by a fault of this very code.

    One that failed in an evaluation which is no longer asked for would not.
    """
    is_same_code = final.get("code_version", work.code_version) == work.code_version
    is_asked_for = final.get("evaluation", "") in ("", *evaluation_ids(work.loaded(), work.typed_config()))
    is_own_fault = is_same_code and is_asked_for and not final.get("is_lost") and not final.get("is_input_error")
    return bool(final["state"] == "complete" or (final["state"] == "failed" and is_own_fault))


def is_known_to_fail(known: Replicate, final: Record, task: Task) -> bool:
    """Whether an earlier driver saw it fail by a fault of this very code, in something that is still asked for.

    What failed with its prerequisite is judged by the prerequisite again.
    """
    is_same_code = known.code_version == task.work.code_version
    is_own_fault = known.state == "failed" and not known.is_lost and not known.error.startswith("prerequisite ")
    fails_still = final["state"] == "new" or (final["state"] == "failed" and is_settled(final, task.work))
    return is_own_fault and is_same_code and fails_still
