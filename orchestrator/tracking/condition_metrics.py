"""A condition's numbers in MLflow: means over its replicates with their spread, and learning curves.

They stand in the condition's run, so that MLflow's own table and charts show them.
"""

import math
from collections.abc import Collection, Sequence

from mlflow.entities import Metric

from orchestrator.results.curves import Curve
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import mean_interval, summarise
from orchestrator.tracking.names import MAX_LENGTH, mean_curve, std_curve, stored_name


def summaries(replicates: Sequence[Replicate], now_ms: int, known: Collection[str] = ()) -> list[Metric]:
    """Mean, standard deviation, number and 95 % t interval of every metric over the complete replicates of a condition.

    The step is the number of all replicates, so that a summary of more of them is the later one; of as many, the last
    one that was written, for what was complete may lack an evaluation by now. A number that does not exist, such as the
    spread of one replicate, is left out.

    Args:
        known: names of metrics that an earlier summary may have written; a number that is gone becomes NaN there.
    """
    study, condition = Study("", tuple(replicates)), replicates[0].condition
    metrics: list[Metric] = []
    for metric in sorted({name for replicate in replicates for name in replicate.metrics}):
        numbers = dict.fromkeys(("", ".std", ".n", ".low", ".high"), math.nan)
        if values := study.values(condition, metric):
            summary, interval = summarise(values), mean_interval(values)
            numbers |= {"": summary.mean, ".std": summary.std, ".n": float(summary.n)}
            numbers |= {".low": interval.low, ".high": interval.high}
        by_name = {stored_name(metric) + end: one for end, one in numbers.items() if len(metric + end) <= MAX_LENGTH}
        metrics += [
            Metric(name, number, now_ms, len(replicates))
            for name, number in by_name.items()
            if math.isfinite(number) or name in known
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
