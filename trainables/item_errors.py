"""Errors of each item of a test set, kept beside the metrics, so that a comparison can say how far its noise goes.

A trainable reports such a file as an artifact, named after the metric that it adds up to: `items_error.csv`, or
`items_error@test.csv` of an evaluation `test`.
"""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from trainables.errors import InputError, shown

COLUMNS: Final = ("item", "group", "errors", "length")
LARGEST: Final = 1e15
"""The largest error and length: sums of squares of many stay far from what float64 holds."""


class Item(NamedTuple):
    """One item of a test set, such as an utterance.

    Attributes:
        group: what items have in common whose errors go together, such as the speaker.
        errors: of this item, in the metric's own unit: errors of all items by lengths of all is the metric.
        length: such as the number of phones; 0 or more.
    """

    item: str
    group: str
    errors: float
    length: float


def file_name(metric: str) -> str:
    """The file's name for `metric` as it is recorded: with its evaluation, if it has one."""
    return f"items_{metric}.csv"


def write(items: Iterable[Item], folder: Path, metric: str) -> Path:
    """Writes the file of `metric` into `folder`, items in the order of their names; to be reported as an artifact."""
    path = folder / file_name(metric)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted(items))
    return path


def read(text: str, subject: str) -> tuple[Item, ...]:
    """The items of a file.

    Args:
        subject: what a message calls the file.

    Raises:
        InputError: if it is no such file, an item stands there twice, or a number is none.
    """
    lines = csv.reader(io.StringIO(text))
    if tuple(next(lines, ())) != COLUMNS:
        raise InputError(f"{subject} must begin with the line {','.join(COLUMNS)}.")
    items = {}
    for number, line in enumerate(lines, start=2):
        try:
            item, group, errors, length = line
            row = Item(item, group, float(errors), float(length))
        except ValueError:
            raise InputError(
                f"{subject}, line {number}: expected {','.join(COLUMNS)}, but got {shown(line)}."
            ) from None
        if item in items:
            raise InputError(f"{subject}, line {number}: {shown(item)} stands there twice.")
        if not (abs(row.errors) <= LARGEST and 0 <= row.length <= LARGEST):
            raise InputError(
                f"{subject}, line {number}: errors must be a number and the length one from 0, both up to "
                f"{LARGEST:g}, but got {shown(errors)} and {shown(length)}."
            )
        items[item] = row
    if not sum(row.length for row in items.values()):
        raise InputError(f"{subject} must have an item of some length, but has none.")
    return tuple(items.values())
