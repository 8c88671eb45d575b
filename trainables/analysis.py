"""A question to trained replicates: what it is about, how one replicate answers it, and how the answers are shown.

A trainable offers its own in the attribute `analyses`, a mapping from names to `Analysis`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Options = Mapping[str, Any]
"""What was given by name: a text each, and of a repeatable option a tuple of texts."""

Cells = Mapping[tuple[Any, ...], float]
"""Numbers by the name of a row, one part for each column, and the measure behind it."""

Ask = Callable[[Any, Path, Any, Options], Cells]
"""From a config, a checkpoint, an evaluation of the config (None where it has none) and options to numbers."""


@dataclass(frozen=True)
class Lines:
    """A figure with a panel for each value of one column and a line for each measure.

    Attributes:
        panel: the column that divides rows into panels, which names them where `along` is empty; empty: all rows are in
            one.
        tick: the column that names the places from left to right.
        measures: what is drawn where the rows have it, each with its name in the legend.
        axis: what the measures are, with their unit; of measures with several units that of each, and those of one unit
            share a panel.
        marked: a column of truth values; places where it is true are shaded.
        along: what the places are, with their unit.
        above: a column that is written above the places.
        is_joined: whether the places follow each other, so that lines join them.
    """

    panel: str
    tick: str
    measures: Mapping[str, str]
    axis: str | Mapping[str, str]
    marked: str = ""
    along: str = ""
    above: str = ""
    is_joined: bool = True

    def units(self, measures: Collection[str]) -> dict[str, list[str]]:
        """The `measures` that are drawn, by the name of their axis."""
        names: dict[str, list[str]] = {}
        for measure in self.measures:
            if measure in measures:
                name = self.axis if isinstance(self.axis, str) else self.axis[measure]
                names.setdefault(name, []).append(measure)
        return names


@dataclass(frozen=True)
class Analysis:
    """What may be asked of a trained replicate.

    Attributes:
        about: one sentence.
        columns: names of the parts of a row's name.
        ask: gives the numbers of one replicate; those of all replicates have the same rows and measures.
        compared: two measures that a test compares within each row; or a function that chooses them by the options.
            Without them there is a test only against another condition.
        options: the meaning of each option by its name.
        repeatable: names of options that may be given several times.
        headings: short names of columns and measures in tables for people.
        lines: how it is drawn; by default the first measure is a bar for each row.
    """

    about: str
    columns: tuple[str, ...]
    ask: Ask
    compared: tuple[str, str] | Callable[[Options], tuple[str, str]] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    repeatable: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    lines: Lines | None = None

    def pair(self, options: Options) -> tuple[str, str] | None:
        """The measures that are compared within a row."""
        return self.compared(options) if callable(self.compared) else self.compared
