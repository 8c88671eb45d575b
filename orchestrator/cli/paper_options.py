"""Options of commands that draw figures for a paper."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from orchestrator.console.printing import Format
from orchestrator.environment.places import file_at
from trainables.errors import InputError, shown


class PaperFormat(StrEnum):
    """How a query prints, or the kind of figure that it draws for a paper."""

    table = "table"
    json = "json"
    csv = "csv"
    pdf = "pdf"
    svg = "svg"
    png = "png"

    @property
    def printed(self) -> Format | None:
        """How it prints; None for a figure."""
        return next((format for format in Format if format.value == self.value), None)


class LogAxes(StrEnum):
    """Which axes are logarithmic."""

    none = "none"
    x = "x"
    y = "y"
    both = "both"


def _millimetres(given: str | float) -> float:
    try:
        width = float(str(given).strip().removesuffix("mm"))
    except ValueError:
        width = 0.0
    if not 20 <= width <= 1000:
        raise typer.BadParameter(f"It must be a width from 20mm to 1000mm, but got {shown(given)}.")
    return width


OutputFormat = Annotated[
    PaperFormat,
    typer.Option("--format", help="table for people; json and csv for programs; pdf, svg and png for a paper."),
]
Log = Annotated[LogAxes, typer.Option("--log", help="Of a figure for a paper: its logarithmic axes.")]
Size = Annotated[
    float,
    typer.Option("--size", parser=_millimetres, metavar="WIDTH", help="Of a figure for a paper: its width, as 85mm."),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", metavar="NAME=TEXT", help="Of a figure for a paper: what to call a condition; may be repeated."
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", metavar="FILE", help="Of a figure for a paper: its file; default: in runs/figures."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Of a figure for a paper: draws this condition; may be repeated."),
]


PAPER_WIDTH: Final = 85.0
"""Millimetres: a column of a journal."""


def refuse_without_figure(
    format: PaperFormat,
    log: LogAxes,
    size: float,
    labels: list[str] | None,
    output: Path | None,
    only: list[str] | None = None,
) -> Path | None:
    """The path of the output; refuses options of a figure for a paper where none is drawn.

    Raises:
        InputError: if there is one, or the file cannot be made.
    """
    if output:
        output = file_at(output, "--output")
        if format.printed is None and output.suffix != f".{format.value}":
            raise InputError(f"--output must end with .{format.value}, as --format says, but got {shown(str(output))}.")
    given = {"--log": log is not LogAxes.none, "--size": size != PAPER_WIDTH, "--label": labels, "--output": output}
    given |= {"--only": only}
    if format.printed and (options := [name for name, value in given.items() if value]):
        raise InputError(f"{options[0]} is of a figure for a paper: add --format pdf, svg or png.")
    return output


def parse_labels(labels: list[str] | None) -> dict[str, str]:
    """Texts by name; a condition's own name may have the sign between them, so the last one counts."""
    parsed = {}
    for item in labels or []:
        name, sign, text = item.rpartition("=")
        if not sign:
            raise InputError(f"--label must be NAME=TEXT, but got {shown(item)}.")
        parsed[name] = text
    return parsed
