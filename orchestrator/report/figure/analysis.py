"""Figures of `ponderay analyse`: numbers over the words of each sentence, or one bar for each row."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

MEASURES = {"sentences": "bits_before", "suite": "effect_bits", "agreement": "accuracy", "theorems": "share"}
WIDTH, ROW_HEIGHT = 8.0, 2.6
MAX_SENTENCES = 40
"""Shown; the table has all."""


def draw(rows: Sequence[dict[str, Any]], columns: Sequence[str], kind: str, name: str, folder: Path) -> Path:
    """Writes `NAME.KIND.png`; error bars are sample standard deviations over replicates."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{re.sub(r'[^A-Za-z0-9=.,_-]+', '_', name)}.{kind}.png"
    figure = _sentences(rows) if kind == "sentences" else _bars(rows, columns, MEASURES[kind])
    figure.suptitle(name, parse_math=False)
    figure.savefig(path, dpi=120)
    return path


def _sentences(rows: Sequence[dict[str, Any]]) -> Figure:
    groups: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["sentence"], []).append(row)
    groups = dict(list(groups.items())[:MAX_SENTENCES])
    figure = Figure(figsize=(WIDTH, ROW_HEIGHT * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, squeeze=False)[:, 0]
    for axes, words in zip(panels, groups.values(), strict=True):
        _sentence(axes, words)
    panels[0].legend()
    return figure


def _sentence(axes: Axes, words: Sequence[dict[str, Any]]) -> None:
    places = np.arange(len(words))
    for measure, label in (
        ("bits_without", "without recoder"),
        ("bits_before", "before recoding"),
        ("bits_after", "after recoding"),
    ):
        spread = [row[f"{measure}_std"] or 0.0 for row in words]
        axes.errorbar(places, [row[measure] for row in words], spread, capsize=2, marker="o", label=label)
    for place, row in zip(places, words, strict=True):
        if row["is_critical"]:
            axes.axvspan(place - 0.5, place + 0.5, alpha=0.15)
    axes.set_xticks(places, [row["word"] for row in words], parse_math=False)
    axes.set_ylabel("surprisal in bits")


def _bars(rows: Sequence[dict[str, Any]], columns: Sequence[str], measure: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 1.0 + 0.35 * len(rows)), layout="constrained")
    axes = figure.subplots()
    places = np.arange(len(rows))
    axes.barh(places, [row[measure] for row in rows], xerr=[row[f"{measure}_std"] or 0.0 for row in rows], capsize=2)
    axes.set_yticks(places, [", ".join(str(row[column]) for column in columns) for row in rows], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(measure)
    return figure
