"""How commands print: tables for people, json and csv for programs."""

import os
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from orchestrator.console.csv_text import csv_text
from orchestrator.console.json_text import json_text
from trainables.errors import MOST_SAID, shortened

LEAST_COLUMNS: Final = 20
MOST_COLUMNS: Final = 10_000

MOST_OF_MESSAGE: Final = 2_000
"""Characters of what a command says was wrong: many names that it knows have room."""

_WORD: Final = re.compile(rf"\S{{{MOST_SAID + 1},}}")


class HarmlessConsole(Console):
    """A console in which no text does anything: names, descriptions and errors may be anybody's."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, with ? for what a terminal would obey; colours are not in the texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_harmless_lines(segment.text), segment.style)


def fits(renderable: RenderableType, width: int) -> bool:
    """Whether all of it has room in so many columns."""
    return Measurement.get(out, out.options.update(width=MOST_COLUMNS), renderable).maximum <= width


def forget_odd_width() -> None:
    """Unsets COLUMNS where it is no sensible width: with 0 rich prints nothing at all, not even what is wrong."""
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isascii() and columns.isdigit() and len(columns) <= len(str(MOST_COLUMNS))
    if columns and not (is_width and LEAST_COLUMNS <= int(columns) <= MOST_COLUMNS):
        del os.environ["COLUMNS"]


forget_odd_width()
out = HarmlessConsole(highlight=False, emoji=False)
err = HarmlessConsole(stderr=True, highlight=False, emoji=False)

BORDER: Final = 3
"""Characters of a table's borders and margins, a column."""

READABLE: Final = 20
"""Characters that a text keeps beside columns that are not wrapped, if it has so many."""

LEAST: Final = 10
"""The fewest characters with which a column can be read."""


class Format(StrEnum):
    """How a query prints."""

    table = "table"
    json = "json"
    csv = "csv"


OutputFormat = Annotated[Format, typer.Option("--format", help="table for people, json and csv for programs.")]


def say(*sentences: str) -> None:
    """Prints each as it is; a terminal breaks the lines."""
    for sentence in sentences:
        out.print(sentence, soft_wrap=True, markup=False)


def brief_message(message: str) -> str:
    """A message with the beginning of what is long in it, and how long that is; its rule and remedy stay."""
    brief = _WORD.sub(lambda word: shortened(word[0]), message)
    return brief if len(brief) <= MOST_OF_MESSAGE else f"{brief[:MOST_OF_MESSAGE]}... ({len(message):,} characters)"


def harmless(text: str) -> str:
    """Text of anybody's, with ? for signs that would do something in a terminal, a line break too."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _harmless_lines(text: str) -> str:
    return "\n".join(map(harmless, text.split("\n")))


def path_from_here(path: Path) -> str:
    """The path as a user would type it in the working folder."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def print_rows(rows: list[dict[str, Any]], format: Format, title: str, whole: tuple[str, ...] = ()) -> None:
    """Prints records of equal fields.

    For people that is a table whose columns in `whole` are wrapped last; where even that would lose columns, a
    paragraph for each record.
    """
    if format is Format.json:
        print(json_text(rows))
        return
    if format is Format.csv:
        print(to_csv(rows), end="")
        return
    columns = list(rows[0]) if rows else []
    wants = {c: max(map(cell_len, (c, *(str(row[c]) for row in rows)))) for c in columns}
    room = out.width - BORDER * len(columns) - 1
    if sum(min(want, LEAST) for want in wants.values()) > room:
        out.print(title, markup=False)
        for row in rows:
            first, *others = row.items()
            out.print(harmless(str(first[1])), markup=False)
            cells = [
                (name.replace("_", " "), harmless(str(value))) for name, value in others if value not in ("", None)
            ]
            facts = ", ".join(f"{name} {value}" for name, value in cells)
            out.print(Padding(Text(facts), (0, 0, 0, 2)))
        return
    if sum(want if c in whole else min(want, READABLE) for c, want in wants.items()) > room:
        whole = ()
    table = Table(title=Text(title))
    for column in columns:
        table.add_column(column, no_wrap=column in whole, overflow="fold")
    for row in rows:
        table.add_row(*(_harmless_lines(str(value)) for value in row.values()))
    out.print(table, markup=False)


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Records as CSV with a header line; nothing for no records."""
    names = list(rows[0]) if rows else []
    return csv_text([names, *([row.get(name) for name in names] for row in rows)]) if rows else ""
