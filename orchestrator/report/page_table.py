"""Tables and settings as a page shows them: some of the rows, each cell with what it is sorted by."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.report.table import INTERVAL, Cell, Column, Table

MAX_CONDITIONS: Final = 60
MAX_PATHS: Final = 12


@dataclass(frozen=True)
class PageCell:
    """A cell; `key` is the raw number, empty where there is none."""

    text: str
    key: str


@dataclass(frozen=True)
class PageRow:
    """A row; `number` is its place in the whole table, and `label` its cells in words, a line each."""

    number: int
    is_marked: bool
    cells: tuple[PageCell, ...]
    label: str


@dataclass(frozen=True)
class PageTable:
    """A table with the rows that are shown.

    Attributes:
        id: of its element, and the start of its rows' ids.
        file: that has the whole table.
        num_rows: of the whole table.
    """

    id: str
    file: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[PageRow, ...]
    num_rows: int
    notes: tuple[str, ...]


def page_table(table: Table, id: str, shown: Sequence[int] | None = None) -> PageTable:
    """The rows of `table` whose numbers are `shown`; default: all."""
    columns = table.as_printed()
    keys = [table.columns.index(column.by) for column in columns]
    numbers = range(len(table.rows)) if shown is None else shown
    headings, rows = [column.heading for column in columns], []
    for i in numbers:
        texts = [column.texts[i] for column in columns]
        cells = (PageCell(text, _key(table.rows[i][key], text)) for text, key in zip(texts, keys, strict=True))
        words = [texts[0]]  # the row's name, then a line for each cell; an interval stands behind its mean
        for heading, text in zip(headings[1:], texts[1:], strict=True):
            if text and heading == INTERVAL:
                words[-1] += f" ({text})"
            elif text:
                words.append(f"{heading}: {text}")
        rows.append(PageRow(i, i in table.marked, tuple(cells), "\n".join(words)))
    return PageTable(id, f"{table.name}.csv", table.title, columns, tuple(rows), len(table.rows), table.notes)


def _key(cell: Cell, text: str) -> str:
    """A cell's number as JavaScript reads it; a text without one, such as `≥1,000`, comes after all numbers."""
    if cell is None and text:
        return "Infinity"
    if isinstance(cell, bool) or not isinstance(cell, float | int) or math.isnan(cell):
        return ""
    return f"{cell:.12g}".replace("inf", "Infinity")


@dataclass(frozen=True)
class Settings:
    """The configs of some conditions.

    Attributes:
        paths: those whose values differ.
        rows: of each condition its name and the values at `paths`.
        shared: path and value of all others.
        notes: what is left out.
    """

    paths: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    shared: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def settings(configs: Mapping[str, Mapping[str, str]], shown: Sequence[str]) -> Settings:
    """The configs of the conditions that are shown, as far as they are known; at most 60 conditions and 12 paths."""
    known = [name for name in dict.fromkeys(shown) if name in configs]
    kept = known[:MAX_CONDITIONS]
    paths = list(dict.fromkeys(path for name in kept for path in configs[name]))
    differing = [path for path in paths if len({configs[name].get(path) for name in kept}) > 1]
    notes = []
    if len(kept) < len(configs):
        notes.append(f"{len(kept)} of {len(configs):,} conditions shown; the table of replicates has all.")
    if len(differing) > MAX_PATHS:
        notes.append(f"{MAX_PATHS} of {len(differing)} settings that differ shown: {', '.join(differing[MAX_PATHS:])}.")
    columns = tuple(differing[:MAX_PATHS])
    rows = tuple((name, tuple(configs[name].get(path, "") for path in columns)) for name in kept)
    shared = tuple((path, configs[kept[0]][path]) for path in paths if path not in set(differing)) if kept else ()
    return Settings(columns, rows, shared, tuple(notes))
