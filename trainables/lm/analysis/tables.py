"""Tables that users bring, read with errors that name the line."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trainables.errors import InputError
from trainables.texts import read_text

REMEDY: Final = "give another path"


def rows_of(path: Path, columns: Iterable[str], delimiter: str) -> list[dict[str, str]]:
    """The rows of a table with a header, by column and without blanks around the cells.

    Raises:
        InputError: if the file cannot be read, lacks one of `columns` or any row, or has a row of another length.
    """
    cells = _cells(path, delimiter)
    header = cells[0][1] if cells else []
    if missing := [column for column in columns if column not in header]:
        names = ", ".join(" ".join(cell.split()) for cell in header) or "none"
        raise InputError(f"{path} must have a column {missing[0]}, but has {names}; add it.")
    if len(cells) < 2:
        raise InputError(f"{path} must have rows below its header, but has none; give another file.")
    for line, row in cells:
        if len(row) != len(header):
            raise InputError(f"Line {line} of {path} must have {len(header)} cells, but has {len(row)}; correct it.")
    return [dict(zip(header, row, strict=True)) for _, row in cells[1:]]


def _cells(path: Path, delimiter: str) -> list[tuple[int, list[str]]]:
    """The number of the last line and the cells of each row that is not empty."""
    reader = csv.reader(io.StringIO(read_text(path, REMEDY), newline=""), delimiter=delimiter, strict=True)
    try:
        return [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise InputError(
            f"{path} must be a table, but breaks off at line {reader.line_num}: {error}; correct it."
        ) from None
