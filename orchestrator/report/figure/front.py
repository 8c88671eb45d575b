"""Where everything in the figure of a front lies: one panel for each pair of objectives."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from orchestrator.pareto.attainment import Surface
from orchestrator.pareto.front import signs
from orchestrator.report.answers import Answers
from orchestrator.report.condition_table import front_objectives, is_reference_point
from orchestrator.report.figure.axis import Area, Axis
from orchestrator.report.render import font_file
from orchestrator.statistics.subsample import subsample
from orchestrator.statistics.summary import Interval
from search_spaces.sweep import Objective

FONT_SIZE: Final = 12
LINE_HEIGHT: Final = 14.0
MAX_CHARACTERS: Final = 28
GAP: Final = 9.0
DIAGONAL: Final = 5.5

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Label:
    """A name: the left end of its base line, and the row that it belongs to."""

    row: int
    text: str
    x: float
    y: float


def place_labels(
    named: Sequence[tuple[int, str, float, float]], taken: Sequence[tuple[float, float]], frame: Box
) -> tuple[Label, ...]:
    """Labels of as many of the `named` (row, name, x, y) as fit, the first ones first.

    Each lies beside its point, rather off its whiskers, inside the frame (left, top, right, bottom), and covers no
    other label and none of the points that are `taken`.
    """
    boxes: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in taken]
    labels = []
    for row, name, x, y in named:
        text = name if len(name) <= MAX_CHARACTERS else f"{name[: MAX_CHARACTERS - 1]}…"
        for box in _places(x, y, text_width(text)):
            if _is_inside(box, frame) and not any(_overlap(box, other) for other in boxes):
                boxes.append(box)
                labels.append(Label(row, text, round(box[0], 1), round(box[3] - 3, 1)))
                break
    return tuple(labels)


def text_width(text: str) -> float:
    """How wide a label is in that font."""
    from PIL import ImageFont

    return ImageFont.truetype(font_file(), FONT_SIZE).getlength(text)


def _places(x: float, y: float, width: float) -> list[Box]:
    half = LINE_HEIGHT / 2
    right, left, above, below = x + DIAGONAL, x - DIAGONAL - width, y - DIAGONAL - LINE_HEIGHT, y + DIAGONAL
    corners = [(right, above), (right, below), (left, above), (left, below)]
    corners += [(x + GAP, y - half), (x - GAP - width, y - half), (x - width / 2, y - GAP - LINE_HEIGHT)]
    return [(left, top, left + width, top + LINE_HEIGHT) for left, top in corners]


def _is_inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


AREA: Final = Area(640, 420, 64, 620, 16, 372)
CHANCES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
CROWD: Final = 60
MAX_LABELS: Final = 40
FEW: Final = 12
"""So many marks are all named, where there is room."""

WHISKERS: Final = "95 % intervals of the means, cut at the frame"

Corners = tuple[tuple[float, float], ...]
"""A border of what is attained, as corners to draw a line through."""


@dataclass(frozen=True)
class Published:
    """A row of a published table, as a point beside a front.

    Attributes:
        values: of the metrics that it has, in the study's unit.
        text: what it is, in a line or more.
        legend: `published (Lugosch et al. 2020)`, or `published, other data`.
        is_comparable: whether it is of the same data and sizes; where not, it does not stretch the axes.
        row: the id of its row in a table of the page; empty where it has none.
    """

    values: Mapping[str, float]
    text: str
    legend: str
    is_comparable: bool = True
    row: str = ""

    @property
    def kind(self) -> str:
        """The name of the kind of mark in the style sheet."""
        return "published" if self.is_comparable else "other"


@dataclass(frozen=True)
class Mark:
    """One condition in a panel.

    Attributes:
        row: its number in the table of conditions.
        whiskers: a path along the intervals; `is_faint` where it shows only under the pointer.
        chance: of being on the front, in six classes; they part at `CHANCES`.
    """

    row: int
    name: str
    x: float
    y: float
    whiskers: str
    is_faint: bool
    chance: int
    is_front: bool
    is_reference: bool


@dataclass(frozen=True)
class Diamond:
    """A published point in a panel; `kind`, `row` and `text` as in `Published`."""

    kind: str
    row: str
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class _Border:
    """Two objectives of a panel, up to whose limits borders go."""

    upwards: Objective
    across: Objective
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]

    def around(self, rows: Sequence[Sequence[float]]) -> Corners:
        """Corners around what `rows` (upwards, across) attain, from the limit of the worst y to that of the worst x."""
        if not rows:
            return ()
        sign = signs((self.across, self.upwards))
        worst = np.max(np.array([self.x_limits, self.y_limits]) * sign[:, None], axis=1)
        places = np.array(rows)[:, ::-1] * sign
        places = places[np.argsort(places[:, 0], kind="stable")]
        corners = [(places[0, 0], max(worst[1], places[0, 1]))]
        for x, y in places:
            corners += [(x, corners[-1][1]), (x, y)]
        corners.append((max(worst[0], places[-1, 0]), corners[-1][1]))
        return tuple((float(x), float(y)) for x, y in np.array(corners) * sign)

    def between(self, surfaces: Sequence[Surface]) -> Corners:
        """Corners around what the first level attains and the last one does not."""
        if not (surfaces and surfaces[0].steps and surfaces[-1].steps):
            return ()
        return (*self.around(surfaces[0].steps), *reversed(self.around(surfaces[-1].steps)))


@dataclass(frozen=True)
class Panel:
    """The first objective of the pair upwards, the other to the right.

    Attributes:
        front: a path along the front of the means; empty where the front is of more objectives than these.
        band: a path around what 5 % of the draws attain and 95 % do not; empty likewise, and without draws.
        seeds: paths along what 1, 2 and more of the seeds attain; none likewise.
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
    seeds: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A panel for each pair of objectives.

    Attributes:
        legend: kinds of signs, each with its text.
    """

    panels: tuple[Panel, ...]
    legend: tuple[tuple[str, str], ...]
    area: Area = AREA


def front_figure(answers: Answers, shown: Sequence[int], published: Sequence[Published] = ()) -> Figure:
    """The figure of the points numbered `shown` and of what was published; without panels for one objective."""
    pairs = itertools.combinations(front_objectives(answers), 2)
    panels = tuple(_panel(answers, shown, published, y, x) for y, x in pairs)
    return Figure(panels, tuple(_legend(answers, panels, published)) if panels else ())


def chance_class(share: float) -> int:
    """From 0, up to 5 %, to 5, at least 95 %."""
    return sum(share > bound for bound in CHANCES[:-1]) + (share >= CHANCES[-1])


def _legend(answers: Answers, panels: Sequence[Panel], published: Sequence[Published]) -> Iterator[tuple[str, str]]:
    line = ", which the line follows" if panels[0].front else ""
    yield "on", f"ringed: on the front of the means{line}"
    if answers.front.reference:
        yield "reference", "the reference"
    for kind, legend in dict.fromkeys((one.kind, one.legend) for one in published):
        rows = [one for one in published if one.legend == legend]
        num_drawn = len({d.text for panel in panels for d in panel.diamonds} & {one.text for one in rows})
        outside = f" ({len(rows) - num_drawn} of {len(rows)} outside the figure)" if num_drawn < len(rows) else ""
        yield kind, legend + outside
    if panels[0].band:
        levels = sorted(surface.level for surface in answers.front.attainment)
        yield "band", f"border of what {100 * levels[0]:g} to {100 * levels[-1]:g} % of the draws attain"
    yield "whisker", WHISKERS


def _panel(answers: Answers, shown: Sequence[int], published: Sequence[Published], y: Objective, x: Objective) -> Panel:
    drawn = [one for one in published if x.metric in one.values and y.metric in one.values]
    x_axis = _axis(answers, shown, x, drawn, AREA.left, AREA.right)
    y_axis = _axis(answers, shown, y, drawn, AREA.bottom, AREA.top)
    i, j = (front_objectives(answers).index(objective) for objective in (x, y))
    marks = []
    for row in shown:
        point, sure = answers.front.points[row], answers.front.memberships[row]
        across, up = x_axis.at(point.summaries[i].mean), y_axis.at(point.summaries[j].mean)
        whiskers = _whisker(x_axis, sure.intervals[i], f"M{{}} {up}H{{}}")
        whiskers += _whisker(y_axis, sure.intervals[j], f"M{across} {{}}V{{}}")
        is_faint, chance = len(shown) > CROWD and not point.is_front, chance_class(sure.on_front)
        is_reference = is_reference_point(answers, point)
        marks.append(Mark(row, point.name, across, up, whiskers, is_faint, chance, point.is_front, is_reference))
    diamonds = tuple(
        Diamond(one.kind, one.row, one.text, x_axis.at(one.values[x.metric]), y_axis.at(one.values[y.metric]))
        for one in drawn
        if x_axis.holds(one.values[x.metric]) and y_axis.holds(one.values[y.metric])
    )
    front, band, seeds = _borders(answers, x, y, x_axis, y_axis)
    titles = _title(x, x_axis), _title(y, y_axis)
    return Panel(x_axis, y_axis, *titles, tuple(marks), diamonds, _labels(marks, diamonds), front, band, seeds)


def _axis(
    answers: Answers,
    shown: Sequence[int],
    objective: Objective,
    published: Sequence[Published],
    start: float,
    end: float,
) -> Axis:
    i, front = front_objectives(answers).index(objective), answers.front
    values = [front.points[j].summaries[i].mean for j in shown]
    values += [one.values[objective.metric] for one in published if one.is_comparable]
    return Axis.around(values, start, end, [bound for j in shown for bound in front.memberships[j].intervals[i]])


def _title(objective: Objective, axis: Axis) -> str:
    scale = ", logarithmic" if axis.is_log else ""
    better = "higher" if objective.direction == "maximize" else "lower"
    return f"{objective.metric}{axis.unit}{scale} ({better} is better)"


def _whisker(axis: Axis, interval: Interval, path: str) -> str:
    if math.isnan(interval.low) or interval.low == interval.high:
        return ""
    return path.format(axis.at(interval.low), axis.at(interval.high))


def _borders(
    answers: Answers, x: Objective, y: Objective, x_axis: Axis, y_axis: Axis
) -> tuple[str, str, tuple[str, ...]]:
    """Paths along the front of the means, around the band and along what numbers of seeds attain."""
    front = answers.front
    if len(front_objectives(answers)) > 2:
        return "", "", ()
    border = _Border(y, x, x_axis.limits, y_axis.limits)
    means = [tuple(summary.mean for summary in point.summaries) for point in front.points if point.is_front]
    band = _path(border.between(front.attainment), x_axis, y_axis)
    seeds = (_path(border.around(surface.steps), x_axis, y_axis) for surface in front.seed_attainment)
    return _path(border.around(means), x_axis, y_axis), band and f"{band}Z", tuple(filter(None, seeds))


def _labels(marks: Sequence[Mark], diamonds: Sequence[Diamond]) -> tuple[Label, ...]:
    """Names beside the reference and the marks on the front, of very many at even steps; of few marks beside all.

    The others are shown where the pointer rests.
    """
    on_front = sorted((mark for mark in marks if mark.is_front), key=lambda mark: mark.x)
    named = [mark for mark in marks if mark.is_reference][:MAX_LABELS]
    named += [on_front[i] for i in subsample(len(on_front), MAX_LABELS)]
    if len(marks) <= FEW:
        named += marks
    named = list(dict.fromkeys(named))
    taken = [(mark.x, mark.y) for mark in marks] + [(diamond.x, diamond.y) for diamond in diamonds]
    frame = (AREA.left, AREA.top, AREA.right, AREA.bottom)
    return place_labels([(mark.row, mark.name, mark.x, mark.y) for mark in named], taken, frame)


def _path(corners: Corners, x_axis: Axis, y_axis: Axis) -> str:
    return "M" + "L".join(f"{x_axis.at(x):g} {y_axis.at(y):g}" for x, y in corners) if corners else ""
