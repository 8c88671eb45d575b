"""The same replicate as `replicate.py`, run by a whole driver with MLflow, and the rows that it leaves there."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mlflow import MlflowClient
from rich.console import Console

import ponderay
from orchestrator.environment.settings import Settings
from orchestrator.journal.lines import Record
from orchestrator.run import run_here
from orchestrator.tracking import names
from tests.faults.replicate import SWEEP
from tests.faults.trainable import VALID

KINDS: Final = ("sweep", "condition", "replicate", "prerequisite")
EQUAL_TAGS: Final = (names.KIND, names.KEY, names.STATE, names.EVALUATIONS, names.ERROR, names.CONDITION, names.SEED)


class StoredRun:
    """A driver on the runs folder `root`, with the tracking store in it."""

    reported: Final[Mapping[str, list[Record]]] = {}

    def __init__(self, root: Path, attempt: str) -> None:
        self.root = root
        self.settings = Settings(root, f"sqlite:///{root / 'mlflow.db'}")

    def to_its_end(self) -> None:
        """All that is left to do."""
        run_here(SWEEP, self.settings, Console(quiet=True), accept_code=False)

    def unrecorded(self, reported: Mapping[str, list[Record]]) -> list[str]:
        """None, for none was seen."""
        return []

    def outcome(self) -> dict[str, Any]:
        """Every run of MLflow by its name, and the checkpoints."""
        os.environ["PONDERAY_RUNS"] = str(self.root)
        client = MlflowClient(self.settings.tracking_uri)
        experiments = [one.experiment_id for one in client.search_experiments()]
        found = [run for run in client.search_runs(experiments) if run.data.tags.get(names.KIND) in KINDS]
        study = ponderay.load(SWEEP.name)
        kept = [ponderay.checkpoint(study, "sum", 1, name) for name in (None, *VALID)]
        return {
            "checkpoints": [path.name for path in kept],
            "names": sorted(run.info.run_name for run in found),
            "runs": {run.info.run_name: self._rows(client, run) for run in found},
            "study": [[one.state, one.metrics, sorted(one.evaluations)] for one in study.replicates],
        }

    def _rows(self, client: MlflowClient, run: Any) -> dict[str, Any]:
        metrics = [name for name in run.data.metrics if not name.startswith(("system", "ponderay"))]
        histories = {name: client.get_metric_history(run.info.run_id, name) for name in metrics}
        return {
            "status": run.info.status,
            "params": dict(run.data.params),
            "tags": {name: run.data.tags[name] for name in EQUAL_TAGS if name in run.data.tags},
            "metrics": {name: [[one.step, one.value] for one in values] for name, values in histories.items()},
            "artifacts": sorted(file.path for file in client.list_artifacts(run.info.run_id)),
        }
