"""What earlier drivers of a sweep have left: whether the sweep may go on beside it, and what of it is done already.

Nothing here loads MLflow or Ray, so that a sweep which is refused or finished is answered at once.
"""

import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.journal.lines import Record
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task import Task, is_settled, journals
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.load import in_runs_folder, load_study, num_mirrored
from orchestrator.tracking.names import param_texts
from search_spaces.known_names import known_names
from search_spaces.names import condition_name_of
from search_spaces.sweep import Condition, Sweep
from trainables.config import flatten
from trainables.errors import InputError

MOST_FILES: Final = 6
"""How many files a message names."""


class EarlierEnd(NamedTuple):
    """How a replicate stands before this driver has done anything for it.

    Attributes:
        final: the record of its end, complete, failed or pruned; None where it is still to run.
        is_recorded: whether earlier drivers have written that end down.
        is_tried_again: whether it is still to run because the user wants it once more, whatever it failed by.
    """

    final: Record | None
    is_recorded: bool = False
    is_tried_again: bool = False


@dataclass
class EarlierResults:
    """What the store holds of a sweep, beside which only some of what it wants now may be run.

    Args:
        known: the study that earlier drivers left.
        factory: of the sweep as it is now.
        accept_code: go on beside results of another version of the trainable's sources.
        retry: conditions whose failed replicates are tried again, whatever they failed by.
        is_anew: train from the first step what another machine has begun and left where it cannot be reached from here.
        code: of the study file, by version of the code: digests of its files by name.
    """

    known: Study
    factory: TaskFactory
    accept_code: bool = False
    retry: Collection[str] = ()
    is_anew: bool = False
    code: Mapping[str, Record] = field(default_factory=dict)
    _keys_now: dict[str, str] = field(default_factory=dict)

    @cached_property
    def by_key(self) -> Mapping[str, Replicate]:
        """The replicates of the store."""
        return {replicate.key: replicate for replicate in self.known.replicates}

    @cached_property
    def by_name(self) -> Mapping[tuple[str, int], Replicate]:
        """The same by condition and seed, for one key may stand under several conditions."""
        return {(replicate.condition, replicate.seed): replicate for replicate in self.known.replicates}

    @cached_property
    def _any_by_name(self) -> Mapping[str, Replicate]:
        return {replicate.condition: replicate for replicate in self.known.replicates}

    @cached_property
    def _by_version(self) -> Mapping[str, Replicate]:
        """A complete replicate of each version of the code that is recorded."""
        complete = (replicate for replicate in self.known.replicates if replicate.state == "complete")
        return {replicate.code_version: replicate for replicate in complete if replicate.code_version}

    def check(self, task: Task, journal: JournalSummary) -> None:
        """Raises RefusedError where `task`, whose folder holds `journal`, cannot go on as it is."""
        if rule := self.other_setting(task):
            raise RefusedError(f"{rule}. Rename the condition, or {self._other_ways()}")
        known = self.by_key.get(task.work.key)
        if known and not self.is_anew:
            self._check_reach(task, known, journal)
        # No second setting under the name of an evaluation that has results, or chose checkpoints, already.
        evaluated = journal.asked_for | (known.evaluations if known else frozenset())
        by_name = {identity.rpartition(".")[0]: identity for identity in evaluated}
        for identity in sorted(task.evaluations):
            name = identity.rpartition(".")[0]
            if by_name.get(name, identity) != identity:
                raise RefusedError(
                    f"{task.work.label} already has an evaluation {name!r} with other settings; give the new one "
                    "another name."
                )
        if rule := self.other_code(task, journal):
            keep = "Add --accept-code to keep the old results and mix both"
            other = self._other_ways() if task.condition else "set PONDERAY_RUNS anew."
            raise RefusedError(f"{rule}. {keep}, or {other}")

    def other_code(self, task: Task, journal: JournalSummary) -> str:
        """Which other version of the code results of `task`, or of its study, are of; empty where that is accepted."""
        # What failed before it reported has left nothing that could be mixed; its mended code is what is asked for.
        known = self.by_key.get(task.work.key)
        is_result = known is not None and known.state != "failed" and known.code_version
        versions = set(journal.versions) | ({known.code_version} if known and is_result else set())
        trained = dict.fromkeys(versions, task.work.label)
        if task.condition:  # it will be compared with the others of its study, which have the same trainable
            labels = {version: f"{other.condition} seed {other.seed}" for version, other in self._by_version.items()}
            trained |= labels
        trained.pop(task.work.code_version, None)
        if not trained or self.accept_code:
            return ""
        version, label = min(trained.items())
        of_version = {
            f"{one.condition} seed {one.seed}" for one in self.known.replicates if one.code_version == version
        } - {label}
        more = f", as {'was' if len(of_version) == 1 else 'were'} {len(of_version):,} more" if of_version else ""
        return (
            f"{label} was trained by version {version} of {task.work.trainable}{more}, but the code is now version "
            f"{task.work.code_version}{self.changed_files(version, task)}"
        )

    def _check_reach(self, task: Task, known: Replicate, journal: JournalSummary) -> None:
        """Refuses what would train again steps that another machine has done: its journal is not the one read here."""
        is_open = known.state in ("running", "stopped") or known.is_lost
        # A worker that died at once may have told the driver of itself, and not yet the bucket.
        if not (is_open and known.host) or task.work.shared or known.host in (socket.gethostname(), *journal.hosts):
            return
        origin = self.known.origins.get(known.key)
        again = origin.again if origin else ""
        is_job = again.startswith("ponderay submit ")
        remedy = f"`{again}` continues it on its cluster" if is_job else f"Run it on {known.host}"
        raise RefusedError(
            f"{task.work.label} was last trained on {known.host}, and its checkpoints are not in "
            f"{task.work.folder.parent}. {remedy}, or let PONDERAY_RUNS or PONDERAY_STORAGE name their place. --anew "
            "trains it here, from what is here."
        )

    def other_setting(self, task: Task) -> str:
        """Which other setting or corpus there are results of under the name of `task`, of whatever seeds."""
        condition = task.condition
        if condition is None:
            return ""
        known = self.by_name.get((condition.name, task.seed)) or self._any_by_name.get(condition.name)
        if known is None:
            return ""
        now = task.work.key
        if known.seed != task.seed:  # its key as it would be now, worked out once for each condition
            if condition.name not in self._keys_now:
                needed = self.factory.prerequisites(condition, known.seed)
                self._keys_now[condition.name] = self.factory.replicate(condition, known.seed, needed).work.key
            now = self._keys_now[condition.name]
        if known.key == now:
            return ""
        rule = f"{known.condition} seed {known.seed} is recorded with another setting or other data"
        what = self._changed_fields(condition)
        is_alike = condition.name in self.known.configs and known.data_fingerprint == task.fingerprint
        if is_alike and not what:  # the key has these two beside both
            rule = f"{known.condition} seed {known.seed} is recorded under another trainable or prerequisite"
            what = f"the trainable is {task.work.trainable} now"
        return f"{rule} ({what or f'key {known.key}, now {now}'})"

    def _other_ways(self) -> str:
        """What to do about results that the sweep as it is now does not give, beside keeping them in it."""
        name = self.factory.sweep.name
        again = "add --again to move them to an archive and train them anew"
        return f"{again}, or type `ponderay rename {name} NEW` to make them a study of their own."

    def changed_files(self, version: str, task: Task) -> str:
        """The files in which a recorded version of the code differs from today's; empty where that is not recorded."""
        if version not in self.code:
            return ""
        before, now = self.code[version]["files"], self.factory.files.get(task.work.code_version, {})
        differing = [name for name in dict.fromkeys((*now, *before)) if before.get(name) != now.get(name)]
        more = f" and {len(differing) - MOST_FILES} more" if len(differing) > MOST_FILES else ""
        return f" (changed: {', '.join(differing[:MOST_FILES])}{more})" if differing else ""

    def _changed_fields(self, condition: Condition) -> str:
        """The config fields that a condition had other values in, with both; empty where it had none."""
        before = self.known.configs.get(condition.name, {})
        now = param_texts(flatten(self.factory.sweep.config(condition, self.factory.sweep.seeds[0])))
        paths = [
            path for path in dict.fromkeys((*now, *before)) if path != "seed" and before.get(path) != now.get(path)
        ]
        said = [f"{path} was {before.get(path, 'not there')}, now {now.get(path, 'not there')}" for path in paths]
        return "; ".join(said[:MOST_FILES]) if before else ""


