"""A sweep with the conditions of a grid in place of its own."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from search_spaces.computed import refuse_computed
from search_spaces.sweep import Sweep, grid


def with_grid(sweep: Sweep, values: Mapping[str, Sequence[Any]], of: Collection[str] = ()) -> Sweep:
    """The sweep with a condition for every combination of the listed values, in place of its conditions or search.

    Its reference, and seeds by need that ask about it, stay where the grid has that condition.

    Args:
        values: lists of values by config path.
        of: conditions that the grid goes over, with all that they set themselves; default: the base alone.

    Raises:
        InputError: if there is no such path, value or condition, or one of the conditions was computed from a path.
    """
    conditions = grid(values)
    if of:
        conditions = tuple(
            replace(own, name=f"{own.name},{added.name}", values={**own.values, **added.values})
            for own, added in itertools.product(map(sweep.condition, of), conditions)
        )
    reference = sweep.reference if sweep.reference in {condition.name for condition in conditions} else None
    is_asked = sweep.sequential is not None and (reference or sweep.sequential.question == "front")
    sequential = sweep.sequential if is_asked else None
    gridded = replace(sweep, conditions=conditions, search=None, reference=reference, sequential=sequential)
    refuse_computed(gridded, values)
    return gridded
