"""Fronts: which points no other point beats in every objective at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import moocore
import numpy as np

from orchestrator.statistics import Summary
from orchestrator.study import Study
from search_spaces.sweep import Objective


@dataclass(frozen=True)
class Point:
    """One condition under one evaluation, with a summary for each objective.

    Attributes:
        is_front: whether no other point's means dominate its means.
    """

    condition: str
    evaluation: str
    summaries: tuple[Summary, ...]
    is_front: bool = False

    @property
    def name(self) -> str:
        """The condition, with the evaluation where it has one."""
        return f"{self.condition}@{self.evaluation}" if self.evaluation else self.condition


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
    points = []
    for condition in study.conditions:
        for evaluation in study.evaluations() or ("",):
            end = f"@{evaluation}" if evaluation else ""
            found = [study.summary(condition, objective.metric + end) for objective in objectives]
            summaries = tuple(summary for summary in found if summary)
            if len(summaries) == len(objectives):
                points.append(Point(condition, evaluation, summaries))
    marks = non_dominated([[s.mean for s in point.summaries] for point in points], objectives)
    marked = [Point(p.condition, p.evaluation, p.summaries, mark) for p, mark in zip(points, marks, strict=True)]
    sign = -1 if objectives[0].direction == "maximize" else 1
    return tuple(sorted(marked, key=lambda point: sign * point.summaries[0].mean))


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
