"""Values of a condition from which others of it were computed."""

import itertools
from collections.abc import Collection

from search_spaces.sweep import Sweep
from trainables.errors import InputError


def refuse_computed(sweep: Sweep, values: Collection[str]) -> None:
    """Refuses settings of what one of the sweep's conditions was computed from.

    Args:
        values: the paths that were set.
    """
    for condition in sweep.conditions:
        for path, own in itertools.product(values, condition.computed_from):
            if f"{path}.".startswith(f"{own}.") or own.startswith(f"{path}."):
                raise InputError(
                    f"`{path}` cannot be set for {condition.declared!r} of {sweep.name}, whose other values were "
                    "computed from it; choose the others by `--condition`, or declare the sweep anew in a file."
                )
