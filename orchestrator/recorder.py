"""Keeps the tracking store in step with a plan: condition runs, replicate runs, their metrics and ends."""

import json
from collections.abc import Sequence
from typing import Final

from orchestrator import provenance
from orchestrator.draft import Drafter, Task
from orchestrator.storage import Record, ReplicateFolder
from orchestrator.study import Replicate, Study
from orchestrator.tracking import Tracking
from search_spaces.sweep import Condition
from trainables.config import Config, content_hash, flatten

PREREQUISITES: Final = "prerequisites"


class Recorder:
    """What a driver writes into MLflow about one sweep; every call can be made again without doubling anything."""

    def __init__(self, tracking: Tracking, drafter: Drafter) -> None:
        self._tracking, self._drafter = tracking, drafter
        self._experiment = tracking.open_experiment(drafter.sweep.name)
        self._run_ids: dict[str, str] = {}
        self._condition_ids: dict[str, str] = {}

    def known(self) -> Study:
        """What earlier drivers of this sweep left."""
        return self._tracking.read_study(self._drafter.sweep.name, self._experiment)

    def begin(self, task: Task) -> None:
        """Opens the task's run, with its condition's as parent, and logs what its journal already holds."""
        if task.condition is None:
            experiment = self._tracking.open_experiment(PREREQUISITES)
            tags = self._tags(task)
        else:
            experiment = self._experiment
            tags = self._tags(task) | {"mlflow.parentRunId": self._condition_run(task.condition)}
        kind = "prerequisite" if task.condition is None else "replicate"
        config = task.work.typed_config()
        run_id = self._tracking.open_run(experiment, kind, task.work.key, task.work.label, tags, flatten(config))
        self._run_ids[task.work.key] = run_id
        self._tracking.log(run_id, ReplicateFolder(task.work.folder, {}).records())

    def record(self, task: Task, record: Record) -> None:
        """Logs one record."""
        self._tracking.log(self._run_ids[task.work.key], [record])

    def end(self, task: Task, state: str, error: str, is_lost: bool, traceback: str) -> None:
        """Closes the task's run, once all that its journal holds is in the store."""
        folder = ReplicateFolder(task.work.folder, {})
        records = folder.records()
        self._tracking.log(self._run_ids[task.work.key], records)
        versions = [record["code_version"] for record in records if record["kind"] == "started"]
        tags = {
            "ponderay.error": error[:500],
            "ponderay.lost": str(is_lost).lower(),
            "ponderay.evaluations": json.dumps(sorted(folder.evaluations())),
            "ponderay.code_version": versions[-1] if state == "failed" and versions else (versions or [""])[0],
        }
        self._tracking.store_artifacts(self._run_ids[task.work.key], folder.artifacts)
        self._tracking.finish(self._run_ids.pop(task.work.key), state, tags, traceback)

    def end_condition(self, condition: Condition, replicates: Sequence[Replicate]) -> None:
        """Writes the condition's means and closes its run."""
        self._tracking.summarise_condition(self._condition_run(condition), replicates)

    def close(self) -> None:
        """Leaves nothing RUNNING."""
        for run_id in self._run_ids.values():
            self._tracking.stop(run_id)
        self._tracking.stop_running(self._experiment)

    def _condition_run(self, condition: Condition) -> str:
        if condition.name not in self._condition_ids:
            sweep = self._drafter.sweep
            config: Config = sweep.config(condition, sweep.seeds[0])
            key = content_hash(sweep.name, condition.name, config)
            tags = {
                "ponderay.sweep": sweep.name,
                "ponderay.condition": condition.name,
                "mlflow.note.content": sweep.description,
            }
            self._condition_ids[condition.name] = self._tracking.open_run(
                self._experiment, "condition", key, condition.name, tags, flatten(config)
            )
            self._tracking.store_diff(self._condition_ids[condition.name], provenance.git_diff())
        return self._condition_ids[condition.name]

    def _tags(self, task: Task) -> dict[str, str]:
        return {
            "ponderay.sweep": self._drafter.sweep.name,
            "ponderay.condition": task.condition.name if task.condition else "",
            "ponderay.seed": str(task.seed),
            "ponderay.code_version": task.work.code_version,
            "ponderay.data_fingerprint": task.fingerprint,
            "ponderay.git_commit": provenance.git_commit(),
            "ponderay.packages": provenance.package_versions(),
            "ponderay.command": provenance.command(),
        }
