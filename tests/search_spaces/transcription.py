"""The sources' printed numbers as somebody wrote them down who had not seen the shipped ones."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "transcribed"
SOURCES: Final = ("surprisal_paper", "recoding_thesis", "act")


class Cell(NamedTuple):
    """Where a number stands: table or section, row and column."""

    place: str
    row: str
    column: str


@dataclass(frozen=True)
class Printed:
    """A number as printed; `spread` and `n` are empty where none is."""

    value: str
    spread: str
    n: str
    unit: str

    @property
    def number(self) -> float:
        """The value; a gain of +-0 is 0."""
        return float(self.value.removeprefix("±"))

    @property
    def std(self) -> float | None:
        """The number behind +-."""
        return float(self.spread) if self.spread else None

    @property
    def half_digit(self) -> float:
        """How far the value may lie from what it was rounded from."""
        return 0.5 * 10.0 ** -len(self.value.partition(".")[2])


def read(source: str) -> dict[Cell, Printed]:
    """All numbers of a source: its own file, each cell once."""
    found: dict[Cell, Printed] = {}
    with (FOLDER / f"{source}.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            cell = Cell(line["place"], line["row"], line["column"])
            if cell in found:
                raise ValueError(f"{source} has {cell} twice.")
            found[cell] = Printed(line["value"], line["spread"], line["n"], line["unit"])
    return found
