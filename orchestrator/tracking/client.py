"""MLflow: one experiment a sweep, a run a condition, a nested run a replicate.

A run is found by its key through a registry (`registry`), never by tags.
"""

import contextlib
import logging
import os
import time
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
from orchestrator.journal.lines import Record
from orchestrator.results.curves import Curve
from orchestrator.results.study import Replicate, Study
from orchestrator.tracking import condition_metrics, names
from orchestrator.tracking.empty_store import make_store
from orchestrator.tracking.lease_holder import Holder, find_holder
from orchestrator.tracking.mlflow_internals import SYSTEM_PREFIX, database_of
from orchestrator.tracking.mlflow_reader import RecordedSweep, read_configs, read_study, recorded_sweeps
from orchestrator.tracking.mlflow_runs import MlflowRuns
from orchestrator.tracking.moved_folder import follow_folder
from orchestrator.tracking.names import stored_name
from orchestrator.tracking.pages import CONDITIONS
from orchestrator.tracking.registry import Registry, find_registry, open_registry
from orchestrator.tracking.row_batch import RowBatch
from orchestrator.tracking.runs import PAGE, RUNNING, KeyedRuns, all_pages, matching, plain, write
from orchestrator.tracking.store import (
    address,
    check_address,
    check_file,
    made_once,
    not_run,
    reason_of,
    sqlite_file,
    store_kind,
    unusable,
)
from orchestrator.tracking.stored_figures import FIGURES
from orchestrator.tracking.study_cache import cache_folder
from orchestrator.tracking.sweep_run import REPORT
from search_spaces.known_names import known_names
from search_spaces.names import path_part
from trainables.errors import DataWarning, InputError

