"""Figures that were stored on a sweep's own run, for who has the store and not the folder in which they were drawn."""

import os
from pathlib import Path
from typing import Final

from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from orchestrator.tracking.pages import SWEEP_RUNS

FIGURES: Final = "figures"
MOST: Final = 50


def fetch_figures(client: MlflowClient, experiment: str, folder: Path) -> None:
    """Copies the PNG files, at most 50, into `folder`; none where the store of artifacts is away.

    That it is away stands in the provenance of the same report, which reads from it too.
    """
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        for run in client.search_runs([experiment], SWEEP_RUNS, max_results=1):
            files = [file.path for file in client.list_artifacts(run.info.run_id, FIGURES)]
            for path in [path for path in files if path.endswith(".png")][:MOST]:
                client.download_artifacts(run.info.run_id, path, str(folder))
    except (MlflowException, OSError):
        return