def end_of(task: Task, journal: JournalSummary, known: Replicate | None, retry: Collection[str] = ()) -> EarlierEnd:
    """How a replicate, whose folder holds `journal`, ended under earlier drivers, who recorded it as `known`.

    Args:
        retry: as of `EarlierResults`.
    """
    final = journal.final
    if known and known.state == "pruned":
        return EarlierEnd({"state": "pruned", "error": known.error}, is_recorded=True)
    is_in_store = is_recorded(known, journal, task)
    if is_in_store or journal.is_complete(task.evaluations):
        lacking = task.work.lacking({**(known.metrics if known else {}), **journal.metrics})
        if not lacking:  # also where another evaluation, no longer wanted, had failed
            return EarlierEnd({"state": "complete"}, is_in_store)
        # The objectives are others by now, or no worker had looked at them.
        version = journal.last_version or (known.code_version if known else task.work.code_version)
        known, final = None, {"state": "failed", "error": lacking, "code_version": version}
    if task.condition and task.condition.name in retry and final["state"] != "complete":
        return EarlierEnd(None, is_tried_again=True)
    if known and is_known_to_fail(known, final, task):
        return EarlierEnd({"state": "failed", "error": known.error}, is_recorded=True)
    return EarlierEnd(final if final["state"] == "failed" and is_settled(final, task.work) else None)


