"""Fronts: which points no other point beats in every objective at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import moocore
import numpy as np
from numpy.typing import NDArray

from orchestrator.results.points import Point, centres, points_of, sizes
from orchestrator.results.study import Study
from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION
from search_spaces.sweep import Objective

MOST_OBJECTIVES: Final = 3
"""The most objectives of a front with its uncertainty."""


def is_minimal(rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether no other row dominates each of `rows`, where less is better in every column.

    Row a dominates row b if it is nowhere worse and somewhere better; so equal rows are on the front together or not at
    all. Infinities are numbers like others. A row with a NaN is never on the front and dominates nothing.

    Args:
        rows: (rows, columns); see `signs`.
    """
    if np.isfinite(rows).all():
        marks: NDArray[np.bool_] = moocore.is_nondominated(rows, keep_weakly=True)
        return marks
    # By ranks, for infinities in three objectives end the process that runs moocore 0.3.2; a NaN has no rank.
    marks, is_whole = np.zeros(len(rows), np.bool_), ~np.isnan(rows).any(axis=1)
    if is_whole.any():
        ranks = [np.unique(column, return_inverse=True)[1] for column in rows[is_whole].T]
        marks[is_whole] = moocore.is_nondominated(np.stack(ranks, axis=1).astype(np.float64), keep_weakly=True)
    return marks


def places(means: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each mean in its column, from 0 for the least; equal for means that differ by rounding only.

    The mean of .1, .2 and .3 is less than .2 in binary numbers, by 3e-17. What is rounding is told by the numbers that
    two means are of, and not by the column, in which one may be 1e300 and others near 1.

    Args:
        sizes: (points, objectives), the largest size of the numbers that each mean is of.
    """
    order = np.argsort(means, axis=0, kind="stable")
    rising, rounding = (np.take_along_axis(values, order, axis=0) for values in (means, RESOLUTION * sizes))
    with np.errstate(over="ignore"):
        steps = np.diff(rising, axis=0) > np.maximum(rounding[1:], rounding[:-1])
    found = np.zeros(means.shape)
    np.put_along_axis(found, order[1:], np.cumsum(steps, axis=0, dtype=np.float64), axis=0)
    return found


def signs(objectives: Sequence[Objective]) -> NDArray[np.float64]:
    """The factors that make less better: 1 for an objective that is minimized, -1 for one that is maximized."""
    return np.array([-1.0 if objective.direction == "maximize" else 1.0 for objective in objectives])


def front(study: Study, objectives: Sequence[Objective]) -> tuple[Point, ...]:
    """Every condition and evaluation that has all objectives, those on the front marked; by the first objective.

    The front is that of the means over replicates.
    """
    points = points_of(study, objectives)
    if not points:
        return ()
    rows = centres(points) * signs(objectives)
    marks = is_minimal(places(rows, sizes(points)))
    marked = [replace(point, is_front=bool(mark)) for point, mark in zip(points, marks, strict=True)]
    return tuple(marked[i] for i in np.argsort(rows[:, 0], kind="stable"))


def nearest(points: Sequence[Point], count: int) -> tuple[Point, ...]:
    """The `count` dominated points whose means are nearest to one on the front, in the order of `points`.

    The distance is Euclid's, each objective divided by the range of its means.
    """
    is_front = np.array([point.is_front for point in points], bool)
    (columns,) = scale.normalised(centres(points).T)
    means = columns.T
    ranges = np.ptp(means, axis=0)
    scaled = means / np.where(ranges > 0, ranges, 1.0)
    squares = np.full(len(points), np.inf)
    for place in scaled[is_front]:
        squares = np.minimum(squares, ((scaled - place) ** 2).sum(1))
    order = np.argsort(np.where(is_front, np.inf, squares), kind="stable")
    return tuple(points[i] for i in sorted(order[: min(count, int((~is_front).sum()))]))
