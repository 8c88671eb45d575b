"""Fronts: which points no other point beats in every objective at once."""

from collections.abc import Sequence
from dataclasses import replace

import moocore
import numpy as np
from numpy.typing import NDArray

from orchestrator.results.points import Point, centres, points_of
from orchestrator.results.study import Study
from orchestrator.statistics.student import RESOLUTION
from search_spaces.sweep import Objective


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


def on_grid(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means as whole steps of 1e-12 of their column's largest size, so that those which differ by rounding are equal.

    The mean of .1, .2 and .3 is less than .2 in binary numbers, by 3e-17.
    """
    steps = RESOLUTION * np.abs(means).max(axis=0, initial=0.0)
    grid: NDArray[np.float64] = np.round(means / np.where(steps > 0, steps, 1.0))
    return np.where(steps > 0, grid, means)


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


def front(study: Study, objectives: Sequence[Objective]) -> tuple[Point, ...]:
    """Every condition and evaluation that has all objectives, those on the front marked; by the first objective.

    The front is that of the means over replicates.
    """
    points = points_of(study, objectives)
    if not points:
        return ()
    rows = centres(points) * signs(objectives)
    marks = is_minimal(on_grid(rows))
    marked = [replace(point, is_front=bool(mark)) for point, mark in zip(points, marks, strict=True)]
    return tuple(marked[i] for i in np.argsort(rows[:, 0], kind="stable"))


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
