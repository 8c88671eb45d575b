"""Where everything in the figures of learning curves lies: one small figure for each metric."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from orchestrator.report.figure.axis import Area, Axis
from orchestrator.report.numerals import between, decimals, fixed
from orchestrator.results.curves import Curve
from orchestrator.statistics import student
from orchestrator.statistics.subsample import subsample
from orchestrator.statistics.summary import Interval, Summary

AREA: Final = Area(420, 280, 56, 408, 12, 236)
MAX_STEPS: Final = 150
MAX_FIGURES: Final = 24
"""All that a recoding language model of two layers reports in training has room."""

NUM_STEPS_IN_TABLE: Final = 12


@dataclass(frozen=True)
class Line:
    """A condition's curve: paths along the mean and around the 95 % band (empty for one replicate).

    Attributes:
        number: of the condition among those shown, which says how the line looks; None where a search has stopped it.
    """

    number: int | None
    condition: str
    mean: str
    band: str


@dataclass(frozen=True)
class StepRow:
    """Mean and interval of every condition at one step, as text; nothing where it has none."""

    step: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CurveFigure:
    """One metric: its lines, and some of the same numbers as rows of a table."""

    metric: str
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...]
    conditions: tuple[str, ...]
    rows: tuple[StepRow, ...]


def curve_figures(curves: Sequence[Curve], conditions: Sequence[str]) -> tuple[CurveFigure, ...]:
    """A figure for each metric that has a curve of one of the conditions, in the order of the curves; at most 24.

    Curves of one step are left out: there is no line to draw. What a search has stopped early is drawn beside them.
    """
    lines = [curve for curve in curves if len(curve.steps) > 1]
    drawn = [curve for curve in lines if curve.condition in set(conditions) and not curve.is_pruned]
    pruned = [curve for curve in lines if curve.is_pruned]
    metrics = list(dict.fromkeys(curve.metric for curve in drawn))[:MAX_FIGURES]
    return tuple(
        _figure(metric, [c for c in drawn if c.metric == metric], [c for c in pruned if c.metric == metric], conditions)
        for metric in metrics
    )


def curve_metrics(curves: Sequence[Curve]) -> int:
    """How many metrics have a curve."""
    return len({curve.metric for curve in curves if len(curve.steps) > 1})


def _figure(metric: str, curves: Sequence[Curve], pruned: Sequence[Curve], conditions: Sequence[str]) -> CurveFigure:
    curves = sorted(curves, key=lambda curve: conditions.index(curve.condition))
    means = [mean for curve in (*curves, *pruned) for mean in curve.means]
    bounds = [bound for curve in curves for interval in intervals(curve) for bound in interval]
    steps = [float(step) for curve in (*curves, *pruned) for step in (curve.steps[0], curve.steps[-1])]
    x_axis = Axis(min(steps), max(steps), AREA.left, AREA.right)
    y_axis = Axis.around(means, AREA.bottom, AREA.top, bounds)
    lines = []
    for curve in (*pruned, *curves):
        kept = [i for i in subsample(len(curve.steps), MAX_STEPS) if math.isfinite(curve.means[i])]
        places = [(x_axis.at(curve.steps[i]), y_axis.at(curve.means[i])) for i in kept]
        found = intervals(curve)
        ends = [(x_axis.at(curve.steps[i]), found[i]) for i in kept if all(map(math.isfinite, found[i]))]
        upper = [(x, y_axis.at(interval.high)) for x, interval in ends]
        lower = [(x, y_axis.at(interval.low)) for x, interval in ends]
        band = _path([*upper, *reversed(lower)]) + "Z" if len(ends) > 1 else ""
        number = None if curve.is_pruned else conditions.index(curve.condition)
        lines.append(Line(number, curve.condition, _path(places), band))
    names = tuple(curve.condition for curve in curves)
    return CurveFigure(metric, x_axis, y_axis, tuple(lines), names, _rows(curves))


def intervals(curve: Curve) -> tuple[Interval, ...]:
    """Student's t interval of the mean at each step, 95 %; none of one replicate."""
    means, stds = np.array(curve.means), np.array(curve.stds)
    freedom = np.full(len(means), curve.n - 1.0 if curve.n > 1 else math.nan)
    low, high = student.bounds(student.Estimates(means, stds / math.sqrt(curve.n), freedom), 0.95)
    return tuple(map(Interval, low.tolist(), high.tolist()))


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places) if places else ""


def _rows(curves: Sequence[Curve]) -> tuple[StepRow, ...]:
    steps = sorted({step for curve in curves for step in curve.steps})
    places = [{step: i for i, step in enumerate(curve.steps)} for curve in curves]
    digits = decimals(Summary(curve.means[-1], curve.stds[-1], curve.n) for curve in curves)
    rows = []
    for step in (steps[i] for i in subsample(len(steps), NUM_STEPS_IN_TABLE)):
        cells = []
        for curve, at in zip(curves, places, strict=True):
            cell = ""
            if (i := at.get(step)) is not None:
                interval = between(intervals(curve)[i], digits)
                cell = fixed(curve.means[i], digits) + (f" ({interval})" if interval else "")
            cells.append(cell)
        rows.append(StepRow(step, tuple(cells)))
    return tuple(rows)
