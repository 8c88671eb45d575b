"""Lists of values that a user gives: they have an order, and no two of their values are the same."""

import itertools
from collections.abc import Sequence
from typing import Any, TypeGuard

from trainables.config import PLAIN
from trainables.errors import InputError, shown


def is_list(values: object) -> TypeGuard[Sequence[Any]]:
    """Whether `values` is a list or tuple: a set has another order in each process, and a text is one value."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


def check_choices(values: Sequence[Any], subject: str) -> None:
    """Raises InputError where two of `values` are equal, or are written alike.

    True, 1 and 1.0 are equal, and 2 is written as "2" is: names, tables and filters could not tell them apart.
    """
    for value, other in itertools.combinations(values, 2):
        if value == other or (isinstance(value, PLAIN) and isinstance(other, PLAIN) and str(value) == str(other)):
            both = f"{shown(value)} and {shown(other)}"
            raise InputError(f"{subject} must differ in value and in writing, but got {both}; leave one out.")
