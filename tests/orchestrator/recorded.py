"""Studies recorded in MLflow the way a driver leaves them, for tests of what reads them."""

import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from orchestrator.results.study import Replicate
from orchestrator.tracking.replicate_tags import encode


@functools.cache
def empty_store() -> bytes:
    """Made once, for making it takes seconds."""
    with tempfile.TemporaryDirectory() as folder:
        MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db").search_experiments(max_results=1)
        return (Path(folder) / "mlflow.db").read_bytes()


class Store:
    """A SQLite store at `path` with one experiment, and what tests do to it."""

    def __init__(self, path: Path, experiment: str = "asr.demo") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(empty_store())
        self.uri, self.experiment = f"sqlite:///{path}", experiment
        self.client = MlflowClient(tracking_uri=self.uri)
        self.experiment_id = self.client.create_experiment(experiment, artifact_location=(path.parent / "a").as_uri())
        self.run_ids: dict[str, str] = {}

    def write(
        self, replicates: Sequence[Replicate], revision: int, start_ms: int = 1, params: Mapping[str, str] = {}
    ) -> list[Replicate]:
        """Writes replicates of one condition, and its parameters, into its run; returns them as they should be read."""
        name = replicates[0].condition
        if name not in self.run_ids:
            tags = {"ponderay.kind": "condition", "ponderay.condition": name}
            run = self.client.create_run(self.experiment_id, start_ms, tags, name)
            self.run_ids[name] = run.info.run_id
        written = [replace(one, run_id=f"run of {one.key}") for one in replicates]
        tags = [RunTag(key, value) for one in written for key, value in encode(one).items()]
        self.client.log_batch(self.run_ids[name], tags=tags, params=[Param(*one) for one in params.items()])
        self.client.log_batch(self.run_ids[name], [Metric("ponderay.updated", revision, revision, 0)])
        return written


def replicate(condition: str, seed: int, **changes: Any) -> Replicate:
    """A complete one."""
    values: dict[str, Any] = {
        "key": f"{condition}/{seed}",
        "state": "complete",
        "metrics": {"per@e": 0.25, "macs_per_frame@e": 1e6},
        "evaluations": frozenset({"e.0123"}),
        "code_version": "v1",
        "duration_s": 60.0,
        "size_bytes": 1_000_000,
    }
    return Replicate(condition=condition, seed=seed, **values | changes)
