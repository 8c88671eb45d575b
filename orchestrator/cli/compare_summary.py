"""What `ponderay compare` prints."""

import json
import math
from collections.abc import Sequence
from typing import Final

from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as PrintedTable
from rich.text import Text

from orchestrator.console.printing import Format, out
from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.answers import Answers
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.numerals import p_value
from orchestrator.report.table import Cell, Column, Table, to_csv
from orchestrator.results.comparison import Comparison
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.sweep import Sweep

MAX_ROWS: Final = 60
MAX_NOTES: Final = 20
WIDEST: Final = 10_000
SAID: Final = ("a", "b", "metric", "answer")
"""Columns that the first line of a paragraph says."""


def show(sweep: Sweep, study: Study, found: tuple[Comparison, ...], format: Format) -> None:
    """Prints comparisons; for programs with the columns of a report's table of them."""
    no_front = UncertainFront((), (), None, 0, is_exact=True, is_paired=True)
    table = comparison_table(Answers(Question.of(sweep), study, no_front, found, ()))
    if format is Format.table:
        _show_to_people(table, found)
    elif format is Format.csv:
        print(to_csv(table), end="")
    else:
        rows = [dict(zip(table.columns, map(_finite, row), strict=True)) for row in table.rows]
        print(json.dumps(rows, indent=2, allow_nan=False))


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _show_to_people(table: Table, found: Sequence[Comparison]) -> None:
    """A table, or a paragraph for each comparison where it is too wide; then the notes."""
    rows, columns = _readable(found), _columns(table, found)
    printed = _printed(table, columns, rows)
    if Measurement.get(out, out.options.update(width=WIDEST), printed).maximum <= out.width:
        out.print(printed)
    else:
        for i in rows:
            _say(f"{found[i].a} against {found[i].b}, {found[i].metric}: {found[i].answer}")
            facts = [f"{c.heading} {c.texts[i]}" for c in columns if c.by not in SAID and c.texts[i]]
            out.print(Padding(Text(", ".join(facts)), (0, 0, 0, 2)))
    if len(rows) < len(found):
        _say(f"{len(rows)} of {len(found):,} comparisons are shown, those decided first; --format csv lists all.")
    for note in table.notes[:MAX_NOTES]:
        _say(note)
    if len(table.notes) > MAX_NOTES:
        _say(f"{len(table.notes) - MAX_NOTES} more warnings; --format csv lists all.")


def _columns(table: Table, found: Sequence[Comparison]) -> list[Column]:
    """Those of a report's table, with the p-values of both tests."""
    tests = [
        Column("Welch p", tuple(p_value(c.welch_p) for c in found), "welch_p"),
        Column("permutation p", tuple(p_value(c.permutation_p) for c in found), "permutation_p"),
    ]
    columns = list(table.as_printed())
    place = [column.by for column in columns].index("p_holm") + 1
    return [*columns[:place], *tests, *columns[place:]]


def _readable(found: Sequence[Comparison]) -> Sequence[int]:
    """Numbers of the comparisons that are shown: all of few, of many those decided, then those with the smallest p."""
    if len(found) <= MAX_ROWS:
        return range(len(found))
    ranks = [(c.answer == "undecided", 1.0 if math.isnan(c.p_holm) else c.p_holm) for c in found]
    return sorted(range(len(found)), key=lambda i: ranks[i])[:MAX_ROWS]


def _printed(table: Table, columns: Sequence[Column], rows: Sequence[int]) -> PrintedTable:
    printed = PrintedTable(title=Text(table.title))
    for column in columns:
        printed.add_column(Text(column.heading), justify="right" if column.is_number else "left", overflow="fold")
    for i in rows:
        style = "bold" if i in table.marked else ""
        printed.add_row(*(Text(column.texts[i]) for column in columns), style=style)
    return printed


def _say(text: str) -> None:
    out.print(text, soft_wrap=True, markup=False)
