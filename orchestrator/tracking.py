"""MLflow: one experiment a sweep, a run a condition, a nested run a replicate. The only file that imports mlflow."""

import json
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from mlflow import MlflowClient
from mlflow.entities import Experiment, Metric, Param, Run, RunTag, ViewType
from mlflow.exceptions import MlflowException

from orchestrator.settings import Settings
from orchestrator.storage import Record
from orchestrator.study import Replicate, State, Study
from trainables.errors import InputError

BATCH: Final = 1000
ENDED: Final = {"complete": "FINISHED", "failed": "FAILED"}
TEXT_LIMIT: Final = 5000


class Tracking:
    """A sweep's experiment in the tracking store; opened by the driver, and by commands that read."""

    def __init__(self, settings: Settings) -> None:
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        if settings.tracking_uri.startswith("sqlite:///"):
            settings.runs.mkdir(parents=True, exist_ok=True)
        self._is_local = settings.tracking_uri.startswith("sqlite:")
        self._settings = settings
        try:
            self._client = MlflowClient(tracking_uri=settings.tracking_uri)
            self._client.search_experiments(max_results=1)
        except MlflowException as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"The tracking store {settings.tracking_uri} cannot be opened: {reason}") from None

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
                f"{name} has not run here yet ({self._settings.tracking_uri}); `ponderay run {name}` does."
            )
        return found

    def open_run(
        self,
        experiment_id: str,
        kind: str,
        key: str,
        name: str,
        tags: Mapping[str, str],
        params: Mapping[str, Any],
    ) -> str:
        """The id of the one run with this kind and key, set RUNNING again or made.

        Parameters stay as they were first logged: those that may differ, such as paths, are not part of the key.
        """
        filter_string = f"tags.`ponderay.key` = '{key}' and tags.`ponderay.kind` = '{kind}'"
        found = self._client.search_runs([experiment_id], filter_string, max_results=1)
        logged: Mapping[str, str] = {}
        if found:
            run_id, logged = str(found[0].info.run_id), found[0].data.params
            self._client.update_run(run_id, status="RUNNING")
            self.set_tags(run_id, {"ponderay.state": "running"})
        else:
            identity = {"ponderay.key": key, "ponderay.kind": kind, "ponderay.state": "running"}
            run = self._client.create_run(experiment_id, tags=identity | dict(tags), run_name=name)
            run_id = str(run.info.run_id)
        listed = [Param(path, _text(value)) for path, value in params.items() if path not in logged]
        for start in range(0, len(listed), 100):
            self._client.log_batch(run_id, params=listed[start : start + 100])
        return run_id

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Adds or replaces tags."""
        self._client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])

    def log(self, run_id: str, records: Iterable[Record]) -> None:
        """Metrics of journal records; logging a record again changes nothing, for its time and step are its own."""
        rows = [
            Metric(_to_mlflow(name), value, record["time_ms"], record["step"])
            for record in records
            if record["kind"] in ("metrics", "evaluation")
            for name, value in record["metrics"].items()
        ]
        for start in range(0, len(rows), BATCH):
            self._client.log_batch(run_id, metrics=rows[start : start + BATCH])
        for record in records:
            if record["kind"] == "started":
                self.set_tags(run_id, {"ponderay.host": record["host"], "ponderay.device": record["device"]})

    def finish(self, run_id: str, state: str, tags: Mapping[str, str], traceback: str = "") -> None:
        """Sets the state for good, and last, for it is what the next driver trusts; a traceback becomes an artifact."""
        if traceback:
            self._client.log_text(run_id, traceback, "traceback.txt")
        self._client.set_terminated(run_id, ENDED[state])
        self.set_tags(run_id, dict(tags) | {"ponderay.state": state})

    def summarise_condition(self, run_id: str, replicates: Sequence[Replicate]) -> None:
        """Writes mean, standard deviation and number of every metric, and ends the condition's run.

        The number is also the step, so that a summary of more replicates is the later one.
        """
        study = Study("", tuple(replicates))
        name, now_ms = replicates[0].condition, time.time_ns() // 1_000_000
        metrics: list[Metric] = []
        for metric in sorted({m for r in replicates for m in r.metrics}):
            if summary := study.summary(name, metric):
                values = {"": summary.mean, ".std": summary.std, ".n": float(summary.n)}
                stored = _to_mlflow(metric)
                metrics += [Metric(stored + end, v, now_ms, summary.n) for end, v in values.items() if math.isfinite(v)]
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + BATCH])
        complete = all(replicate.state == "complete" for replicate in replicates)
        self.finish(run_id, "complete" if complete else "failed", {})

    def store_figures(self, sweep: str, files: Iterable[Path]) -> None:
        """Stores files as artifacts of the sweep's own run, named as the sweep."""
        experiment_id = self.find_experiment(sweep).experiment_id
        run_id = self.open_run(experiment_id, "sweep", sweep, sweep, {"ponderay.sweep": sweep}, {})
        for file in files:
            self._client.log_artifact(run_id, str(file), "figures")
        self.finish(run_id, "complete", {})

    def store_artifacts(self, run_id: str, folder: Path) -> None:
        """Stores the files of a replicate's folder, where it has any."""
        if folder.is_dir():
            self._client.log_artifacts(run_id, str(folder))

    def store_diff(self, run_id: str, diff: str) -> None:
        """Stores what was changed and not committed."""
        if diff:
            self._client.log_text(run_id, diff, "uncommitted.diff")

    def stop(self, run_id: str) -> None:
        """Marks what a driver leaves unfinished; the next one sets it running again."""
        self._client.set_terminated(run_id, "KILLED")
        self.set_tags(run_id, {"ponderay.state": "stopped"})

    def stop_running(self, experiment_id: str) -> None:
        """Leaves no run of an experiment RUNNING."""
        for run in self._search(experiment_id, "attributes.status = 'RUNNING'"):
            self.stop(run.info.run_id)

    def read_study(self, name: str, experiment_id: str | None = None) -> Study:
        """Every replicate of the sweep `name`, as the store has it.

        Raises:
            InputError: if the sweep has not run.
        """
        experiment_id = experiment_id or self.find_experiment(name).experiment_id
        runs = self._search(experiment_id, "tags.`ponderay.kind` = 'replicate'")
        replicates = [_replicate(run) for run in runs]
        order = {name: i for i, name in enumerate(dict.fromkeys(r.condition for r in replicates))}
        return Study(name, tuple(sorted(replicates, key=lambda r: (order[r.condition], r.seed))))

    def _search(self, experiment_id: str, filter_string: str) -> list[Run]:
        runs: list[Run] = []
        token = None
        while True:
            page = self._client.search_runs(
                [experiment_id],
                filter_string,
                ViewType.ACTIVE_ONLY,
                BATCH,
                ["attributes.start_time ASC"],
                token,
            )
            runs += page
            token = page.token
            if not token:
                return runs


def _replicate(run: Run) -> Replicate:
    tags = run.data.tags
    return Replicate(
        key=tags["ponderay.key"],
        condition=tags["ponderay.condition"],
        seed=int(tags["ponderay.seed"]),
        state=cast(State, tags["ponderay.state"]),
        metrics={_from_mlflow(name): value for name, value in run.data.metrics.items()},
        error=tags.get("ponderay.error", ""),
        is_lost=tags.get("ponderay.lost") == "true",
        code_version=tags.get("ponderay.code_version", ""),
        run_id=run.info.run_id,
        evaluations=frozenset(json.loads(tags.get("ponderay.evaluations", "[]"))),
        data_fingerprint=tags.get("ponderay.data_fingerprint", ""),
    )


def _to_mlflow(metric: str) -> str:
    """MLflow allows no @ in names; its interface groups by slashes."""
    return metric.replace("@", "/")


def _from_mlflow(metric: str) -> str:
    return metric.replace("/", "@")


def _text(value: object) -> str:
    return str(value)[:TEXT_LIMIT]
