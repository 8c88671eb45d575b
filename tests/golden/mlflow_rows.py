"""What MLflow's public client tells of the sweeps in a store."""

from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Run

from tests.golden import fixed_words


def rows(uri: str) -> dict[str, dict[str, Any]]:
    """For each experiment its tags, and its runs by kind and name; those of registries are nobody's answer."""
    client = MlflowClient(tracking_uri=uri)
    found = {}
    for experiment in client.search_experiments():
        if not experiment.name.startswith("ponderay."):
            runs = [_row(client, run) for run in client.search_runs([experiment.experiment_id], max_results=1000)]
            runs.sort(key=lambda run: (run["tags"].get("ponderay.kind", ""), run["name"]))
            found[experiment.name] = fixed_words.of("", {"tags": dict(sorted(experiment.tags.items())), "runs": runs})
    return found


def _row(client: MlflowClient, run: Run) -> dict[str, Any]:
    """With every metric as its whole history, steps and values in one line."""
    metrics = {}
    for name in sorted(run.data.metrics):
        if not fixed_words.LEFT_OUT.fullmatch(name):
            points = sorted((point.step, point.value) for point in client.get_metric_history(run.info.run_id, name))
            metrics[name] = ", ".join(f"{step}: {value!r}" for step, value in points)
    return {
        "name": run.info.run_name,
        "status": run.info.status,
        "params": dict(sorted(run.data.params.items())),
        "tags": dict(sorted(run.data.tags.items())),
        "metrics": metrics,
    }
