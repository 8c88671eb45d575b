"""Reads learning curves out of the runs of conditions, into which `condition_metrics.write_curves` wrote them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.results.curves import Curve
from orchestrator.tracking.names import mean_curve, read_mean_curve, std_curve, stored_name
from orchestrator.tracking.replicate_tags import decode

if TYPE_CHECKING:
    from orchestrator.tracking.study_runs import CurveRun, CurveRuns


def read_curves(runs: "CurveRuns", conditions: Sequence[str]) -> tuple[Curve, ...]:
    """The curves of `conditions`, in their order and that of the metrics' names; of each over most replicates.

    Two questions for each curve, and one for each condition.
    """
    found = {condition: runs.run_of(condition) for condition in conditions}
    return tuple(curve for name, run in found.items() if run is not None for curve in _curves(name, run))


def _curves(condition: str, run: "CurveRun") -> list[Curve]:
    there = sorted(found for name in run.metrics if (found := read_mean_curve(name)))
    most = max((n for n, _ in there), default=0)
    names = {stored_name(metric): metric for r in decode(condition, run.tags) for metric in r.metrics}
    return [_curve(run, condition, names.get(stored, stored), n) for n, stored in there if n == most]


def _curve(run: "CurveRun", condition: str, metric: str, n: int) -> Curve:
    """The standard deviation of one replicate was never written."""
    mean, std = mean_curve(metric, n), std_curve(metric, n)
    means, stds = run.history(mean), run.history(std) if std in run.metrics else {}
    steps = sorted(means)
    return Curve(
        condition,
        metric,
        n,
        tuple(steps),
        tuple(means[step] for step in steps),
        tuple(stds.get(step, math.nan) for step in steps),
    )
