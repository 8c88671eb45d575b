"""Figures for a paper: a front, or a metric against a number, at the size of a column, with text that stays text.

The page's own figures are drawings for a screen. These are drawn by matplotlib, whose figures a notebook shows and a
researcher changes.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orchestrator.report.answers import Answers
from orchestrator.report.condition_table import front_objectives, is_reference_point
from orchestrator.results.varied import Varied
from search_spaces.known_names import known_names
from search_spaces.sweep import Objective
from trainables.errors import InputError

Log = Literal["none", "x", "y", "both"]
MM_PER_INCH: Final = 25.4

SHAPE: Final = 0.72
"""Height of a panel over its width."""

STYLE: Final[Any] = {
    "font.size": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # text that can be searched and edited, not outlines
    "svg.fonttype": "none",
    "svg.hashsalt": "ponderay",  # equal figures are equal files
}
FEW: Final = 12
"""So many points have their names beside them."""


def paper_front(
    answers: Answers, log: Log, width_mm: float, labels: Mapping[str, str] | None, only: Collection[str]
) -> Figure:
    """The front: means with 95 % intervals, filled where they are on it, a square for the reference.

    Three objectives make a panel for each pair, one below the other.

    Arguments and errors are those of `views.Front.plot`.
    """
    front, objectives = answers.front, front_objectives(answers)
    known = {name for point in front.points for name in (point.name, point.condition)}
    for name in (*only, *(labels or {})):
        if name not in known:
            raise InputError(f"{name!r} must be a point of the front; there are {known_names(sorted(known), name)}.")
    drawn = [i for i, point in enumerate(front.points) if not only or {point.name, point.condition} & set(only)]
    pairs = list(itertools.combinations(range(len(objectives)), 2))
    with mpl.rc_context(STYLE):
        figure, panels = _panels(len(pairs), width_mm)
        for axes, (up, across) in zip(panels, pairs, strict=True):
            texts: dict[tuple[float, float], list[str]] = {}
            for i in drawn:
                point, sure = front.points[i], front.memberships[i]
                x, y = point.summaries[across].mean, point.summaries[up].mean
                axes.errorbar(
                    x,
                    y,
                    xerr=_bars(x, sure.intervals[across]),
                    yerr=_bars(y, sure.intervals[up]),
                    fmt="s" if is_reference_point(answers, point) else "o",
                    color="black" if point.is_front else "0.55",
                    markerfacecolor="black" if point.is_front else "white",
                    elinewidth=0.6,
                )
                text = (labels or {}).get(point.name, (labels or {}).get(point.condition, point.name))
                if text and (len(drawn) <= FEW or point.is_front or point.condition in (labels or {})):
                    texts.setdefault((x, y), []).append(text)
            for place, names in texts.items():  # points at one place share a line
                joined = ", ".join(names)
                axes.annotate(joined, place, xytext=(4, 3), textcoords="offset points", parse_math=False)
            if len(pairs) == 1:
                line = sorted(
                    (front.points[i].summaries[across].mean, front.points[i].summaries[up].mean)
                    for i in drawn
                    if front.points[i].is_front
                )
                is_less_better = objectives[across].direction == "minimize"
                xs, ys = [x for x, _ in line], [y for _, y in line]
                axes.step(xs, ys, where="post" if is_less_better else "pre", color="black", linewidth=0.6, zorder=0)
            _set_axes(axes, log, _title(objectives[across]), _title(objectives[up]))
    return figure


def paper_curve(found: Varied, log: Log, width_mm: float, labels: Mapping[str, str]) -> Figure:
    """A metric against the number that a sweep varies: a line through the means of each group, with 95 % intervals.

    Args:
        labels: what to call groups, by name.
    """
    with mpl.rc_context(STYLE):
        figure, (axes,) = _panels(1, width_mm)
        for series in found.series:
            values = [point.value for point in series.points]
            means = [point.summary.mean for point in series.points]
            bars = [_bars(mean, point.interval) for mean, point in zip(means, series.points, strict=True)]
            label = labels.get(series.name, series.name)
            lows, highs = ([bar[i][0] if bar else 0.0 for bar in bars] for i in (0, 1))
            axes.errorbar(values, means, yerr=(lows, highs), marker="o", elinewidth=0.6, label=label)
        for series in found.references:
            label = labels.get(series.name, series.name)
            axes.axhline(series.points[0].summary.mean, color="0.55", linestyle="--", linewidth=0.6, label=label)
        _set_axes(axes, log, found.path, found.metric)
        if len(found.series) + len(found.references) > 1:
            for text in axes.legend().get_texts():
                text.set_parse_math(False)  # a name stands as it is
    return figure


def save_figure(figure: Figure, file: Path) -> None:
    """Writes a figure in the format that the file's ending names; equal figures make equal files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    when = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(file.suffix)
    with mpl.rc_context(STYLE):
        figure.savefig(file, metadata=when, dpi=600)


def _panels(num_panels: int, width_mm: float) -> tuple[Figure, Sequence[Axes]]:
    width = width_mm / MM_PER_INCH
    figure = Figure(figsize=(width, num_panels * SHAPE * width), layout="constrained")
    return figure, list(figure.subplots(num_panels, squeeze=False)[:, 0])


def _bars(mean: float, interval: tuple[float, float]) -> tuple[list[float], list[float]] | None:
    """How far the interval goes below and above the mean; None where there is none."""
    if not all(map(math.isfinite, interval)):
        return None
    return [max(0.0, mean - interval[0])], [max(0.0, interval[1] - mean)]


def _set_axes(axes: Axes, log: Log, x_title: str, y_title: str) -> None:
    if log in ("x", "both"):
        axes.set_xscale("log")
    if log in ("y", "both"):
        axes.set_yscale("log")
    axes.set_xlabel(x_title, parse_math=False)
    axes.set_ylabel(y_title, parse_math=False)


def _title(objective: Objective) -> str:
    return f"{objective.metric} ({'higher' if objective.direction == 'maximize' else 'lower'} is better)"
