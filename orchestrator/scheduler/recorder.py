"""Keeps the tracking store in step with a scheduler: condition runs, replicate runs, their metrics and ends.

Every write brings something up to date with the journals and can be made again without doubling anything; all of them
go through the queue, so a scheduler never waits for the store.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final

from orchestrator.journal.bucket import UnavailableError, ask_once
from orchestrator.journal.study_file import DeposedError, StudyFile, from_record, name_of, to_record
from orchestrator.journal.summary import summarise
from orchestrator.results.curves import Curve, mean_curves
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task import Task, folder_of, folder_of_replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking import checkout, declaration, names, notes
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.mlflow_internals import NOTE, PARENT
from orchestrator.tracking.names import stored_name
from orchestrator.tracking.pages import FILTERS, Ranked, changed_settings, view_tags
from orchestrator.tracking.replicate_tags import encode, encode_settings, setting_texts
from orchestrator.tracking.write_queue import WriteQueue
from search_spaces.find import find_sweep
from search_spaces.size import size_of
from search_spaces.sweep import Condition
from trainables.config import Config, content_hash, flatten
from trainables.errors import InputError

PREREQUISITES: Final = "prerequisites"
MOST_TOGETHER: Final = 200
"""So many writes reach a database in one transaction, which takes some tenths of a second."""

MOST_AWAY: Final = 2
"""So many requests to a bucket fail before a driver that stops asks for no more."""


class Recorder:
    """What a driver writes into MLflow about one sweep.

    Args:
        file: the study file, which this driver has taken over.
        lease: the token of the sweep's lease.
        tell: told once, where the study file cannot be written any more.
        lose: told why, where another driver has taken the study file over.

    Attributes:
        unfinished_conditions: names of those whose summary an earlier driver may not have written.
    """

    def __init__(
        self,
        tracking: Tracking,
        factory: TaskFactory,
        queue: WriteQueue,
        file: StudyFile,
        lease: str,
        tell: Callable[[str], None],
        lose: Callable[[str], None],
    ) -> None:
        self._tracking, self._factory, self._queue = tracking, factory, queue
        self._file, self._lease, self._tell, self._lose = file, lease, tell, lose
        self._experiment = tracking.open_experiment(factory.sweep.name)
        tracking.remove_orphans(self._experiment)
        self.unfinished_conditions = tracking.unfinished_conditions(self._experiment)
        self._run_ids: dict[str, str] = {}
        self._offsets: dict[str, int] = {}
        self._unclosed: set[str] = set()
        self._conditions: dict[str, str] = {}
        self._live: dict[str, Task] = {}
        self._started: set[str] = set()
        self._unwritten: dict[str, dict[int, Replicate]] = {}
        self._written: list[Replicate] = []
        self._lock = threading.Lock()
        self._is_told = False
        queue.do_together(self._together, MOST_TOGETHER if tracking.writes_together else 1)

    def describe(self) -> None:
        """Writes what is to run, once it was taken in: one that is refused changes nothing."""
        sweep = self._factory.sweep
        self._queue.put("description", self._describe_sweep)
        diff = checkout.git_diff(checkout.source_of(sweep.trainable))
        self._queue.put("diff", partial(self._tracking.store_diff, sweep.name, self._factory.attempt, diff))

    def note_known(self) -> None:
        """Gives the study file what it lacks of earlier drivers: it is new, or lost its last lines with the power.

        Before anything is taken in, which notes what the journals say by now; also for a sweep that is then refused,
        for with the lease of this driver the file counts again.
        """
        there = {name: from_record(record) for name, record in self._file.content.replicates.items()}
        for one in self.known.replicates:
            name = name_of(one)
            if name not in there or _progress(one) > _progress(there[name]):
                time_ms = self.known.updated_ms.get(one.condition, 0)
                self._note_replicate(one, self.known.settings.get(one.condition, {}), time_ms)
        self._note("sweep", self._factory.sweep.name, {"lease": self._lease})

    def _note_replicate(self, replicate: Replicate, settings: Mapping[str, str], time_ms: int = 0) -> None:
        self._note("condition", replicate.condition, {"settings": settings} if settings else {}, time_ms)
        record = to_record(replicate) | {"condition": replicate.condition, "seed": replicate.seed}
        if not replicate.run_id:  # MLflow's, which is known once its run is opened, and then stays
            del record["run_id"]
        self._note("replicate", name_of(replicate), record, time_ms)

    def _note(self, kind: str, name: str, said: Mapping[str, Any], time_ms: int = 0) -> None:
        try:
            self._file.put(kind, name, said, time_ms)
        except DeposedError as error:
            self._lose(f"{error}.")
        if self._file.fault and not self._is_told:
            self._is_told = True
            self._tell(f"{self._file.fault}. Commands read MLflow until the next `run` writes the study file again.")

    @cached_property
    def known(self) -> Study:
        """What earlier drivers of this sweep left."""
        return self._tracking.read_study(self._factory.sweep.name)

    @cached_property
    def _known_by_key(self) -> Mapping[str, Replicate]:
        return {replicate.key: replicate for replicate in self.known.replicates}

    def replicate(self, task: Task) -> Replicate:
        """The replicate of a task as it stands; one that this driver has not touched, as earlier drivers left it."""
        known = self._known_by_key.get(task.work.key)
        if task.state != "complete" and task.state != "failed":
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
                self._write_state(task.condition, self.replicate(task))

    def end(self, task: Task, traceback: str) -> None:
        """Closes the task's run, complete or failed, once all that its journal holds is in the store."""
        self._close_run(task, task.state, traceback)
        if task.condition is None:
            said = {"label": task.work.label, "state": task.state, "error": task.error}
            self._note("prerequisite", task.work.key, said | {"metrics": task.summary.metrics})
        if task.condition:
            self._write_state(task.condition, self.replicate(task))

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
                    self._write_state(task.condition, known)
            self._queue.put("stop", partial(self._tracking.stop_running, self._experiment))
            return self._queue.drain(timeout_s)
        finally:
            self._queue.close()
            self._file.close()

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """A block of writes that are all in the store at its end; where they are not, each is as it was before."""
        self._written.clear()
        before, unclosed = (dict(self._run_ids), dict(self._offsets), dict(self._conditions)), set(self._unclosed)
        try:
            with self._tracking.together():
                yield
        except BaseException:
            self._run_ids, self._offsets, self._conditions = before
            self._unclosed |= unclosed
            raise
        with self._lock:
            for replicate in self._written:
                states = self._unwritten[replicate.condition]
                if states.get(replicate.seed) is replicate:
                    del states[replicate.seed]

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
        self._file.close()
        return 0

    def _close_run(self, task: Task, state: str, traceback: str) -> None:
        self._live.pop(task.work.key, None)
        self._unclosed.add(task.work.key)
        self._put_run(task, state, traceback)

    def _put_run(self, task: Task, state: str, traceback: str) -> None:
        """Before the states that already wait to be written, each with the id of its run."""
        self._queue.put(("run", task.work.key), partial(self._bring_up, task, state, traceback), keeps_place=True)

    def _write_state(self, condition: Condition, replicate: Replicate) -> None:
        self._note_replicate(replicate, setting_texts(condition.settings))
        with self._lock:
            self._unwritten.setdefault(condition.name, {})[replicate.seed] = replicate
        self._queue.put(("condition", condition.name), partial(self._write_states, condition))

    def _bring_up(self, task: Task, state: str, traceback: str) -> None:
        key, folder = task.work.key, folder_of(task, must_answer=True)
        if key not in self._run_ids:
            self._run_ids[key] = self._open_run(task)
        run_id = self._run_ids[key]
        records, offset = folder.records_after(self._offsets.get(key, 0))
        self._tracking.log(run_id, records, self._end_tags(task) if state != "running" else {})
        self._offsets[key] = offset
        if state != "running":
            with folder.fetched_artifacts() as artifacts:
                self._tracking.finish(run_id, state, traceback, artifacts)
            del self._run_ids[key]
            self._unclosed.discard(key)

    def _open_run(self, task: Task) -> str:
        tags = self._tags(task)
        if task.condition is None:
            experiment, kind = self._tracking.open_experiment(PREREQUISITES), "prerequisite"
        else:
            experiment, kind = self._experiment, "replicate"
            tags |= self._place(task.seed, task.condition)
        run_id = self._tracking.open_run(experiment, kind, task.work.key, task.work.label, tags)
        self._tracking.log(run_id, params=flatten(task.work.typed_config()))
        return run_id

    def _place(self, seed: int, condition: Condition) -> dict[str, str]:
        parent = self._condition_run(condition)
        note = notes.of_replicate(seed, condition.name, self._factory.sweep.name, self._experiment, parent)
        return {PARENT: parent, NOTE: note}

    def _write_states(self, condition: Condition) -> None:
        """Those whose runs are opened and, where they have ended, closed: a state never says what its run lacks.

        The others were put after this write had begun, and with them another one behind their runs.
        """
        run_id = self._condition_run(condition)
        with self._lock:
            unwritten = [one for one in self._unwritten[condition.name].values() if one.key not in self._unclosed]
        tags: dict[str, str] = {}
        written = []
        for replicate in unwritten:
            if run_of_its_own := self._run_of(replicate):
                self._note("replicate", name_of(replicate), {"run_id": run_of_its_own})
                tags |= encode(replace(replicate, run_id=run_of_its_own))
                written.append(replicate)
        self._tracking.write_replicates(self._experiment, run_id, tags)
        self._written += written

    def _end_condition(self, condition: Condition, replicates: Sequence[Replicate], decision: str) -> None:
        run_id = self._condition_run(condition)
        sweep, experiment = self._factory.sweep, self._experiment
        listed = [replace(one, run_id=self._run_of(one)) for one in replicates]
        note = notes.of_condition(sweep.description, experiment, run_id, listed)
        tags = {NOTE: note} | ({names.DECISION: decision} if decision else {})
        self._tracking.log(run_id, tags=tags)
        self._tracking.write_curves(run_id, self._curves(condition, replicates))
        self._tracking.summarise_condition(run_id, replicates)
        del self._conditions[condition.name]

    def _run_of(self, replicate: Replicate) -> str:
        return self._tracking.find_run(self._experiment, "replicate", replicate.key) or replicate.run_id

    def _curves(self, condition: Condition, replicates: Sequence[Replicate]) -> tuple[Curve, ...]:
        """Over the complete replicates; none where one has no journal here, because it ran on storage of its own."""
        settings, sweep = self._factory.settings, self._factory.sweep.name
        keys = [replicate.key for replicate in replicates if replicate.state == "complete"]
        try:
            journals = [folder_of_replicate(settings, sweep, key).records() for key in keys]
        except UnavailableError:  # written once the bucket is back
            raise
        except (OSError, ValueError):
            return ()
        return mean_curves(condition.name, journals) if all(journals) else ()

    def _describe_sweep(self) -> None:
        """Writes the experiment's description and saved views."""
        factory, sweep = self._factory, self._factory.sweep
        condition = sweep.conditions[0] if sweep.conditions else Condition("base")
        end = factory.first_evaluation(condition)
        ranked = [Ranked(stored_name(one.metric + end), one.direction == "minimize") for one in sweep.objectives]
        words = zip(("error", "cost"), ranked, strict=False)
        limits = {word: one.metric for word, one in words if one.is_smaller_better}
        filters = [one.filled(limits) for one in FILTERS]
        note = notes.of_experiment(sweep.name, sweep.description, self._experiment, filters)
        views = view_tags(ranked, changed_settings(sweep))
        self._tracking.describe(self._experiment, views | {NOTE: note} | self._declaration())

    def _declaration(self) -> dict[str, str]:
        """Of the whole sweep, also where it is cut down to some conditions or to one replicate."""
        sweep = self._factory.sweep
        if sweep.conditions and sweep.declared_at and not sweep.reference:  # a part with its reference records the same
            whole = find_sweep(sweep.declared_at, size_of(sweep.name) == "smoke")
            named, all_named = ({one.declared for one in part.conditions} for part in (sweep, whole))
            if named < all_named or len(sweep.seeds) == len(sweep.conditions) == 1:
                sweep = whole
        return {names.DECLARATION: declaration.text_of(sweep)}

    def _condition_run(self, condition: Condition) -> str:
        if condition.name not in self._conditions:
            sweep = self._factory.sweep
            config: Config = sweep.config(condition, sweep.seeds[0])
            key = content_hash(sweep.name, condition.name, config)
            tags = {
                names.SWEEP: sweep.name,
                names.CONDITION: condition.name,
                NOTE: notes.opening(sweep.description),
            }
            run_id = self._tracking.open_run(self._experiment, "condition", key, condition.name, tags)
            self._tracking.log(run_id, tags=encode_settings(condition.settings), params=flatten(config))
            self._conditions[condition.name] = run_id
        return self._conditions[condition.name]

    def _tags(self, task: Task) -> dict[str, str]:
        return {
            names.SWEEP: self._factory.sweep.name,
            names.CONDITION: task.condition.name if task.condition else "",
            names.SEED: str(task.seed),
            names.CODE_VERSION: task.work.code_version,
            names.DATA_FINGERPRINT: task.fingerprint,
            names.GIT_COMMIT: checkout.git_commit(checkout.source_of(task.work.trainable)),
            names.PACKAGES: checkout.package_versions(task.work.trainable),
            names.COMMAND: checkout.command(),
        }

    def _end_tags(self, task: Task) -> dict[str, str]:
        known = task.summary
        return {
            names.ERROR: task.error[:500],
            names.LOST: str(task.is_lost).lower(),
            names.TRIES: str(task.tries),
            names.EVALUATIONS: json.dumps(sorted(known.evaluations)),
            names.CODE_VERSION: task.code_version,
            names.HOST: known.host,
            names.DEVICE: known.device,
            names.DURATION_S: f"{known.duration_s:.1f}",
            names.PEAK_HOST_BYTES: str(known.peak_host_bytes),
            names.PEAK_GPU_BYTES: str(known.peak_gpu_bytes),
            names.SIZE_BYTES: str(known.size_bytes),
        }


def _progress(replicate: Replicate) -> tuple[bool, bool, int]:
    """How far a record of a replicate has come: of two of one replicate the further one is newer."""
    is_complete = replicate.state == "complete"
    return is_complete, is_complete or replicate.state == "failed", len(replicate.evaluations)
