"""Figures of `ponderay analyse`: lines in panels, or one bar for each row."""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orchestrator.report.analysis_figures import AnalysisFigure
from trainables.analysis import Lines
from trainables.config import content_hash

WIDTH, ROW_HEIGHT = 8.0, 2.6
PLACE_WIDTH, MAX_WIDTH = 0.18, 40.0
"""Inches: of one place at least, and of the whole figure at most."""

MAX_PANELS = 40
"""How many panels are drawn; the table has all."""

MOST_OF_NAME = 200
MOST_OF_KIND = 40
"""Characters of the name of a figure's file, without what the analysis is called."""

Rows = Sequence[dict[str, Any]]


def draw(
    rows: Rows, columns: Sequence[str], measure: str, lines: Lines | None, path: Path, title: str, about: AnalysisFigure
) -> None:
    """Writes the lines, or else a bar of the measure for each row; error bars are sample standard deviations.

    The file itself says what it is `about`, so that a report of the sweep finds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = _panels(rows, lines) if lines else _bars(rows, columns, measure)
    figure.suptitle(title, parse_math=False)
    figure.savefig(path, dpi=120, metadata={"Source": about.sweep, "Title": about.title, "Description": about.text})


def file_name(title: str, kind: str) -> str:
    """`TITLE.KIND.png` without characters that a file's name may not have; digits tell apart what then looks alike."""
    name, end = (
        re.sub(r"[^A-Za-z0-9=.,_-]+", "_", text)[:most] for text, most in ((title, MOST_OF_NAME), (kind, MOST_OF_KIND))
    )
    if (name, end) != (title, kind):
        name += f".{content_hash(title if end == kind else f'{title}.{kind}')[:8]}"
    return f"{name}.{end}.png"


def _panels(rows: Rows, lines: Lines) -> Figure:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[lines.panel] if lines.panel else "", []).append(row)
    units = lines.units(rows[0])
    drawn = [(group, unit) for group in groups.values() for unit in units][:MAX_PANELS]
    width = min(MAX_WIDTH, max(WIDTH, PLACE_WIDTH * max(len(group) for group, _ in drawn)))
    figure = Figure(figsize=(width, ROW_HEIGHT * len(drawn)), layout="constrained")
    panels = figure.subplots(len(drawn), 1, squeeze=False)[:, 0]
    for axes, (group, unit) in zip(panels, drawn, strict=True):
        _panel(axes, group, lines, units[unit])
        axes.set_ylabel(unit, parse_math=False)
        name = group[0][lines.panel] if lines.panel and not lines.along else ""
        # A text stands for itself, a number is one of its column.
        axes.set_xlabel(name if isinstance(name, str) else f"{lines.panel} {name}", parse_math=False)
    for axes, measures in zip(panels, units.values(), strict=False):
        if len(measures) > 1 or len(units) == 1:
            for text in axes.legend().get_texts():
                text.set_parse_math(False)  # a name stands as it is
    if lines.along:
        panels[-1].set_xlabel(lines.along, parse_math=False)
    return figure


def _panel(axes: Axes, rows: Rows, lines: Lines, measures: Sequence[str]) -> None:
    places = np.arange(len(rows))
    for measure in measures:
        spread = [row[f"{measure}_std"] or 0.0 for row in rows]
        label = lines.measures[measure]
        style = "-" if lines.is_joined else "none"
        means = [_number(row, measure) for row in rows]
        axes.errorbar(places, means, spread, capsize=2, marker="o", linestyle=style, label=label)
    numbers = [number for row in rows for measure in measures if not math.isnan(number := _number(row, measure))]
    if all(number.is_integer() for number in numbers):
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    for place, row in zip(places, rows, strict=True):
        if lines.marked and row[lines.marked]:
            axes.axvspan(place - 0.5, place + 0.5, alpha=0.15)
    axes.set_xticks(places, [str(row[lines.tick]) for row in rows], parse_math=False)
    if lines.above:
        axes.secondary_xaxis("top").set_xticks(places, [str(row[lines.above]) for row in rows], parse_math=False)


def _number(row: Mapping[str, Any], measure: str) -> float:
    """The value of the measure in a row; NaN where no replicate has a finite one."""
    return math.nan if row[measure] is None else float(row[measure])


def _bars(rows: Rows, columns: Sequence[str], measure: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 1.0 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))
    spread = [row[f"{measure}_std"] or 0.0 for row in rows]
    axes.barh(places, [_number(row, measure) for row in rows], xerr=spread, capsize=2)
    axes.set_yticks(places, [", ".join(str(row[column]) for column in columns) for row in rows], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(measure, parse_math=False)
    return figure
