"""Tables as a page shows them: some of the rows, each cell with what it is sorted by."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.report.table import INTERVAL, Cell, Column, Table


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
        num_rows: of the whole table.
    """

    id: str
    name: str
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
    rows = tuple(_row(table, columns, keys, i) for i in numbers)
    return PageTable(id, table.name, table.title, columns, rows, len(table.rows), table.notes)


def _row(table: Table, columns: Sequence[Column], keys: Sequence[int], i: int) -> PageRow:
    texts = [column.texts[i] for column in columns]
    cells = (PageCell(text, _key(table.rows[i][key], text)) for text, key in zip(texts, keys, strict=True))
    return PageRow(i, i in table.marked, tuple(cells), _label([column.heading for column in columns], texts))


def _label(headings: Sequence[str], texts: Sequence[str]) -> str:
    """What the row is of, then a line for each cell; an interval stands behind its mean."""
    lines = [texts[0]]
    for heading, text in zip(headings[1:], texts[1:], strict=True):
        if text and heading == INTERVAL:
            lines[-1] += f" ({text})"
        elif text:
            lines.append(f"{heading}: {text}")
    return "\n".join(lines)


def _key(cell: Cell, text: str) -> str:
    """As JavaScript reads numbers; a text without a number, such as `≥1,000`, comes after all numbers."""
    if cell is None and text:
        return "Infinity"
    if isinstance(cell, bool) or not isinstance(cell, float | int) or math.isnan(cell):
        return ""
    return f"{cell:.12g}".replace("inf", "Infinity")
