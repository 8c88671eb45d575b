"""Figures of `ponderay analyse`: lines in panels, or one bar for each row."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainables.analysis import Lines

WIDTH, ROW_HEIGHT = 8.0, 2.6
MAX_PANELS = 40
"""Shown; the table has all."""

Rows = Sequence[dict[str, Any]]


def draw(rows: Rows, columns: Sequence[str], measure: str, lines: Lines | None, path: Path, title: str) -> None:
    """Writes the lines, or else a bar of the measure for each row; error bars are sample standard deviations."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = _panels(rows, lines) if lines else _bars(rows, columns, measure)
    figure.suptitle(title, parse_math=False)
    figure.savefig(path, dpi=120)


def file_name(title: str, kind: str) -> str:
    """`TITLE.KIND.png` without characters that a file's name may not have."""
    return f"{re.sub(r'[^A-Za-z0-9=.,_-]+', '_', title)}.{kind}.png"


def _panels(rows: Rows, lines: Lines) -> Figure:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[lines.panel], []).append(row)
    groups = dict(list(groups.items())[:MAX_PANELS])
    figure = Figure(figsize=(WIDTH, ROW_HEIGHT * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axes, group in zip(panels, groups.values(), strict=True):
        _panel(axes, group, lines)
    panels[0].legend()
    return figure


def _panel(axes: Axes, rows: Rows, lines: Lines) -> None:
    places = np.arange(len(rows))
    for measure, label in lines.measures.items():
        spread = [row[f"{measure}_std"] or 0.0 for row in rows]
        axes.errorbar(places, [row[measure] for row in rows], spread, capsize=2, marker="o", label=label)
    for place, row in zip(places, rows, strict=True):
        if lines.marked and row[lines.marked]:
            axes.axvspan(place - 0.5, place + 0.5, alpha=0.15)
    axes.set_xticks(places, [str(row[lines.tick]) for row in rows], parse_math=False)
    axes.set_ylabel(lines.axis)


def _bars(rows: Rows, columns: Sequence[str], measure: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 1.0 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))
    axes.barh(places, [row[measure] for row in rows], xerr=[row[f"{measure}_std"] or 0.0 for row in rows], capsize=2)
    axes.set_yticks(places, [", ".join(str(row[column]) for column in columns) for row in rows], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(measure)
    return figure
