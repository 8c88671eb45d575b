"""Rows as CSV: any reader gets the cells back, and a spreadsheet computes none of them."""

import csv
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula, of whoever gave a condition its name."""


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """A line for each row, with \\n at its end; before a text like a formula stands an apostrophe, which hides it."""
    lines: list[str] = []
    # written with \r\n, because what has a sign of the line's end is quoted; readers take a bare \r for one
    writer = csv.writer(SimpleNamespace(write=lines.append), lineterminator="\r\n")
    for row in rows:
        is_formula = [isinstance(cell, str) and cell.startswith(FORMULA) and not _is_number(cell) for cell in row]
        writer.writerow([f"'{cell}" if hides else cell for cell, hides in zip(row, is_formula, strict=True)])
    return "".join(f"{line[:-2]}\n" for line in lines)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isprintable()
