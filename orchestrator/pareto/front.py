"""Fronts: which points no other point beats in every objective at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import moocore
import numpy as np
from numpy.typing import NDArray

from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.subsample import subsample
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


def non_dominated(values: Sequence[Sequence[float]], objectives: Sequence[Objective]) -> list[bool]:
    """For each row of `values` (one column an objective) whether it is on the front: no other row dominates it.

    Row a dominates row b if it is nowhere worse and somewhere better; so equal rows are on the front together or not at
    all. Infinities are numbers like others. A row with a NaN is never on the front and dominates nothing.
    """
    if len(values) == 0:
        return []
    return [bool(mark) for mark in is_minimal(np.asarray(values, np.float64) * signs(objectives))]


def is_minimal(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """As `non_dominated`, where less is better in every column."""
    if not np.isfinite(rows).all():
        return _is_minimal_with_infinities(rows)
    marks: NDArray[np.bool_] = moocore.is_nondominated(rows, keep_weakly=True)
    return marks


def _is_minimal_with_infinities(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """By the ranks of rows without a NaN: infinities in three objectives end the process that runs moocore 0.3.2."""
    marks, is_whole = np.zeros(len(rows), np.bool_), ~np.isnan(rows).any(axis=1)
    if is_whole.any():
        columns = [np.unique(column, return_inverse=True)[1] for column in rows[is_whole].T]
        marks[is_whole] = moocore.is_nondominated(np.stack(columns, axis=1).astype(np.float64), keep_weakly=True)
    return marks


def signs(objectives: Sequence[Objective]) -> NDArray[np.float64]:
    """What makes less better: 1 for an objective that is minimized, -1 for one that is maximized."""
    return np.array([-1.0 if objective.direction == "maximize" else 1.0 for objective in objectives])


def centres(points: Sequence[Point]) -> NDArray[np.float64]:
    """Means, a row a point and a column an objective.

    Where nothing varies it is the first value: the rounding of a mean of three and of a mean of five would otherwise
    let one of two equal constants dominate the other.
    """
    return np.array([[_centre(point, i) for i in range(len(point.summaries))] for point in points])


def _centre(point: Point, i: int) -> float:
    summary = point.summaries[i]
    return point.values[i][0] if summary.std == 0 else summary.mean


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
    if not points:
        return ()
    rows = centres(points) * signs(objectives)
    marked = [replace(point, is_front=bool(mark)) for point, mark in zip(points, is_minimal(rows), strict=True)]
    return tuple(marked[i] for i in np.argsort(rows[:, 0], kind="stable"))


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
    means = centres(points)
    ranges = np.ptp(means, axis=0)
    scaled = means / np.where(ranges > 0, ranges, 1.0)
    squares = np.full(len(points), np.inf)
    for place in scaled[is_front]:
        squares = np.minimum(squares, ((scaled - place) ** 2).sum(1))
    order = np.argsort(np.where(is_front, np.inf, squares), kind="stable")
    return tuple(points[i] for i in sorted(order[: min(count, int((~is_front).sum()))]))


def spread_out(points: Sequence[Point], count: int) -> tuple[Point, ...]:
    """At most `count` (two or more) of `points` at even steps of their order, the first and the last among them."""
    return tuple(points[i] for i in subsample(len(points), count))
