"""A condition's numbers in MLflow: means over its replicates with their spread, and learning curves.

They stand in the condition's run, so that MLflow's own table and charts show them.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlflow.entities import Metric

from orchestrator.results.curves import Curve
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.intervals import mean_interval
from orchestrator.statistics.summary import summarise
from orchestrator.tracking import names
from orchestrator.tracking.names import MAX_LENGTH, mean_curve, read_mean_curve, std_curve, stored_name
from orchestrator.tracking.pages import CONDITIONS
from orchestrator.tracking.replicate_tags import decode
from orchestrator.tracking.runs import write

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from orchestrator.tracking.row_batch import RowBatch


def write_summaries(
    client: "MlflowClient | RowBatch", run_id: str, replicates: Sequence[Replicate], now_ms: int
) -> None:
    """Writes mean, standard deviation, number and 95 % t interval of every metric over the complete replicates.

    The number is also the step, so that a summary of more replicates is the later one. A number that does not exist,
    such as the spread of one replicate, is left out.
    """
    study, condition = Study("", tuple(replicates)), replicates[0].condition
    metrics: list[Metric] = []
    for metric in sorted({name for replicate in replicates for name in replicate.metrics}):
        values = study.values(condition, metric)
        numbers = _numbers(values) if values else {}
        metrics += [
            Metric(stored_name(metric) + end, number, now_ms, len(values))
            for end, number in numbers.items()
            if math.isfinite(number) and len(metric + end) <= MAX_LENGTH
        ]
    write(client, run_id, metrics)


def _numbers(values: Sequence[float]) -> dict[str, float]:
    """By the end of their names."""
    summary, interval = summarise(values), mean_interval(values)
    return {
        "": summary.mean,
        ".std": summary.std,
        ".n": float(summary.n),
        ".low": interval.low,
        ".high": interval.high,
    }


def write_curves(client: "MlflowClient | RowBatch", run_id: str, curves: Sequence[Curve]) -> None:
    """Writes means and standard deviations by step; twice is as good as once.

    A mean over runs has no time of its own: its step stands in for it. A metric whose name would become too long for
    MLflow is left out.
    """
    metrics = [
        Metric(name, value, step, step)
        for curve in curves
        for name, values in (
            (mean_curve(curve.metric, curve.n), curve.means),
            (std_curve(curve.metric, curve.n), curve.stds),
        )
        for step, value in zip(curve.steps, values, strict=True)
        if math.isfinite(value) and len(name) <= MAX_LENGTH
    ]
    write(client, run_id, metrics)


def read_curves(client: "MlflowClient", experiment_id: str, conditions: Sequence[str]) -> tuple[Curve, ...]:
    """The curves of `conditions`, in their order and that of the metrics' names; of each over most replicates.

    Two requests for each curve, and one for each condition.
    """
    runs = {condition: _run_of(client, experiment_id, condition) for condition in conditions}
    return tuple(curve for name, run in runs.items() if run is not None for curve in _curves(client, name, run))


def _run_of(client: "MlflowClient", experiment_id: str, condition: str) -> "Run | None":
    """Names of conditions hold no quotes."""
    wanted = f"{CONDITIONS} AND tags.\"{names.CONDITION}\" = '{condition}'"
    found = client.search_runs([experiment_id], wanted, max_results=1)
    return found[0] if found else None


def _curves(client: "MlflowClient", condition: str, run: "Run") -> list[Curve]:
    there = sorted(found for name in run.data.metrics if (found := read_mean_curve(name)))
    most = max((n for n, _ in there), default=0)
    names = {stored_name(metric): metric for r in decode(condition, run.data.tags) for metric in r.metrics}
    return [_curve(client, run, condition, names.get(stored, stored), n) for n, stored in there if n == most]


def _curve(client: "MlflowClient", run: "Run", condition: str, metric: str, n: int) -> Curve:
    means, stds = (_history(client, run, name) for name in (mean_curve(metric, n), std_curve(metric, n)))
    steps = sorted(means)
    return Curve(
        condition,
        metric,
        n,
        tuple(steps),
        tuple(means[step] for step in steps),
        tuple(stds.get(step, math.nan) for step in steps),
    )


def _history(client: "MlflowClient", run: "Run", name: str) -> dict[int, float]:
    """Nothing where it was never written: the standard deviation of one replicate."""
    if name not in run.data.metrics:
        return {}
    return {int(metric.step): float(metric.value) for metric in client.get_metric_history(run.info.run_id, name)}
