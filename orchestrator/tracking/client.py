"""MLflow: one experiment a sweep, a run a condition, a nested run a replicate.

A run is found by its key through a registry (`registry`), never by tags.
"""

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from alembic.util import CommandError
from mlflow import MlflowClient
from mlflow.entities import Experiment, Metric, Run
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.environment.settings import Settings
from orchestrator.journal.file_names import is_partial
from orchestrator.journal.lines import Record
from orchestrator.machine.clock import now_ms
from orchestrator.results.curves import Curve
from orchestrator.results.study import Origin, Replicate, Study
from orchestrator.tracking import condition_metrics, names
from orchestrator.tracking.lease_holder import Holder, find_holder
from orchestrator.tracking.mlflow_reader import RecordedSweep, num_finished, read_origins, read_study, recorded_sweeps
from orchestrator.tracking.mlflow_runs import MlflowRuns
from orchestrator.tracking.mlflow_writer import PAGE, RUNNING, KeyedRuns, all_pages, matching, metrics_of, write
from orchestrator.tracking.moved_folder import follow_folder
from orchestrator.tracking.names import plain, stored_name
from orchestrator.tracking.pages import CONDITIONS
from orchestrator.tracking.registry import Registry, find_registry, open_experiment, open_registry
from orchestrator.tracking.store import (
    address,
    check_address,
    check_file,
    has_store,
    made_once,
    make_file,
    not_run,
    reason_of,
    sqlite_file,
    store_kind,
    unusable,
)
from orchestrator.tracking.stored_files import FIGURES
from search_spaces.known_names import known_names
from search_spaces.names import path_part
from search_spaces.redaction import redacted_uri
from trainables.errors import DataWarning, InputError

ENDED: Final = {"complete": "FINISHED", "failed": "FAILED", "stopped": "KILLED", "pruned": "KILLED"}
CLIENT: Final = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Whoever writes tries again and says so; MLflow is silent for minutes, and prints lines of runs that end, and bars."""

REPORT: Final = "report"
"""The folder of a report among the files of the sweep's own run."""

MOST_NAMED: Final = 12
"""Experiments in a message."""

MOST_EXPERIMENTS: Final = 1000
"""Among which the nearest name is looked for."""

NO_PLACE: Final = (PermissionError, NotADirectoryError, FileNotFoundError)
"""Errors of files that another try would not mend."""


