"""Keeps the tracking store in step with a scheduler: condition runs, replicate runs, their metrics and ends.

Every write brings something up to date with the journals and can be made again without doubling anything; all of them
go through the queue, so a scheduler never waits for the store.
"""

import json
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from orchestrator.journal.bucket import UnavailableError, ask_once
from orchestrator.journal.study_file import name_of
from orchestrator.journal.summary import JournalSummary, summarise
from orchestrator.results.curves import Curve, mean_curves
from orchestrator.results.study import Origin, Replicate, Study
from orchestrator.scheduler.study_notes import NOTHING, StudyNotes, joined, progress
from orchestrator.scheduler.task import Task, folder_of, folder_of_replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking import checkout, declaration, names, notes
from orchestrator.tracking.mlflow_internals import NOTE, PARENT
from orchestrator.tracking.names import stored_name
from orchestrator.tracking.pages import FILTERS, Ranked, changed_settings, view_tags
from orchestrator.tracking.replicate_tags import encode, encode_settings
from orchestrator.tracking.write_queue import WriteQueue
from search_spaces.find import find_sweep
from search_spaces.size import size_of
from search_spaces.sweep import Condition
from trainables.config import Config, content_hash, flatten
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking

PREREQUISITES: Final = "prerequisites"
UNKNOWN: Final = Origin("", "", "")
MOST_AWAY: Final = 2
"""So many requests to a bucket fail before a driver that stops asks for no more."""


