"""The runs of a study as MLflow gives them: few requests, however many replicates there are."""

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mlflow import MlflowClient
from mlflow.entities import Run
from mlflow.exceptions import MlflowException

from orchestrator.tracking import names
from orchestrator.tracking.pages import CONDITIONS, REPLICATES, SWEEP_RUNS
from orchestrator.tracking.study_runs import CurveRun, StoredFile


@dataclass(frozen=True)
class MlflowRuns:
    """Those of an experiment; where its id is empty there are none."""

    client: MlflowClient
    experiment_id: str

    def values_of(self, tag: str, most: int) -> tuple[Sequence[str], bool]:
        """As `StudyRuns` says; each query asks for another value.

        MLflow has no way to quote a value with both kinds of quotes; nothing that comes after it is found.
        """
        values: list[str] = []
        while self.experiment_id and len(values) < most and not (values and _quoted(values[-1]) is None):
            known = [f"tags.`{tag}` != {_quoted(value)}" for value in values]
            value = self._first_value(tag, known)
            if value is None or value in values:
                return values, True
            values.append(value)
        return values, not self.experiment_id

    def _first_value(self, tag: str, known: Sequence[str]) -> str | None:
        wanted = " and ".join([REPLICATES, f"tags.`{tag}` != ''", *known])
        order = ["attributes.start_time ASC"]
        runs = self.client.search_runs([self.experiment_id], wanted, max_results=1, order_by=order)
        return str(runs[0].data.tags[tag]) if runs else None

    def params_of(self, run_ids: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """As `StudyRuns` says; in one query."""
        return {run.info.run_id: run.data.params for run in self._runs(run_ids)}

    def tags_of(self, run_ids: Collection[str], tag: str) -> Sequence[str]:
        """As `SqliteRuns` says; in one query."""
        tags = {run.info.run_id: run.data.tags for run in self._runs(run_ids)}
        return list(dict.fromkeys(tags[one][tag] for one in run_ids if tag in tags.get(one, {})))

    def _runs(self, run_ids: Collection[str]) -> Sequence[Run]:
        if not run_ids or not self.experiment_id:
            return []
        listed = ", ".join(f"'{run_id}'" for run_id in run_ids)
        wanted = f"attributes.run_id IN ({listed})"
        return self.client.search_runs([self.experiment_id], wanted, max_results=len(run_ids))

    def files_of(self, folder: str) -> Sequence[StoredFile]:
        """As `StudyRuns` says."""
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
        try:
            runs = (
                self.client.search_runs([self.experiment_id], SWEEP_RUNS, max_results=1) if self.experiment_id else []
            )
            found = [
                (run.info.run_id, file) for run in runs for file in self.client.list_artifacts(run.info.run_id, folder)
            ]
        except MlflowException as error:
            raise ConnectionError(str(error)) from None
        return [StoredFile(file.path, file.file_size or 0, partial(self._read, run, file.path)) for run, file in found]

    def _read(self, run_id: str, path: str) -> bytes:
        try:
            with tempfile.TemporaryDirectory() as folder:
                return Path(self.client.download_artifacts(run_id, path, folder)).read_bytes()
        except MlflowException as error:
            raise ConnectionError(str(error)) from None

    def run_of(self, condition: str) -> CurveRun | None:
        """As `CurveRuns` says; names of conditions hold no quotes."""
        wanted = f"{CONDITIONS} AND tags.\"{names.CONDITION}\" = '{condition}'"
        found = self.client.search_runs([self.experiment_id], wanted, max_results=1)
        return CurveRun(found[0].data.tags, found[0].data.metrics, partial(self._history, found[0])) if found else None

    def histories_of(self, run_ids: Collection[str], metric: str) -> Mapping[str, Mapping[int, float]]:
        """As `CurveRuns` says; a request for each run."""
        found = {run_id: self.client.get_metric_history(run_id, metric) for run_id in run_ids}
        return {run_id: {int(one.step): float(one.value) for one in every} for run_id, every in found.items() if every}

    def _history(self, run: Run, name: str) -> Mapping[int, float]:
        history = self.client.get_metric_history(run.info.run_id, name)
        return {int(metric.step): float(metric.value) for metric in history}


def _quoted(value: str) -> str | None:
    """`value` as MLflow's filters take it; None where they cannot."""
    if '"' in value and "'" in value:
        return None
    return f'"{value}"' if "'" in value else f"'{value}'"
