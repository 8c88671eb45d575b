"""MLflow: one experiment a sweep, a run a condition, a nested run a replicate.

Only files named `tracking*` import mlflow. A run is found by its key through a book (`tracking_books`), never by tags.
"""

import logging
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from mlflow import MlflowClient
from mlflow.entities import Experiment, Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from orchestrator.lease import held
from orchestrator.settings import Settings
from orchestrator.storage import Record
from orchestrator.study import Replicate, Study
from orchestrator.study_cache import cache_folder
from orchestrator.tracking_books import Book, open_book
from orchestrator.tracking_probe import masked
from orchestrator.tracking_reader import read_study
from trainables.errors import InputError

BATCH: Final = 1000
SMALL_BATCH: Final = 100
RUNNING: Final = "attributes.status = 'RUNNING'"
ENDED: Final = {"complete": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}
TEXT_LIMIT: Final = 5000
HTTP_LIMITS: Final = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""Whoever writes tries again anyway, and says so meanwhile; by itself MLflow is silent for minutes."""

AWAY_STATUS: Final = (401, 403, 429, 499, 500, 502, 503, 504)


class Tracking:
    """The tracking store; opened by the driver, and by commands that read."""

    def __init__(self, settings: Settings) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # whoever writes says it in one line
        logging.getLogger("alembic").setLevel(logging.WARNING)
        for name, value in HTTP_LIMITS.items():
            os.environ.setdefault(name, value)
        self._is_local = settings.tracking_uri.startswith("sqlite:")
        self._settings = settings
        self._books: dict[str, Book] = {}
        self._runs: dict[str, dict[str, str]] = {}
        self._new_runs: set[str] = set()
        self._revision = 0
        try:
            with _made_once(settings):
                self._client = MlflowClient(tracking_uri=settings.tracking_uri)
                self._client.search_experiments(max_results=1)
        except (MlflowException, ImportError) as error:  # a database needs its own package
            reason = str(error).splitlines()[0]
            raise InputError(f"The tracking store {masked(settings.tracking_uri)} cannot be opened: {reason}") from None

    @staticmethod
    def is_away(error: Exception) -> bool:
        """Whether the store could not be reached or could not serve, so that the same call may succeed later."""
        if isinstance(error, MlflowException):
            status: int = error.get_http_status_code()  # type: ignore[no-untyped-call]
            return status in AWAY_STATUS
        return isinstance(error, OSError)

    def book(self, name: str) -> Book:
        """The one book called `name`."""
        if name not in self._books:
            self._books[name] = open_book(self._client, name)
        return self._books[name]

    def open_experiment(self, name: str) -> str:
        """The id of the experiment `name`, made where it is not there."""
        found = self._client.get_experiment_by_name(name)
        if found is None:
            location = (self._settings.artifacts / name).as_uri() if self._is_local else None
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
            raise InputError(
                f"{name} has not run here yet ({masked(self._settings.tracking_uri)}); `ponderay run {name}` does."
            )
        return found

    def open_run(self, experiment_id: str, kind: str, key: str, name: str, tags: Mapping[str, str]) -> str:
        """The id of the one run with this kind and key, set RUNNING; made where it is not there.

        Several drivers may ask at once: the book of the experiment takes one run for each key, the others are removed.
        """
        runs, claim = self._known_runs(experiment_id), f"{kind} {key}"
        while claim in runs:
            if self._reopen(runs[claim]):
                return runs[claim]
            claim += " again"  # that run was removed for good
        identity = {"ponderay.key": key, "ponderay.kind": kind, "ponderay.state": "running"}
        mine = str(self._client.create_run(experiment_id, tags=identity | dict(tags), run_name=name).info.run_id)
        runs[claim] = self._book_of_runs(experiment_id).claim(claim, mine)
        if runs[claim] == mine:
            self._new_runs.add(mine)
        else:
            self._client.delete_run(mine)
        return runs[claim]

    def find_run(self, experiment_id: str, kind: str, key: str) -> str:
        """The id of the run with this kind and key; empty where there is none."""
        runs, claim = self._known_runs(experiment_id), f"{kind} {key}"
        while f"{claim} again" in runs:
            claim += " again"
        return runs.get(claim, "")

    def _known_runs(self, experiment_id: str) -> dict[str, str]:
        if experiment_id not in self._runs:
            self._runs[experiment_id] = self._book_of_runs(experiment_id).claims()
        return self._runs[experiment_id]

    def _book_of_runs(self, experiment_id: str) -> Book:
        return self.book(f"runs of experiment {experiment_id}")

    def _reopen(self, run_id: str) -> bool:
        """Sets a run RUNNING, taking it out of the bin; False where it is not even there."""
        try:
            if self._client.get_run(run_id).info.lifecycle_stage == "deleted":
                self._client.restore_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return False
        self._client.update_run(run_id, status="RUNNING")
        return True

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
            Metric(_to_mlflow(name), value, record["time_ms"], record["step"])
            for record in records
            if record["kind"] in ("metrics", "evaluation")
            for name, value in record["metrics"].items()
        ]
        listed = [RunTag(name, value) for name, value in (tags or {}).items()]
        given = [Param(path, str(value)[:TEXT_LIMIT]) for path, value in self._new_params(run_id, params or {}).items()]
        while metrics or listed or given:
            now = metrics[: BATCH - 2 * SMALL_BATCH], given[:SMALL_BATCH], listed[:SMALL_BATCH]
            self._client.log_batch(run_id, *now)
            metrics, given, listed = metrics[len(now[0]) :], given[len(now[1]) :], listed[len(now[2]) :]

    def _new_params(self, run_id: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if not params:
            return {}
        if run_id in self._new_runs:
            self._new_runs.remove(run_id)
            return params
        logged = self._client.get_run(run_id).data.params
        return {path: value for path, value in params.items() if path not in logged}

    def finish(self, run_id: str, state: str, traceback: str = "", artifacts: Path | None = None) -> None:
        """Ends a run, complete, failed or stopped, with its files; a traceback becomes an artifact."""
        if traceback:
            self._client.log_text(run_id, traceback, "traceback.txt")
        if artifacts and artifacts.is_dir():
            self._client.log_artifacts(run_id, str(artifacts))
        self._client.set_tag(run_id, "ponderay.state", state)
        self._client.set_terminated(run_id, ENDED[state])

    def write_replicates(self, experiment_id: str, run_id: str, tags: Mapping[str, str]) -> None:
        """Writes states of replicates into their condition's run, and then that this was done: readers look for it."""
        self.log(run_id, tags=tags)
        revision = self._next_revision(experiment_id)
        self._client.log_batch(run_id, [Metric(UPDATED, revision, revision, 0)])  # MLflow takes the latest by its time

    def _next_revision(self, experiment_id: str) -> int:
        if not self._revision:
            order = [f"metrics.`{UPDATED}` DESC"]
            last = self._client.search_runs([experiment_id], f"metrics.`{UPDATED}` > 0", order_by=order, max_results=1)
            self._revision = int(last[0].data.metrics[UPDATED]) if last else 0
        self._revision = max(self._revision + 1, _now_ms())
        return self._revision

    def summarise_condition(self, run_id: str, replicates: Sequence[Replicate]) -> None:
        """Writes mean, standard deviation and number of every metric, and ends the condition's run.

        The number is also the step, so that a summary of more replicates is the later one.
        """
        study = Study("", tuple(replicates))
        name, now_ms = replicates[0].condition, _now_ms()
        metrics: list[Metric] = []
        for metric in sorted({m for r in replicates for m in r.metrics}):
            if summary := study.summary(name, metric):
                values = {"": summary.mean, ".std": summary.std, ".n": float(summary.n)}
                stored = _to_mlflow(metric)
                metrics += [Metric(stored + end, v, now_ms, summary.n) for end, v in values.items() if math.isfinite(v)]
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + BATCH])
        complete = all(replicate.state == "complete" for replicate in replicates)
        self.finish(run_id, "complete" if complete else "failed")

    def sweep_run(self, sweep: str) -> str:
        """The sweep's own run, named as the sweep, for what belongs to no condition."""
        experiment_id = self.open_experiment(sweep)
        return self.open_run(experiment_id, "sweep", sweep, sweep, {"ponderay.sweep": sweep})

    def store_figures(self, sweep: str, files: Iterable[Path]) -> None:
        """Stores files as artifacts of the sweep's own run."""
        run_id = self.sweep_run(sweep)
        for file in files:
            self._client.log_artifact(run_id, str(file), "figures")
        self.finish(run_id, "complete")

    def store_diff(self, sweep: str, name: str, diff: str) -> None:
        """Stores what was changed and not committed when the driver `name` started."""
        if diff:
            run_id = self.sweep_run(sweep)
            self._client.log_text(run_id, diff, f"uncommitted/{name}.diff")
            self.finish(run_id, "complete")

    def unfinished_conditions(self, experiment_id: str) -> set[str]:
        """Names of conditions whose run has not ended well."""
        wanted = "attributes.status != 'FINISHED' and tags.`ponderay.kind` = 'condition'"
        return {run.data.tags["ponderay.condition"] for run in self._search(experiment_id, wanted)}

    def stop_running(self, experiment_id: str) -> None:
        """Leaves no run of an experiment RUNNING."""
        for run in list(self._search(experiment_id, RUNNING)):
            self.finish(run.info.run_id, "stopped")

    def remove_orphans(self, experiment_id: str) -> None:
        """Removes runs that a dead driver made and did not live to enter into the book; for the holder of the lease."""
        entered = set(self._known_runs(experiment_id).values())
        for run in list(self._search(experiment_id, RUNNING)):
            if run.info.run_id not in entered:
                self._client.delete_run(run.info.run_id)

    def _search(self, experiment_id: str, wanted: str) -> Iterator[Run]:
        token = None
        while True:
            page = self._client.search_runs([experiment_id], wanted, ViewType.ACTIVE_ONLY, BATCH, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def read_study(self, name: str) -> Study:
        """Every replicate of the sweep `name`, as the store has it.

        Raises:
            InputError: if the sweep has not run.
        """
        return read_study(self._client, name, self.find_experiment(name).experiment_id, cache_folder())


@contextmanager
def _made_once(settings: Settings) -> Iterator[None]:
    """A local store's tables are made by one process; others wait."""
    if settings.tracking_uri.startswith("sqlite:///"):
        with held(settings.runs / "mlflow.lock"):
            yield
    else:
        yield


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _to_mlflow(metric: str) -> str:
    """MLflow allows no @ in names; its interface groups by slashes."""
    return metric.replace("@", "/")


UPDATED: Final = "ponderay.updated"
"""Metric of a condition's run: the revision of the replicates' states in its tags."""