ENDED: Final = {"complete": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
CLIENT: Final = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Whoever writes tries again anyway, and says so meanwhile; by itself MLflow is silent for minutes.

And it would print two lines for each run that ends.
"""

MOST_NAMED: Final = 12
"""Experiments in a message."""

MOST_EXPERIMENTS: Final = 1000
"""Among which the nearest name is looked for."""

NO_PLACE: Final = (PermissionError, NotADirectoryError, FileNotFoundError)
"""Of files, which another try would not mend."""


class Tracking:
    """The tracking store; opened by the driver, and by commands that read."""

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
            with made_once(uri, settings.runs / "mlflow.lock"):
                if store_kind(uri) == "sqlite" and "?" not in uri:
                    make_store(sqlite_file(uri))
                follow_folder(settings)
                self._client = MlflowClient(tracking_uri=uri)
                self._client.search_experiments(max_results=1)
        except (MlflowException, SQLAlchemyError, ImportError, ValueError, CommandError) as error:  # or no driver
            raise InputError(unusable(settings.tracking_uri, error)) from None
        self._runs = KeyedRuns(self._client, self.registry)
        self._database = database_of(self._client)

    @property
    def writes_together(self) -> bool:
        """Whether the store is a database that takes what is written `together` in one transaction."""
        return self._database is not None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A block of one thread: a database has all its writes of runs at its end, or none; a server has each at once.

        If it fails, runs that were opened in it have to be opened again.
        """
        if self._database is None:
            yield
            return
        batch = self._runs.batch = RowBatch(self._database)
        try:
            yield
            batch.flush()
        except BaseException:
            self._runs.forget()
            raise
        finally:
            self._runs.batch = None

    @property
    def _writer(self) -> MlflowClient | RowBatch:
        return self._runs.batch or self._client

    def _settle(self) -> None:
        """Writes what waits, before MLflow's client is to find it."""
        if self._runs.batch:
            self._runs.batch.flush()

    def registry(self, name: str) -> Registry:
        """The one registry called `name`."""
        if name not in self._registries:
            self._registries[name] = open_registry(self._client, name)
        return self._registries[name]

    def open_experiment(self, name: str) -> str:
        """The id of the experiment `name`, made where it is not there."""
        found = self._client.get_experiment_by_name(name)
        if found is None:
            has_server = store_kind(self._settings.tracking_uri) in ("http", "https")
            location = None if has_server else (self._settings.artifacts / path_part(name)).as_uri()
            try:
                return str(self._client.create_experiment(name, artifact_location=location))
            except MlflowException:
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)

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
        """Those with a condition's run, by name."""
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
        metrics = [
            Metric(name, value, record["time_ms"], record["step"])
            for record in records
            for name, value in _metrics(record).items()
        ]
        write(self._writer, run_id, metrics, tags, self._new_params(run_id, params or {}))

    def _new_params(self, run_id: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if not params or self._runs.is_new(run_id):
            return params
        logged = self._client.get_run(run_id).data.params
        return {path: value for path, value in params.items() if path not in logged}

    def finish(self, run_id: str, state: str, traceback: str = "", artifacts: Path | None = None) -> None:
        """Ends a run, complete, failed or stopped, with its files; a traceback becomes an artifact.

        Where the place of the files cannot be written, that is warned of, and the numbers are stored without them.
        """
        try:
            self._store_files(run_id, traceback, artifacts)
        except NO_PLACE as error:
            rule = f"Files of run {run_id} cannot be stored in MLflow ({error})"
            remedy = "They stay in the replicate's folder. Runs that were moved keep the old place of their files."
            warnings.warn(f"{rule}. {remedy}", DataWarning, stacklevel=2)
        self._writer.set_tag(run_id, names.STATE, state)
        self._writer.set_terminated(run_id, ENDED[state])

    def _store_files(self, run_id: str, traceback: str, artifacts: Path | None) -> None:
        """Without links: MLflow would store what they lead to, such as a key of this user's."""
        is_there = artifacts is not None and artifacts.is_dir() and not artifacts.is_symlink()
        files = (
            [file for file in sorted(artifacts.iterdir()) if not file.is_symlink()] if artifacts and is_there else []
        )
        if traceback or files:
            self._settle()
        if traceback:
            self._client.log_text(run_id, plain(traceback), "traceback.txt")
        for file in files:
            self._client.log_artifact(run_id, str(file))

    def write_replicates(self, experiment_id: str, run_id: str, tags: Mapping[str, str]) -> None:
        """Writes states of replicates into their condition's run, and then that this was done: readers look for it."""
        self.log(run_id, tags=tags)
        revision = self._next_revision(experiment_id)
        self._writer.log_batch(
            run_id, [Metric(names.UPDATED, revision, revision, 0)]
        )  # MLflow takes the latest by its time

    def _next_revision(self, experiment_id: str) -> int:
        if not self._revision:
            order = [f"metrics.`{names.UPDATED}` DESC"]
            last = self._client.search_runs(
                [experiment_id], f"metrics.`{names.UPDATED}` > 0", order_by=order, max_results=1
            )
            self._revision = int(last[0].data.metrics[names.UPDATED]) if last else 0
        self._revision = max(self._revision + 1, _now_ms())
        return self._revision

    def summarise_condition(self, run_id: str, replicates: Sequence[Replicate]) -> None:
        """Writes what its replicates come to, as `condition_metrics` says, and ends the condition's run."""
        condition_metrics.write_summaries(self._writer, run_id, replicates, _now_ms())
        complete = all(replicate.state == "complete" for replicate in replicates)
        self.finish(run_id, "complete" if complete else "failed")

    def write_curves(self, run_id: str, curves: Sequence[Curve]) -> None:
        """Writes learning curves into the run of their condition; twice is as good as once."""
        condition_metrics.write_curves(self._writer, run_id, curves)

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
        """Raises InputError where the store refuses it, such as from somebody who may only read."""
        try:
            run_id, now_ms = self.sweep_run(sweep), _now_ms()
            self._settle()
            for file in files:
                self._client.log_artifact(run_id, str(file), folder)
            logged = [Metric(stored_name(name), value, now_ms, 0) for name, value in metrics.items()]
            write(self._writer, run_id, logged, tags)
            self.finish(run_id, "complete")
        except MlflowException as error:
            raise InputError(unusable(self._settings.tracking_uri, error)) from None

    def store_diff(self, sweep: str, name: str, diff: str) -> None:
        """Stores what was changed and not committed when the driver `name` started."""
        if diff:
            run_id = self.sweep_run(sweep)
            self._settle()
            self._client.log_text(run_id, plain(diff), f"uncommitted/{name}.diff")
            self.finish(run_id, "complete")

    def unfinished_conditions(self, experiment_id: str) -> set[str]:
        """Names of conditions whose run has not ended well."""
        wanted = f"attributes.status != 'FINISHED' and {CONDITIONS}"
        return {run.data.tags[names.CONDITION] for run in matching(self._client, experiment_id, wanted)}

    def stop_running(self, experiment_id: str) -> None:
        """Leaves no run of ours in an experiment RUNNING; for the holder of the lease."""
        self._settle()
        self.remove_orphans(experiment_id)
        for run in list(matching(self._client, experiment_id, RUNNING)):
            if names.KIND in run.data.tags:
                self.finish(run.info.run_id, "stopped")

    def remove_orphans(self, experiment_id: str) -> None:
        """Removes runs that were made and never entered into the registry: a driver died, or the store went away.

        For the holder of the lease.
        """
        self._runs.remove_unentered(experiment_id)

    def read_study(self, name: str) -> Study:
        """Every replicate of the sweep `name`, as the store has it.

        Raises:
            InputError: if the sweep has not run.
        """
        return read_study(self._client, name, self.find_experiment(name).experiment_id, cache_folder())

    def read_holder(self, name: str) -> Holder | None:
        """Who last ran the sweep `name`; None where the store does not say it."""
        registry = find_registry(self._client, names.lease_of(name))
        return find_holder(*registry.read()) if registry else None

    def read_declaration(self, name: str) -> str | None:
        """What the sweep `name` declares, as it was recorded; None where it is not."""
        found = self._client.get_experiment_by_name(name)
        return found.tags.get(names.DECLARATION) if found else None

    def read_configs(self, name: str) -> Mapping[str, Mapping[str, str]]:
        """The config of each condition of the sweep `name`, as `load.load_configs` gives it.

        Raises:
            InputError: if the sweep has not run.
        """
        return read_configs(self._client, self.find_experiment(name).experiment_id)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _metrics(record: Record) -> Mapping[str, float]:
    """What a journal's record says in numbers, named as in MLflow."""
    if record["kind"] == "system":
        return {SYSTEM_PREFIX + name: value for name, value in record["values"].items()}
    if record["kind"] in ("metrics", "evaluation"):
        return {stored_name(name): value for name, value in record["metrics"].items()}
    return {}