class Recorder:
    """What a driver writes into MLflow about one sweep.

    Args:
        opened: gives the tracking store, once it is open.
        study: the study file, which goes before what is written into MLflow.
        tell: told what MLflow lacks.
        is_new: whether the store has nothing yet; then nothing waits for it.
        of_job: the command that sends this process again; empty where it is no job.

    Attributes:
        unfinished_conditions: names of those whose summary an earlier driver may not have written.
    """

    def __init__(
        self,
        opened: Callable[[], "Tracking"],
        factory: TaskFactory,
        queue: WriteQueue,
        study: StudyNotes,
        tell: Callable[[str], None],
        is_new: bool = False,
        of_job: str = "",
    ) -> None:
        self._opened, self._factory, self._queue = opened, factory, queue
        self._study, self._tell, self._of_job = study, tell, of_job
        self.unfinished_conditions, self._deleted = set[str](), set[str]()
        self._mirrored = Study(factory.sweep.name, ())
        if not is_new:
            opened().remove_orphans(self._experiment)
            self.unfinished_conditions = opened().unfinished_conditions(self._experiment)
            self._deleted = opened().deleted_replicates(self._experiment)
            self._mirrored = opened().read_study(factory.sweep.name)
            if not all(one.key in study.recorded.origins for one in self._mirrored.replicates):
                origins = opened().read_origins(factory.sweep.name, is_deleted=True) if self._deleted else {}
                origins = {**origins, **opened().read_origins(factory.sweep.name)}
                self._mirrored = replace(self._mirrored, origins=origins)
        self._run_ids: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._unclosed: set[str] = set()
        self._conditions: dict[str, str] = {}
        self._live: dict[str, Task] = {}
        self._started: set[str] = set()
        self._unwritten: dict[str, dict[int, Replicate]] = {}
        self._lock = threading.Lock()
        self._num_mirrored = 0

    def describe(self) -> None:
        """Writes what is to run, once it was taken in: one that is refused changes nothing."""
        sweep = self._factory.sweep
        if self._num_mirrored:
            num_lacking, num_known = self._num_mirrored, len(self.known.replicates)
            self._tell(
                f"MLflow lacks {num_lacking:,} of {num_known:,} replicates; they are written again from what is here."
            )
        text = self._declaration()
        self._study.note("sweep", sweep.name, {"declaration": text})
        for version, files in self._factory.files.items():
            self._study.note("code", version, {"files": files})
        self._queue.put("description", partial(self._describe_sweep, text))
        diff = checkout.git_diff(checkout.source_of(sweep.trainable))
        self._queue.put("diff", lambda: self._tracking.store_diff(sweep.name, self._factory.attempt, diff))

    @cached_property
    def known(self) -> Study:
        """What earlier drivers left: as the study file has it, and what only MLflow has, for a line may be lost."""
        return joined(self._study.recorded, self._mirrored)

    @property
    def _tracking(self) -> "Tracking":
        """For jobs of the queue: the store may still be in the making."""
        return self._opened()

    @cached_property
    def _experiment(self) -> str:
        sweep = self._factory.sweep
        for lesser in (names.REGISTRIES, PREREQUISITES) if sweep.prerequisites else (names.REGISTRIES,):
            self._tracking.open_experiment(lesser)  # before: MLflow's list begins with the newest
        return self._tracking.open_experiment(sweep.name)

    @property
    def mirrored(self) -> Sequence[Replicate]:
        """The replicates as MLflow had them when this driver began, but those whose run a user has deleted."""
        return [one for one in self._mirrored.replicates if one.key not in self._deleted]

    @cached_property
    def lacking(self) -> Collection[str]:
        """Keys of the replicates that have ended, and of which MLflow lacks something that was there to be written."""
        there = {name_of(one): progress(one) for one in self.mirrored}
        return {
            one.key
            for one in self.known.replicates
            if one.state in ("complete", "failed", "pruned") and there.get(name_of(one), NOTHING) < progress(one)
        }

    @cached_property
    def _known_by_key(self) -> Mapping[str, Replicate]:
        return {replicate.key: replicate for replicate in self.known.replicates}

    @cached_property
    def _known_names(self) -> Collection[str]:
        return {name_of(replicate) for replicate in self.known.replicates}

    def replicate(self, task: Task) -> Replicate:
        """The replicate of a task as it stands; one that this driver has not touched, as earlier drivers left it."""
        known = self._known_by_key.get(task.work.key)
        if known and task.condition:  # equal draws of a search have one key
            known = replace(known, condition=task.condition.name)
        if task.state not in ("complete", "failed", "pruned"):
            return task.replicate("running", known.metrics if known else {})
        return known if known and not task.is_touched else task.replicate(task.state, known.metrics if known else {})

    def begin(self, task: Task) -> None:
        """Takes in a task that is handed out; nothing is written before its worker has said that it started."""
        self._live[task.work.key] = task

    def changed(self, task: Task) -> None:
        """Logs what is new in its journal; first opens the task's run, with its condition's as parent."""
        self._put_run(task, "running", "")
        if task.work.key not in self._started:
            self._started.add(task.work.key)
            if task.condition:
                self._write_state(task, task.condition, self.replicate(task))

    def end(self, task: Task, traceback: str) -> None:
        """Closes the task's run, complete, failed or pruned, once all that its journal holds is in the store."""
        self._close_run(task, task.state, traceback)
        if task.condition:
            replicate = self.replicate(task)
            self._study.note_curves(replicate, task.summary)
            self._write_state(task, task.condition, replicate)

    def mirror_again(self, task: Task, journal: JournalSummary) -> None:
        """Writes what MLflow lacks of a replicate that ended before this driver; its run, where its journal is here.

        Work that was done under the name of another condition, as of an equal draw, is recorded under this one too.
        """
        assert task.condition is not None
        known = replace(self._known_by_key[task.work.key], condition=task.condition.name)
        self._study.note_curves(known, journal)
        is_lacking = task.work.key in self.lacking
        if is_lacking:
            self._num_mirrored += 1
            if task.state in (journal.final["state"], "pruned"):  # no journal says that it was pruned
                task.summary = journal
                self._close_run(task, task.state, journal.final.get("traceback", ""))
        if is_lacking or name_of(known) not in self._known_names:
            self._write_state(task, task.condition, known)
            self.unfinished_conditions.add(task.condition.name)

    def end_condition(self, condition: Condition, replicates: Sequence[Replicate], decision: str) -> None:
        """Writes the condition's means, over earlier drivers' replicates too, and closes its run."""
        ours = {replicate.key for replicate in replicates}
        known = self.known.of(condition.name) if condition.name in self.known.conditions else ()
        others = [one for one in known if one.key not in ours]
        write = partial(self._end_condition, condition, [*replicates, *others], decision)
        self._queue.put(("end", condition.name), write)

    def close(self, timeout_s: float) -> int:
        """Leaves nothing RUNNING; returns how many things could not be written within `timeout_s`."""
        try:
            self._hear_last(list(self._live.values()))
            for task in [one for key, one in self._live.items() if key in self._started]:
                self._close_run(task, "stopped", "")
                if task.condition:
                    known = self._known_by_key.get(task.work.key)
                    if known is None or known.state != "complete":  # else it has all that it had, but this evaluation
                        known = task.replicate("stopped", {})
                    self._write_state(task, task.condition, replace(known, condition=task.condition.name))
            self._queue.put("stop", lambda: self._tracking.stop_running(self._experiment))
            num_unwritten = self._queue.drain(timeout_s)
            self._study.put_copy()  # with what was noted as MLflow got it
            return num_unwritten or self._queue.drain(timeout_s)
        finally:
            self._queue.close()
            self._study.close()

    def _hear_last(self, live: Sequence[Task]) -> None:
        """What their journals say; where that cannot be read now, what was last heard stands."""
        if live and self._factory.settings.storage:
            ask_once(self._factory.settings.storage)
        num_away = 0
        for task in live:
            try:
                task.summary = summarise(folder_of(task).records())
            except (OSError, InputError) as error:
                num_away += isinstance(error, UnavailableError)
            if num_away == MOST_AWAY:
                return

    def give_up(self) -> int:
        """Writes no more, because another driver now does."""
        self._queue.close()
        self._study.close()
        return 0

    def _close_run(self, task: Task, state: str, traceback: str) -> None:
        self._live.pop(task.work.key, None)
        self._unclosed.add(task.work.key)
        self._put_run(task, state, traceback)

    def _put_run(self, task: Task, state: str, traceback: str) -> None:
        """Before the states that already wait to be written, each with the id of its run."""
        self._queue.put(("run", task.work.key), partial(self._bring_up, task, state, traceback), keeps_place=True)

    def _write_state(self, task: Task, condition: Condition, replicate: Replicate) -> None:
        self._study.note_state(condition, replicate, self._origin(task), self.known)
        with self._lock:
            self._unwritten.setdefault(condition.name, {})[replicate.seed] = replicate
        self._queue.put(("condition", condition.name), partial(self._write_states, condition))

    def _bring_up(self, task: Task, state: str, traceback: str) -> None:
        key, folder = task.work.key, folder_of(task, must_answer=True)
        tags = {} if state == "running" else self._end_tags(task) | {names.STATE: state}
        if key not in self._run_ids:
            first = {
                names.SWEEP: self._factory.sweep.name,
                names.CONDITION: task.condition.name if task.condition else "",
                names.SEED: str(task.seed),
                names.CODE_VERSION: task.work.code_version,
                names.DATA_FINGERPRINT: task.fingerprint,
            }
            first |= dict(zip(names.ORIGIN, astuple(self._origin(task)), strict=True)) | tags
            if task.condition is None:
                experiment, kind = self._tracking.open_experiment(PREREQUISITES), "prerequisite"
            else:
                sweep, experiment, kind = self._factory.sweep.name, self._experiment, "replicate"
                parent = self._condition_run(task.condition)
                first |= {PARENT: parent}
                first |= {NOTE: notes.of_replicate(task.seed, task.condition.name, sweep, experiment, parent)}
            self._run_ids[key] = self._tracking.open_run(experiment, kind, key, task.work.label, first)
        run_id = self._run_ids[key]
        params = {} if key in self._offsets else flatten(task.work.typed_config())
        records, offset = folder.records_after(self._offsets.get(key, 0))
        if state == "running":
            self._tracking.log(run_id, records, params=params)
        else:
            with folder.fetched_artifacts() as artifacts:
                self._tracking.finish(run_id, state, records, tags, params, traceback, artifacts)
            del self._run_ids[key]
            self._unclosed.discard(key)
        self._offsets[key] = offset

    def _write_states(self, condition: Condition) -> None:
        """Writes states of replicates whose runs are opened, or closed: a state never says what its run lacks.

        The others were put after this write had begun, and with them another one behind their runs.
        """
        run_id = self._condition_run(condition)
        with self._lock:
            unwritten = [one for one in self._unwritten[condition.name].values() if one.key not in self._unclosed]
        tags: dict[str, str] = {}
        written = []
        for replicate in unwritten:
            if run_of_its_own := self._run_of(replicate):
                self._study.note("replicate", name_of(replicate), {"run_id": run_of_its_own})
                tags |= encode(replace(replicate, run_id=run_of_its_own))
                written.append(replicate)
        self._tracking.write_replicates(self._experiment, run_id, tags)
        self._study.note_mirrored(condition.name, written)
        with self._lock:
            states = self._unwritten[condition.name]
            for replicate in written:
                if states.get(replicate.seed) is replicate:
                    del states[replicate.seed]

    def _end_condition(self, condition: Condition, replicates: Sequence[Replicate], decision: str) -> None:
        run_id = self._condition_run(condition)
        sweep, experiment = self._factory.sweep, self._experiment
        listed = [replace(one, run_id=self._run_of(one)) for one in replicates]
        note = notes.of_condition(sweep.description, experiment, run_id, listed)
        tags = {NOTE: note} | ({names.DECISION: decision} if decision else {})
        self._tracking.end_condition(run_id, replicates, self._curves(condition, replicates), tags)
        del self._conditions[condition.name]

    def _run_of(self, replicate: Replicate) -> str:
        return self._tracking.find_run(self._experiment, "replicate", replicate.key) or replicate.run_id

    def _curves(self, condition: Condition, replicates: Sequence[Replicate]) -> tuple[Curve, ...]:
        """Over the complete replicates; none where one has no journal here, because it ran on storage of its own."""
        settings, sweep = self._factory.settings, self._factory.sweep.name
        keys = [replicate.key for replicate in replicates if replicate.state == "complete"]
        try:
            journals = [summarise(folder_of_replicate(settings, sweep, key).records()).histories for key in keys]
        except UnavailableError:  # written once the bucket is back
            raise
        except (OSError, ValueError):
            return ()
        return mean_curves(condition.name, journals) if all(journals) else ()

    def _describe_sweep(self, declared: str) -> None:
        """Writes the experiment's description, saved views and what the sweep declares."""
        factory, sweep = self._factory, self._factory.sweep
        condition = sweep.conditions[0] if sweep.conditions else Condition("base")
        end = factory.first_evaluation(condition)
        ranked = [Ranked(stored_name(one.metric + end), one.direction == "minimize") for one in sweep.objectives]
        words = zip(("error", "cost"), ranked, strict=False)
        limits = {word: one.metric for word, one in words if one.is_smaller_better}
        filters = [one.filled(limits) for one in FILTERS]
        note = notes.of_experiment(sweep.name, sweep.description, self._experiment, filters)
        views = view_tags(ranked, changed_settings(sweep))
        self._tracking.describe(self._experiment, views | {NOTE: note, names.DECLARATION: declared})

    def _declaration(self) -> str:
        """The declaration of the whole sweep, also where it is cut down to some conditions or to one replicate.

        A grid beside results of the sweep's reference is still held against it.
        """
        sweep = self._factory.sweep
        if sweep.conditions and sweep.declared_at and not sweep.reference:  # a part with its reference records the same
            whole = find_sweep(sweep.declared_at, size_of(sweep.name) == "smoke")
            named, all_named = ({one.declared for one in part.conditions} for part in (sweep, whole))
            if named < all_named or len(sweep.seeds) == len(sweep.conditions) == 1:
                sweep = whole
            elif whole.reference in self.known.conditions:
                asked = whole.condition(whole.reference)
                sweep = replace(sweep, conditions=(*sweep.conditions, asked), reference=asked.name)
        return declaration.text_of(sweep)

    def _condition_run(self, condition: Condition) -> str:
        if condition.name not in self._conditions:
            sweep = self._factory.sweep
            config: Config = sweep.config(condition, self._factory.first_seed)
            key = content_hash(self._factory.keyed_as, condition.name, config)
            note = notes.opening(sweep.description)
            tags = {names.SWEEP: sweep.name, names.CONDITION: condition.name, NOTE: note}
            settings = encode_settings(condition.settings)
            run_id = self._tracking.open_run(self._experiment, "condition", key, condition.name, tags | settings)
            self._tracking.log(run_id, tags=settings, params=flatten(config))
            self._conditions[condition.name] = run_id
        return self._conditions[condition.name]

    def _origin(self, task: Task) -> Origin:
        """What a task was first begun with; nothing is said of one that was begun before and has no record of it."""
        if known := self.known.origins.get(task.work.key):
            return known
        if task.work.key in self._known_by_key:
            return UNKNOWN
        trainable = task.work.trainable
        commit = checkout.git_commit(checkout.source_of(trainable))
        return Origin(commit, checkout.package_versions(trainable), self._of_job or checkout.command())

    def _end_tags(self, task: Task) -> dict[str, str]:
        known = task.summary
        return {
            names.ERROR: task.error,
            names.LOST: str(task.is_lost).lower(),
            **({names.TRIES: str(task.tries)} if task.tries else {}),  # none in this session: as it was
            names.EVALUATIONS: json.dumps(sorted(known.evaluations)),
            names.CODE_VERSION: task.code_version,
            names.HOST: known.host,
            names.DEVICE: known.device,
            names.DURATION_S: f"{known.duration_s:.1f}",
            names.PEAK_HOST_BYTES: str(known.peak_host_bytes),
            names.PEAK_GPU_BYTES: str(known.peak_gpu_bytes),
            names.SIZE_BYTES: str(known.size_bytes),
        }
