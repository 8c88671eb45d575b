"""A condition's numbers in MLflow: means over its replicates with their spread, and learning curves.

They stand in the condition's run, so that MLflow's own table and charts show them.
"""

import math
from collections.abc import Sequence

from mlflow.entities import Metric

from orchestrator.results.curves import Curve
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import mean_interval, summarise
from orchestrator.tracking.names import MAX_LENGTH, mean_curve, std_curve, stored_name


def summaries(replicates: Sequence[Replicate], now_ms: int) -> list[Metric]:
    """Mean, standard deviation, number and 95 % t interval of every metric over the complete replicates of a condition.

    The number is also the step, so that a summary of more replicates is the later one. A number that does not exist,
    such as the spread of one replicate, is left out.
    """
    study, condition = Study("", tuple(replicates)), replicates[0].condition
    metrics: list[Metric] = []
    for metric in sorted({name for replicate in replicates for name in replicate.metrics}):
        values = study.values(condition, metric)
        if not values:
            continue
        summary, interval = summarise(values), mean_interval(values)
        numbers = {
            "": summary.mean,
            ".std": summary.std,
            ".n": float(summary.n),
            ".low": interval.low,
            ".high": interval.high,
        }
        metrics += [
            Metric(stored_name(metric) + end, number, now_ms, len(values))
            for end, number in numbers.items()
            if math.isfinite(number) and len(metric + end) <= MAX_LENGTH
        ]
    return metrics


def of_curves(curves: Sequence[Curve]) -> list[Metric]:
    """Means and standard deviations of learning curves by step.

    A mean over runs has no time of its own: its step stands in for it. A metric whose name would become too long for
    MLflow is left out.
    """
    return [
        Metric(name, value, step, step)
        for curve in curves
        for name, values in (
            (mean_curve(curve.metric, curve.n), curve.means),
            (std_curve(curve.metric, curve.n), curve.stds),
        )
        for step, value in zip(curve.steps, values, strict=True)
        if math.isfinite(value) and len(name) <= MAX_LENGTH
    ]