class Tracking:
    """The tracking store, opened by the driver and by commands that read or store an answer."""

    def __init__(self, settings: Settings) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # whoever writes says it in one line
        logging.getLogger("alembic").setLevel(logging.WARNING)
        for name, value in CLIENT.items():
            os.environ.setdefault(name, value)
        self._settings = settings
        self._registries: dict[str, Registry] = {}
        self._revision = 0
        check_address(settings.tracking_uri)
        uri = address(settings.tracking_uri)
        check_file(settings.tracking_uri)
        try:
            # Where a link leads, so that the link stays.
            new = None if has_store(uri) or "?" in uri else sqlite_file(uri).resolve()
            with made_once(uri, (new.parent if new else settings.runs) / "mlflow.lock"):
                if new and not has_store(uri):
                    make_file(new)
                follow_folder(settings)
                self._client = MlflowClient(tracking_uri=uri)
                self._client.search_experiments(max_results=1)
        except (MlflowException, SQLAlchemyError, ImportError, ValueError, CommandError) as error:  # or no driver
            raise InputError(unusable(settings.tracking_uri, error)) from None
        self._runs = KeyedRuns(self._client, self.registry)

    def registry(self, name: str) -> Registry:
        """The one registry called `name`."""
        if name not in self._registries:
            self._registries[name] = open_registry(self._client, name)
        return self._registries[name]

    def open_experiment(self, name: str) -> str:
        """The id of the experiment `name`, made where it is not there."""
        has_server = store_kind(self._settings.tracking_uri) in ("http", "https")
        location = None if has_server else (self._settings.artifacts / path_part(name)).as_uri()
        return open_experiment(self._client, name, location)

    def find_experiment(self, name: str) -> Experiment:
        """The experiment of a sweep that has run before.

        Raises:
            InputError: if it has not.
        """
        found = self._client.get_experiment_by_name(name)
        if found is None:
            raise not_run(name, self._settings.tracking_uri, [one.name for one in self.sweeps()])
        return found

    def runs_of(self, experiment: str) -> Iterator[Run]:
        """Every run of an experiment, whoever logged it, the oldest first.

        Raises:
            InputError: if there is no such experiment, or the store does not answer.
        """
        order = ["attributes.start_time ASC"]
        try:
            found = self._client.get_experiment_by_name(experiment)
            if found is None:
                every = self._client.search_experiments(max_results=MOST_EXPERIMENTS)
                known = known_names((one.name for one in every), experiment, MOST_NAMED)
                raise InputError(f"There is no experiment {experiment!r} in the store; there are {known}.")
            yield from all_pages(
                lambda token: self._client.search_runs(
                    [found.experiment_id], max_results=PAGE, order_by=order, page_token=token
                )
            )
        except MlflowException as error:
            reason = reason_of(error, self._settings.tracking_uri)
            raise InputError(f"The runs of {experiment!r} cannot be read: {reason}") from None

    def describe(self, experiment_id: str, tags: Mapping[str, str]) -> None:
        """Sets those tags of an experiment that are not so yet."""
        known = self._client.get_experiment(experiment_id).tags
        for name, value in tags.items():
            if known.get(name) != plain(value):
                self._client.set_experiment_tag(experiment_id, name, plain(value))

    def sweeps(self) -> tuple[RecordedSweep, ...]:
        """The sweeps with a condition's run, by name."""
        return recorded_sweeps(self._client)

    def open_run(self, experiment_id: str, kind: str, key: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the one run with this kind and key, set RUNNING; made, with `tags`, where it is not there."""
        return self._runs.open(experiment_id, kind, key, name, tags)

    def find_run(self, experiment_id: str, kind: str, key: str) -> str:
        """The id of the run with this kind and key; empty where there is none."""
        return self._runs.find(experiment_id, kind, key)

    def log(
        self,
        run_id: str,
        records: Sequence[Record] = (),
        tags: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """Adds the metrics of journal records, tags, and parameters not logged before; twice is as good as once.

        A record's time and step are its own. Parameters stay as they were first logged: those that may differ, such as
        paths, are not part of the key.
        """
        self._write(run_id, metrics_of(records), tags or {}, params)

    def _write(
        self,
        run_id: str,
        metrics: Sequence[Metric],
        tags: Mapping[str, str],
        params: Mapping[str, Any] | None = None,
    ) -> None:
        """What is new of it: a run that was just made has its first tags already, and no parameters."""
        made_with = self._runs.made_with(run_id)
        if params and made_with is None:
            logged = self._client.get_run(run_id).data.params
            params = {path: value for path, value in params.items() if path not in logged}
        tags = {name: text for name, value in tags.items() if (made_with or {}).get(name) != (text := plain(value))}
        write(self._client, run_id, metrics, tags, params or {})

    def finish(
        self,
        run_id: str,
        state: str,
        records: Sequence[Record] = (),
        tags: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        traceback: str = "",
        artifacts: Path | None = None,
    ) -> None:
        """Ends a run, in whatever state, with the last of what `log` takes; a traceback becomes an artifact.

        Where the place of the files cannot be written, that is warned of, and the numbers are stored without them.
        """
        try:
            files: list[Path] = []
            if artifacts and artifacts.is_dir() and not artifacts.is_symlink():
                # Without links: MLflow would store what they lead to, such as a key of this user's.
                every = sorted(artifacts.iterdir())
                files = [file for file in every if not (file.is_symlink() or is_partial(file.name))]
            if traceback:
                self._client.log_text(run_id, plain(traceback), "traceback.txt")
            for file in files:
                self._client.log_artifact(run_id, str(file))
        except NO_PLACE as error:
            rule = f"Files of run {run_id} cannot be stored in MLflow ({error})"
            remedy = "They stay in the replicate's folder. Runs that were moved keep the old place of their files."
            warnings.warn(f"{rule}. {remedy}", DataWarning, stacklevel=2)
        self._end(run_id, state, metrics_of(records), tags or {}, params)

    def _end(
        self,
        run_id: str,
        state: str,
        metrics: Sequence[Metric],
        tags: Mapping[str, str],
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._write(run_id, metrics, {**tags, names.STATE: state}, params)
        self._client.set_terminated(run_id, ENDED[state])

    def write_replicates(self, experiment_id: str, run_id: str, tags: Mapping[str, str]) -> None:
        """Writes states of replicates into their condition's run, and then that this was done: readers look for it."""
        self.log(run_id, tags=tags)
        last = self._revision or MlflowRuns(self._client, experiment_id).last_update_ms()
        revision = self._revision = max(last + 1, now_ms())
        self._client.log_metric(run_id, names.UPDATED, revision, revision, 0)  # MLflow takes the latest by its time

    def end_condition(
        self, run_id: str, replicates: Sequence[Replicate], curves: Sequence[Curve], tags: Mapping[str, str]
    ) -> None:
        """Writes what its replicates come to, as `condition_metrics` says, and ends the condition's run."""
        states = {replicate.state for replicate in replicates}
        known = self._client.get_run(run_id).data.metrics if states - {"complete"} else ()
        metrics = [*condition_metrics.of_curves(curves), *condition_metrics.summaries(replicates, now_ms(), known)]
        state = "pruned" if "pruned" in states else "complete" if states <= {"complete"} else "failed"
        self._end(run_id, state, metrics, tags)

    def runs(self, sweep: str) -> MlflowRuns:
        """The runs of the experiment of a sweep.

        Raises:
            InputError: if the sweep has not run.
        """
        return MlflowRuns(self._client, str(self.find_experiment(sweep).experiment_id))

    def sweep_run(self, sweep: str) -> str:
        """The sweep's own run, named as the sweep, for what belongs to no condition."""
        experiment_id = self.open_experiment(sweep)
        return self.open_run(experiment_id, "sweep", sweep, sweep, {names.SWEEP: sweep})

    def store_front(
        self, sweep: str, files: Iterable[Path], metrics: Mapping[str, float], tags: Mapping[str, str]
    ) -> None:
        """Stores a front on the sweep's own run: its figures, its numbers, and what they rest on."""
        self._store(sweep, FIGURES, files, metrics, tags)

    def store_figures(self, sweep: str, files: Iterable[Path]) -> None:
        """Stores figures on the sweep's own run."""
        self._store(sweep, FIGURES, files, {}, {})

    def store_report(self, sweep: str, files: Iterable[Path]) -> None:
        """Stores a report on the sweep's own run."""
        self._store(sweep, REPORT, files, {}, {})

    def _store(
        self, sweep: str, folder: str, files: Iterable[Path], metrics: Mapping[str, float], tags: Mapping[str, str]
    ) -> None:
        """Raises InputError where the store or the files' place refuses it, such as from somebody who may only read."""
        try:
            run_id, time_ms = self.sweep_run(sweep), now_ms()
            logged = [Metric(stored_name(name), value, time_ms, 0) for name, value in metrics.items()]
            try:
                for file in files:
                    self._client.log_artifact(run_id, str(file), folder)
            except BaseException:
                self._end(run_id, "complete", (), {})  # without numbers of figures that are not there
                raise
            self._end(run_id, "complete", logged, tags)
        except MlflowException as error:
            raise InputError(unusable(self._settings.tracking_uri, error)) from None
        except OSError as error:
            uri = self._settings.tracking_uri
            place = redacted_uri(uri) if store_kind(uri) in ("http", "https") else self._settings.artifacts
            raise InputError(f"{place} must be a place that can be written to, but: {error}.") from None

    def store_copy(self, sweep: str, folder: Path, tags: Mapping[str, str]) -> None:
        """Stores copies of study file and curves on the sweep's own run, and then tags that say what they are."""
        run_id = self.sweep_run(sweep)
        try:
            self._client.log_artifacts(run_id, str(folder), names.STUDY_FOLDER)
        except Exception:  # the place of files is away, or closed to this user: readers then read the runs
            tags = {}
        self.finish(run_id, "complete", tags=tags)

    def store_diff(self, sweep: str, name: str, diff: str) -> None:
        """Stores what was changed and not committed when the driver `name` started."""
        if diff:
            run_id = self.sweep_run(sweep)
            self._client.log_text(run_id, plain(diff), f"uncommitted/{name}.diff")
            self.finish(run_id, "complete")

    def unfinished_conditions(self, experiment_id: str) -> set[str]:
        """Names of conditions whose run has not ended well; where a search has stopped one, it has."""
        wanted, pruned = f"attributes.status != 'FINISHED' and {CONDITIONS}", (ENDED["pruned"], "pruned")
        runs = matching(self._client, experiment_id, wanted)
        return {
            run.data.tags[names.CONDITION]
            for run in runs
            if (run.info.status, run.data.tags.get(names.STATE)) != pruned  # one that is open was pruned before
        }

    def deleted_replicates(self, experiment_id: str) -> set[str]:
        """Keys of the replicates whose run a user has deleted."""
        return self._runs.deleted(experiment_id, "replicate")

    def stop_running(self, experiment_id: str) -> None:
        """Leaves no run of ours in an experiment RUNNING; for the holder of the lease."""
        self.remove_orphans(experiment_id)
        for run in list(matching(self._client, experiment_id, RUNNING)):
            if names.KIND in run.data.tags:
                self.finish(run.info.run_id, "stopped")

    def remove_orphans(self, experiment_id: str) -> None:
        """Removes runs that were made and never entered into the registry: a driver died, or the store went away.

        For the holder of the lease.
        """
        self._runs.remove_unentered(experiment_id)

    def takes_writes(self, sweep: str) -> bool:
        """Whether the store takes a write now: a note where a lease of the sweep would stand."""
        try:
            self.registry(names.lease_of(sweep)).note("tried", str(now_ms()))
        except Exception:
            return False
        return True

    def num_finished(self, name: str) -> int | None:
        """As `mlflow_reader.num_finished`; None, too, where there is no such sweep."""
        found = self._client.get_experiment_by_name(name)
        return num_finished(self._client, str(found.experiment_id)) if found else None

    def read_study(self, name: str) -> Study:
        """Every replicate of the sweep `name`, as the store has it.

        Raises:
            InputError: if the sweep has not run.
        """
        return read_study(self._client, name, self.find_experiment(name).experiment_id)

    def read_holder(self, name: str) -> Holder | None:
        """Who last ran the sweep `name`; None where the store does not say it."""
        registry = find_registry(self._client, names.lease_of(name))
        return find_holder(*registry.read()) if registry else None

    def read_declaration(self, name: str) -> str | None:
        """What the sweep `name` declares, as it was recorded; None where it is not."""
        found = self._client.get_experiment_by_name(name)
        return found.tags.get(names.DECLARATION) if found else None

    def read_origins(self, name: str, is_deleted: bool = False) -> Mapping[str, Origin]:
        """What each replicate of the sweep `name` was begun with, by key; where its run was deleted, or not.

        Raises:
            InputError: if the sweep has not run.
        """
        return read_origins(self._client, self.find_experiment(name).experiment_id, is_deleted)