def is_recorded(known: Replicate | None, journal: JournalSummary, task: Task) -> bool:
    """Whether earlier drivers recorded `task` as complete with all evaluations, as its journal, where it has one, does.

    Drivers of earlier versions recorded that of one that was killed before it chose its best checkpoints: its journal
    has all evaluations and no end.
    """
    if known is None or known.state != "complete" or not task.evaluations <= known.evaluations:
        return False
    is_cut_off = journal.completed is None and task.evaluations <= journal.evaluations
    return not (task.evaluations and is_cut_off)


def is_known_to_fail(known: Replicate, final: Record, task: Task) -> bool:
    """Whether an earlier driver saw it fail by a fault of this very code, in something that is still asked for.

    What failed with its prerequisite is judged by the prerequisite again.
    """
    is_same_code = known.code_version == task.work.code_version
    is_own_fault = known.state == "failed" and not known.is_lost and not known.error.startswith("prerequisite ")
    fails_still = final["state"] == "new" or (final["state"] == "failed" and is_settled(final, task.work))
    return is_own_fault and is_same_code and fails_still


def finished_replicates(factory: TaskFactory, accept_code: bool) -> tuple[Replicate, ...]:
    """The replicates of the factory's sweep, where every one of them is recorded complete; else none.

    None, too, where only a driver can tell: of a search or seeds by need, with a remote store, or where a run of the
    sweep has not ended well, because then something may still have to be written.

    Raises:
        InputError: if the sweep's data are missing or broken.
    """
    sweep, settings = factory.sweep, factory.settings
    if sweep.search or sweep.sequential or settings.storage:
        return ()
    study = in_runs_folder(sweep.name, settings)
    if study is None or len(study.replicates) < sweep.num_conditions() * len(sweep.seeds):
        return ()
    factory = under_recorded_names(factory, study)
    tasks: dict[str, Task] = {}
    for condition in factory.sweep.conditions:
        for seed in factory.sweep.seeds:
            needed = factory.prerequisites(condition, seed)
            tasks |= {task.work.key: task for task in (*needed.values(), factory.replicate(condition, seed, needed))}
    earlier, complete = EarlierResults(study, factory, accept_code), []
    for task, journal in journals(list(tasks.values())):
        try:
            earlier.check(task, journal)
        except RefusedError:  # the driver says why
            return ()
        if task.condition is None:
            continue
        known = earlier.by_key.get(task.work.key)
        if known is None or not is_recorded(known, journal, task) or task.work.lacking(known.metrics):
            return ()
        if (task.condition.name, task.seed) not in earlier.by_name:  # its condition was renamed
            return ()
        complete.append(replace(known, condition=task.condition.name))
    is_mirrored = num_mirrored(sweep.name, settings) == len({one.key for one in study.replicates})
    return tuple(complete) if is_mirrored else ()  # the driver has still to write it into MLflow


