"""Points of a study: each condition under one evaluation, with a summary for each objective."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orchestrator.results.study import Study
from orchestrator.statistics.summary import Summary, summaries
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

    def named(self, metric: str) -> str:
        """The metric as its evaluation reports it: `metric@evaluation`, or itself without one."""
        return f"{metric}@{self.evaluation}" if self.evaluation else metric


def counterpart(evaluation: str, own: Collection[str]) -> str:
    """Which of a condition's `own` evaluations another one's is compared with: the same.

    Without it, the longest whose name it goes on from, behind an underscore: `test_median` is compared with `test`,
    since a name says first what is tested and then how. Without that, the first by name, whatever the results are.
    """
    begun = [name for name in own if evaluation == name or evaluation.startswith(f"{name}_")]
    return max(begun, key=len) if begun else min(own)


def columns_of(metrics: Sequence[str], reported: Collection[str]) -> dict[str, list[str]]:
    """The `reported` name of each of the objectives' metrics, by evaluation; "" is without one.

    A metric that no evaluation reports is the replicate's own, such as a cost of training. An evaluation that lacks one
    which others report is not asked: the same name without an evaluation is a number of training.
    """
    evaluations = sorted({name.partition("@")[2] for name in reported if "@" in name})
    own = {metric for metric in metrics if not any(f"{metric}@{one}" in reported for one in evaluations)}
    tested = evaluations if own != set(metrics) else [""]
    columns = {one: [metric if metric in own else f"{metric}@{one}" for metric in metrics] for one in tested}
    whole = {one: names for one, names in columns.items() if all(name in own or name in reported for name in names)}
    return whole or columns


def points_of(study: Study, objectives: Sequence[Objective]) -> tuple[Point, ...]:
    """Every condition and evaluation that has all objectives, in the study's order; none is marked as on the front."""
    found, reported = [], study.metrics()
    columns = columns_of([objective.metric for objective in objectives], set(reported))
    has_several = len(study.evaluations()) > 1
    for condition in study.conditions:
        for evaluation, names in columns.items():
            complete = [one for one in study.of(condition) if one.state == "complete"]
            pairs = [(one.seed, [one.metrics.get(name, math.nan) for name in names]) for one in complete]
            pairs = [(seed, row) for seed, row in pairs if all(map(math.isfinite, row))]
            if pairs:
                name = f"{condition}@{evaluation}" if evaluation and has_several else condition
                seeds = tuple(seed for seed, _ in pairs)
                found.append((name, condition, evaluation, seeds, tuple(zip(*(row for _, row in pairs), strict=True))))
    by_number: dict[int, list[tuple[float, ...]]] = {}  # of seeds: thousands of columns are summarised at once
    for column in (column for *_, values in found for column in values):
        by_number.setdefault(len(column), []).append(column)
    summary_of: dict[tuple[float, ...], Summary] = {}
    for listed in by_number.values():
        summary_of |= zip(listed, summaries(np.array(listed, np.float64)), strict=True)
    return tuple(
        Point(name, condition, evaluation, tuple(map(summary_of.__getitem__, values)), seeds=seeds, values=values)
        for name, condition, evaluation, seeds, values in found
    )


def centres(points: Sequence[Point]) -> NDArray[np.float64]:
    """Means, a row a point and a column an objective.

    Where nothing varies it is the first value: the rounding of a mean of three and of a mean of five would otherwise
    let one of two equal constants dominate the other.
    """
    pairs = [zip(point.summaries, point.values, strict=True) for point in points]
    return np.array([[values[0] if summary.std == 0 else summary.mean for summary, values in own] for own in pairs])


def sizes(points: Sequence[Point]) -> NDArray[np.float64]:
    """The largest absolute value behind each of `centres`, a row a point and a column an objective."""
    return np.array([[max(map(abs, column)) for column in point.values] for point in points])
