"""Where everything in the figure of a metric against a varied number lies, and the figure's PNG."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.report.figure.axis import Area, Axis
from orchestrator.report.numerals import between, decimals, estimate
from orchestrator.report.render import image, to_png
from orchestrator.results.varied import SeriesPoint, Varied

AREA: Final = Area(420, 280, 64, 408, 12, 236)
MAX_FIGURES: Final = 12
MAX_LINES: Final = 12
CAP: Final = 3
LEGEND_LINE: Final = 18


@dataclass(frozen=True)
class Line:
    """A series: a path through its means, whiskers of their intervals, and the means as places."""

    number: int
    name: str
    mean: str
    whiskers: str
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class PointRow:
    """A point of a series in words: mean ± standard deviation, n, and the interval."""

    group: str
    value: str
    mean: str
    interval: str


@dataclass(frozen=True)
class VariedFigure:
    """One metric against one number.

    Attributes:
        lines: the groups; the reference where it has no such number is the last, without places.
        num_left_out: series that are not drawn.
    """

    metric: str
    path: str
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...]
    rows: tuple[PointRow, ...]
    num_left_out: int = 0

    @property
    def x_title(self) -> str:
        """The path with the power of ten, and whether the axis is logarithmic."""
        return f"{self.path}{self.x_axis.unit}{', logarithmic' if self.x_axis.is_log else ''}"

    @property
    def y_title(self) -> str:
        """The metric with the power of ten, and whether the axis is logarithmic."""
        return f"{self.metric}{self.y_axis.unit}{', logarithmic' if self.y_axis.is_log else ''}"


def varied_figures(found: tuple[Varied, ...]) -> tuple[VariedFigure, ...]:
    """A figure for each, at most 12."""
    return tuple(varied_figure(one) for one in found[:MAX_FIGURES])


def varied_figure(found: Varied) -> VariedFigure:
    """The figure, of at most 12 series; an axis is logarithmic where its values, all above 0, span 50 times or more."""
    series = found.series[:MAX_LINES]
    every = [point for one in (*series, *found.references) for point in one.points]
    x_axis = Axis.around([point.value for one in series for point in one.points], AREA.left, AREA.right)
    bounds = [bound for point in every for bound in point.interval]
    y_axis = Axis.around([point.summary.mean for point in every], AREA.bottom, AREA.top, bounds)
    lines = []
    for i, one in enumerate(series):
        places = tuple((x_axis.at(point.value), y_axis.at(point.summary.mean)) for point in one.points)
        whiskers = "".join(_whisker(x, point, y_axis) for (x, _), point in zip(places, one.points, strict=True))
        lines.append(Line(i, one.name, _path(places), whiskers, places))
    for i, one in enumerate(found.references, len(series)):  # across the figure, with its interval at the right end
        (point,) = one.points
        y = y_axis.at(point.summary.mean)
        across = _path(((AREA.left, y), (AREA.right, y)))
        lines.append(Line(i, one.name, across, _whisker(AREA.right - 6, point, y_axis), ()))
    digits = decimals(point.summary for point in every)
    rows = tuple(
        PointRow(
            one.name,
            "" if math.isnan(point.value) else f"{point.value:g}",
            f"{estimate(point.summary, digits)} (n = {point.summary.n})",
            between(point.interval, digits),
        )
        for one in (*series, *found.references)
        for point in one.points
    )
    left_out = len(found.series) - len(series)
    return VariedFigure(found.metric, found.path, x_axis, y_axis, tuple(lines), rows, left_out)


def draw(figure: VariedFigure, sweep: str, file: Path) -> None:
    """Writes the figure as PNG."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(to_png(image("varied.svg", figure=figure, sweep=sweep, area=AREA, legend_line=LEGEND_LINE)))


def _whisker(x: float, point: SeriesPoint, y_axis: Axis) -> str:
    """What reaches out of the figure has no cap at that end."""
    if not all(map(math.isfinite, point.interval)):
        return ""
    low, high = (y_axis.at(bound) for bound in point.interval)
    inside = (y_axis.at(bound) for bound in point.interval if y_axis.holds(bound))
    caps = "".join(f"M{x - CAP:g} {y:g}H{x + CAP:g}" for y in inside)
    return f"M{x:g} {low:g}V{high:g}{caps}"


def _path(places: tuple[tuple[float, float], ...]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