def under_recorded_names(factory: TaskFactory, known: Study) -> TaskFactory:
    """A factory of the same sweep in which a condition that has run keeps its recorded name, whatever `--set` makes it.

    A replicate's key tells its condition, because names are no part of a key. So none is recorded under two names.

    Raises:
        InputError: if the sweep's data are missing or broken, or two conditions would have one name.
    """
    by_key, recorded = {replicate.key: replicate for replicate in known.replicates}, set(known.conditions)
    # Any recorded seed will do, and only those: the sweep may have other seeds now.
    seeds = sorted({replicate.seed for replicate in by_key.values()})
    names: dict[str, str] = {}
    for one in factory.sweep.conditions:
        if not one.settings or one.name in recorded:
            continue
        keys = (factory.replicate(one, seed, factory.prerequisites(one, seed)).work.key for seed in seeds)
        if known_key := next((key for key in keys if key in by_key), ""):
            names[one.name] = condition_name_of(by_key[known_key].condition)
    if all(new == old for new, old in names.items()):
        return factory
    sweep = factory.sweep
    conditions = tuple(replace(one, name=names.get(one.name, one.name)) for one in sweep.conditions)
    reference = names.get(sweep.reference or "", sweep.reference)
    return replace(factory, sweep=replace(sweep, conditions=conditions, reference=reference))


def check_retry(sweep: Sweep, settings: Settings, retry: Collection[str]) -> tuple[str, ...]:
    """The conditions that `retry` names, with or without their settings; each has a failed replicate to try again.

    Failures under seeds that the sweep does not have do not count.

    Raises:
        InputError: if the sweep has not run, or a condition is unknown or has none.
    """
    if isinstance(retry, str):
        raise InputError(f"`retry` must be a list of conditions, but got {retry!r}.")
    if not retry:
        return ()
    study = load_study(sweep.name, settings)
    of_sweep = [one for one in study.replicates if one.seed in sweep.seeds]
    failed = {one.condition for one in of_sweep if one.state == "failed"}
    stopped = {one.condition for one in of_sweep if one.state in ("stopped", "running")}  # in an earlier `--retry`
    known = [*dict.fromkeys((*(condition.name for condition in sweep.conditions), *study.conditions))]
    declared = {condition.declared: condition.name for condition in sweep.conditions}
    chosen = tuple(name if name in known else declared.get(name, name) for name in retry)
    for name in chosen:
        if name not in known:
            names = known_names(known, name)
            raise InputError(f"{sweep.name} has no condition {name!r} to try again; there are {names}.")
        if name not in failed | stopped and not stopped.intersection(chosen):
            others = known_names(one for one in known if one in failed) if failed else "no condition"
            raise InputError(f"{name!r} has no failed replicate to try again; {others} has.")
    return chosen
