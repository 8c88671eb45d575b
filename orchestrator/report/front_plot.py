"""Where everything in the figure of a front lies: one panel for each pair of objectives."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.pareto.attainment import Surface
from orchestrator.report.answers import Answers
from orchestrator.report.condition_table import front_objectives, is_reference_point
from orchestrator.report.front_border import Border, Places
from orchestrator.report.published_points import PublishedPoint, published_points
from orchestrator.report.svg_axis import Axis
from orchestrator.report.svg_labels import Label, place_labels
from orchestrator.statistics.intervals import Interval
from orchestrator.statistics.subsample import subsample
from search_spaces.sweep import Objective

WIDTH: Final = 640
HEIGHT: Final = 420
LEFT, RIGHT, TOP, BOTTOM = 64, 620, 16, 372
CHANCES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_LABELLED: Final = 40
NUM_LABELS: Final = 12


@dataclass(frozen=True)
class Mark:
    """One condition in a panel.

    Attributes:
        row: its number in the table of conditions.
        whiskers: a path along the intervals.
        chance: of being on the front, in six classes; they part at `CHANCES`.
    """

    row: int
    name: str
    x: float
    y: float
    whiskers: str
    chance: int
    is_front: bool
    is_reference: bool


@dataclass(frozen=True)
class Diamond:
    """A published point in a panel; `claim` is the number of its row in the table of claims."""

    claim: int
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Panel:
    """The first objective of the pair upwards, the other to the right.

    Attributes:
        front: a path along the front of the means; empty where the front is of more objectives than these.
        band: a path around the band; empty without one.
    """

    x_axis: Axis
    y_axis: Axis
    x_title: str
    y_title: str
    marks: tuple[Mark, ...]
    diamonds: tuple[Diamond, ...]
    labels: tuple[Label, ...]
    front: str
    band: str


def panels(answers: Answers, shown: Sequence[int]) -> tuple[Panel, ...]:
    """One for each pair of the front's objectives; none for a front of one."""
    count = len(front_objectives(answers))
    return tuple(_panel(answers, shown, y, x) for y, x in itertools.combinations(range(count), 2))


def _panel(answers: Answers, shown: Sequence[int], y: int, x: int) -> Panel:
    front, objectives = answers.front, front_objectives(answers)
    published = published_points(answers, objectives[x].metric, objectives[y].metric)
    x_axis = _axis(answers, shown, x, [point.x for point in published], LEFT, RIGHT)
    y_axis = _axis(answers, shown, y, [point.y for point in published], BOTTOM, TOP)
    marks = tuple(_mark(answers, i, x, y, x_axis, y_axis) for i in shown)
    diamonds = tuple(_diamond(point, x_axis, y_axis) for point in published)
    border = Border(objectives[y], objectives[x], x_axis.limits, y_axis.limits)
    means = [tuple(s.mean for s in point.summaries) for point in front.points if point.is_front]
    line, band = (border.around(means), border.between(front.attainment)) if len(objectives) == 2 else ((), ())
    return Panel(
        x_axis,
        y_axis,
        _title(objectives[x], x_axis),
        _title(objectives[y], y_axis),
        marks,
        diamonds,
        _labels(marks, diamonds),
        _path(line, x_axis, y_axis),
        _path(band, x_axis, y_axis) + "Z" * bool(band),
    )


def _axis(answers: Answers, shown: Sequence[int], i: int, published: Sequence[float], start: float, end: float) -> Axis:
    means = [answers.front.points[j].summaries[i].mean for j in shown]
    bounds = [bound for j in shown for bound in answers.front.memberships[j].intervals[i]]
    return Axis.around([*means, *published], start, end, bounds)


def _title(objective: Objective, axis: Axis) -> str:
    scale = ", logarithmic" if axis.is_log else ""
    better = "higher" if objective.direction == "maximize" else "lower"
    return f"{objective.metric}{axis.unit}{scale} ({better} is better)"


def _mark(answers: Answers, i: int, x: int, y: int, x_axis: Axis, y_axis: Axis) -> Mark:
    point, sure = answers.front.points[i], answers.front.memberships[i]
    across, up = x_axis.at(point.summaries[x].mean), y_axis.at(point.summaries[y].mean)
    whiskers = _whisker(x_axis, sure.intervals[x], f"M{{}} {up}H{{}}")
    whiskers += _whisker(y_axis, sure.intervals[y], f"M{across} {{}}V{{}}")
    is_reference = is_reference_point(answers, point)
    return Mark(i, point.name, across, up, whiskers, chance_class(sure.on_front), point.is_front, is_reference)


def chance_class(share: float) -> int:
    """From 0, up to 5 %, to 5, at least 95 %."""
    return sum(share > bound for bound in CHANCES[:-1]) + (share >= CHANCES[-1])


def _whisker(axis: Axis, interval: Interval, path: str) -> str:
    if math.isnan(interval.low) or interval.low == interval.high:
        return ""
    return path.format(axis.at(interval.low), axis.at(interval.high))


def _diamond(point: PublishedPoint, x_axis: Axis, y_axis: Axis) -> Diamond:
    return Diamond(point.claim, point.text, x_axis.at(point.x), y_axis.at(point.y))


def _labels(marks: Sequence[Mark], diamonds: Sequence[Diamond]) -> tuple[Label, ...]:
    """Names beside the marks, those on the front first; of many marks only some on the front are named."""
    named = sorted(marks, key=lambda mark: (not mark.is_front, not mark.is_reference))
    if len(marks) > MAX_LABELLED:
        on_front = sorted((mark for mark in marks if mark.is_front), key=lambda mark: mark.x)
        chosen = [on_front[i] for i in subsample(len(on_front), NUM_LABELS)]
        named = [*chosen, *(mark for mark in marks if mark.is_reference and not mark.is_front)]
    taken = [(mark.x, mark.y) for mark in marks] + [(diamond.x, diamond.y) for diamond in diamonds]
    return place_labels([(mark.row, mark.name, mark.x, mark.y) for mark in named], taken, (LEFT, TOP, RIGHT, BOTTOM))


def _path(corners: Places, x_axis: Axis, y_axis: Axis) -> str:
    return "M" + "L".join(f"{x_axis.at(x):g} {y_axis.at(y):g}" for x, y in corners) if corners else ""


def attained_text(surfaces: Sequence[Surface]) -> str:
    """What the band is, in words."""
    levels = sorted(surface.level for surface in surfaces)
    return f"border of what {100 * levels[0]:g} to {100 * levels[-1]:g} % of the draws attain" if levels else ""
