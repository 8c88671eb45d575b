"""How commands print: tables for people, json and csv for programs."""

import csv
import io
import json
import os
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

LEAST_COLUMNS: Final = 20
MOST_COLUMNS: Final = 10_000


def forget_odd_width() -> None:
    """With COLUMNS=0 rich prints nothing at all, not even what is wrong."""
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isascii() and columns.isdigit() and len(columns) <= len(str(MOST_COLUMNS))
    if columns and not (is_width and LEAST_COLUMNS <= int(columns) <= MOST_COLUMNS):
        del os.environ["COLUMNS"]


forget_odd_width()
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class Format(StrEnum):
    """How a query prints."""

    table = "table"
    json = "json"
    csv = "csv"


OutputFormat = Annotated[Format, typer.Option("--format", help="table for people, json and csv for programs.")]


def print_rows(rows: list[dict[str, Any]], format: Format, title: str, whole: tuple[str, ...] = ()) -> None:
    """Records of equal fields; columns named in `whole` are never wrapped."""
    if format is Format.json:
        print(json.dumps(rows, indent=2))
    elif format is Format.csv:
        print(to_csv(rows), end="")
    else:
        table = Table(title=title)
        for column in rows[0] if rows else ():
            table.add_column(column, no_wrap=column in whole, overflow="fold")
        for row in rows:
            table.add_row(*(str(value) for value in row.values()))
        out.print(table, markup=False)


def to_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Records as CSV with a header line; nothing for no records."""
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
