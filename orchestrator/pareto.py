"""Fronts: which points no other point beats in every objective at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import moocore
import numpy as np

from orchestrator.study import Study
from search_spaces.sweep import Objective

if TYPE_CHECKING:
    from orchestrator.statistics import Summary


@dataclass(frozen=True)
class Point:
    """One condition under one evaluation, with a summary for each objective.

    Attributes:
        name: the condition; with the evaluation, where the study has several.
        is_front: whether no other point's means dominate its means.
    """

    name: str
    condition: str
    evaluation: str
    summaries: tuple["Summary", ...]
    is_front: bool = False


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
            names = [objective.metric for objective in objectives]
            found = [study.summary(condition, name + end) or study.summary(condition, name) for name in names]
            summaries = tuple(summary for summary in found if summary)
            if len(summaries) == len(objectives):
                name = condition + end if len(evaluations) > 1 else condition
                points.append(Point(name, condition, evaluation, summaries))
    marks = non_dominated([[s.mean for s in point.summaries] for point in points], objectives)
    marked = [replace(point, is_front=mark) for point, mark in zip(points, marks, strict=True)]
    sign = -1 if objectives[0].direction == "maximize" else 1
    return tuple(sorted(marked, key=lambda point: sign * point.summaries[0].mean))


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


def hypervolume(points: Sequence[Point], objectives: Sequence[Objective]) -> tuple[float, tuple[float, ...]] | None:
    """Volume that the front's means dominate, and the reference point: the worst mean of each objective, 1 % further.

    None for fewer than two points.
    """
    if len(points) < 2:
        return None
    signs = np.array([-1.0 if objective.direction == "maximize" else 1.0 for objective in objectives])
    means = np.array([[summary.mean for summary in point.summaries] for point in points]) * signs
    reference = means.max(0) + 0.01 * np.abs(means.max(0))
    return float(moocore.hypervolume(means, ref=reference)), tuple(float(x) for x in reference * signs)
