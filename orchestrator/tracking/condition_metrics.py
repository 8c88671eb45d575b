"""Numbers over replicates, written into their condition's run so that MLflow's own table and charts show them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlflow.entities import Metric

from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.intervals import mean_interval
from orchestrator.statistics.summary import summarise
from orchestrator.tracking import batches as tracking_batches
from orchestrator.tracking.names import MAX_LENGTH, stored_name

if TYPE_CHECKING:
    from mlflow import MlflowClient


def write_summaries(client: "MlflowClient", run_id: str, replicates: Sequence[Replicate], now_ms: int) -> None:
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
    tracking_batches.write(client, run_id, metrics)


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
