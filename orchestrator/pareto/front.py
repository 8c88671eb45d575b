"""Fronts: which points no other point beats in every objective at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import moocore
import numpy as np

from orchestrator.statistics.summary import Summary, summarise
from orchestrator.study import Replicate, Study
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


def non_dominated(values: Sequence[Sequence[float]], objectives: Sequence[Objective]) -> list[bool]:
    """For each row of `values` (one column an objective) whether it is on the front; equal rows stay together.

    Row a dominates row b if it is nowhere worse and somewhere better.
    """
    if not values:
        return []
    maximise = [objective.direction == "maximize" for objective in objectives]
    return [bool(x) for x in moocore.is_nondominated(np.asarray(values, float), maximise=maximise, keep_weakly=True)]


def front(study: Study, objectives: Sequence[Objective]) -> tuple[Point, ...]:
    """Every condition and evaluation that has all objectives, those on the front marked; by the first objective.

    The front is that of the means over replicates.
    """
    points, evaluations = [], study.evaluations() or ("",)
    for condition in study.conditions:
        for evaluation in evaluations:
            end = f"@{evaluation}" if evaluation else ""
            seeds, values = _values(study.of(condition), [objective.metric for objective in objectives], end)
            if seeds:
                name = condition + end if len(evaluations) > 1 else condition
                summaries = tuple(summarise(column) for column in values)
                points.append(Point(name, condition, evaluation, summaries, seeds=seeds, values=values))
    marks = non_dominated([[s.mean for s in point.summaries] for point in points], objectives)
    marked = [replace(point, is_front=mark) for point, mark in zip(points, marks, strict=True)]
    sign = -1 if objectives[0].direction == "maximize" else 1
    return tuple(sorted(marked, key=lambda point: sign * point.summaries[0].mean))


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


def nearest(points: Sequence[Point], count: int) -> tuple[Point, ...]:
    """The `count` dominated points whose means are nearest to one on the front, in the order of `points`.

    The distance is Euclid's, each objective divided by the range of its means.
    """
    is_front = np.array([point.is_front for point in points], bool)
    means = np.array([[summary.mean for summary in point.summaries] for point in points])
    ranges = np.ptp(means, axis=0)
    scaled = means / np.where(ranges > 0, ranges, 1.0)
    squares = np.full(len(points), np.inf)
    for place in scaled[is_front]:
        squares = np.minimum(squares, ((scaled - place) ** 2).sum(1))
    order = np.argsort(np.where(is_front, np.inf, squares), kind="stable")
    return tuple(points[i] for i in sorted(order[: min(count, int((~is_front).sum()))]))


def spread_out(points: Sequence[Point], count: int) -> tuple[Point, ...]:
    """At most `count` (two or more) of `points` at even steps of their order, the first and the last among them."""
    if len(points) <= count:
        return tuple(points)
    return tuple(points[i] for i in np.linspace(0, len(points) - 1, count).round().astype(int))
