"""The runs of a study as MLflow gives them: few requests, however many replicates there are."""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from orchestrator.tracking import names
from orchestrator.tracking.pages import SWEEP_RUNS
from orchestrator.tracking.stored_files import StoredFile


@dataclass(frozen=True)
class MlflowRuns:
    """The runs of an experiment."""

    client: MlflowClient
    experiment_id: str

    def files_of(self, folder: str) -> Sequence[StoredFile]:
        """The files in a folder of the sweep's own run, by path.

        Raises:
            OSError: if the store of files is away.
        """
        try:
            runs = self.client.search_runs([self.experiment_id], SWEEP_RUNS, max_results=1)
            found = [
                (run.info.run_id, file) for run in runs for file in self.client.list_artifacts(run.info.run_id, folder)
            ]
        except MlflowException as error:
            raise ConnectionError(str(error)) from None
        return [StoredFile(file.path, file.file_size or 0, partial(self.read, run, file.path)) for run, file in found]

    def read(self, run_id: str, path: str) -> bytes:
        """The content of a file of a run.

        Raises:
            OSError: if it cannot be had now.
        """
        try:
            with tempfile.TemporaryDirectory() as folder:
                return Path(self.client.download_artifacts(run_id, path, folder)).read_bytes()
        except MlflowException as error:
            raise ConnectionError(str(error)) from None

    def last_update_ms(self) -> int:
        """When a state of a replicate was written last, by its driver's clock; 0 where none was."""
        order = [f"metrics.`{names.UPDATED}` DESC"]
        wanted = f"metrics.`{names.UPDATED}` > 0"
        last = self.client.search_runs([self.experiment_id], wanted, order_by=order, max_results=1)
        return int(last[0].data.metrics[names.UPDATED]) if last else 0

    def histories_of(self, run_ids: Collection[str], metric: str) -> Mapping[str, Mapping[int, float]]:
        """The values of a metric, as stored, by step, of each of these runs that has one; a request for each run."""
        found = {run_id: self.client.get_metric_history(run_id, metric) for run_id in run_ids}
        return {run_id: {int(one.step): float(one.value) for one in every} for run_id, every in found.items() if every}
