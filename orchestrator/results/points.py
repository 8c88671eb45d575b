"""Points of a study: each condition under one evaluation, with a summary for each objective."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import Summary, summarise
from search_spaces.sweep import Objective


@dataclass(frozen=True)
class Point:
    """One condition under one evaluation, with a summary for each objective.

    Attributes:
        name: the condition; with the evaluation, where the study has several.
        is_front: whether no other point's means dominate its means.
        seeds: of the complete replicates that have every objective, in order.
        values: for each objective its value under each of the seeds; the summaries are theirs.
    """

    name: str
    condition: str
    evaluation: str
    summaries: tuple[Summary, ...]
    is_front: bool = False
    seeds: tuple[int, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()


def counterpart(evaluation: str, own: Collection[str]) -> str:
    """Which of a condition's `own` evaluations another one's is compared with: the same.

    Without it, the longest whose name it goes on from, behind an underscore: `test_median` is compared with `test`,
    since a name says first what is tested and then how. Without that, the first by name, whatever the results are.
    """
    begun = [name for name in own if evaluation == name or evaluation.startswith(f"{name}_")]
    return max(begun, key=len) if begun else min(own)


def points_of(study: Study, objectives: Sequence[Objective]) -> tuple[Point, ...]:
    """Every condition and evaluation that has all objectives, in the study's order; none is marked as on the front."""
    points, evaluations = [], study.evaluations() or ("",)
    for condition in study.conditions:
        for evaluation in evaluations:
            end = f"@{evaluation}" if evaluation else ""
            seeds, values = _values(study.of(condition), [objective.metric for objective in objectives], end)
            if seeds:
                name = condition + end if len(evaluations) > 1 else condition
                summaries = tuple(summarise(column) for column in values)
                points.append(Point(name, condition, evaluation, summaries, seeds=seeds, values=values))
    return tuple(points)


def _values(
    replicates: Sequence[Replicate], metrics: Sequence[str], end: str
) -> tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]:
    """Seeds of the complete replicates that have a finite value of each metric, and these values, a row a metric.

    A metric that the evaluation does not report is the replicate's own.
    """
    seeds, rows = [], []
    for replicate in replicates:
        found = [replicate.metrics.get(m + end, replicate.metrics.get(m, math.nan)) for m in metrics]
        if replicate.state == "complete" and all(map(math.isfinite, found)):
            seeds.append(replicate.seed)
            rows.append(found)
    return tuple(seeds), tuple(zip(*rows, strict=True))


def centres(points: Sequence[Point]) -> NDArray[np.float64]:
    """Means, a row a point and a column an objective.

    Where nothing varies it is the first value: the rounding of a mean of three and of a mean of five would otherwise
    let one of two equal constants dominate the other.
    """
    return np.array([[_centre(point, i) for i in range(len(point.summaries))] for point in points])


def _centre(point: Point, i: int) -> float:
    summary = point.summaries[i]
    return point.values[i][0] if summary.std == 0 else summary.mean
