"""A table of a report, whatever it is written as."""

from dataclasses import dataclass

Cell = str | float | int | bool | None


@dataclass(frozen=True)
class Table:
    """Rows of equal columns.

    Attributes:
        name: a file's name without its ending.
        rows: raw values; None is an empty cell.
        marked: numbers of the rows that are marked, those on the front.
        notes: sentences below it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
