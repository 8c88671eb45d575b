"""When training ends by a rule instead of a count."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from trainables.config import IN_KEY_IF_SET, Count

Patience = Annotated[
    Count | None,
    IN_KEY_IF_SET,
    Field(description="training ends when the selected metric was not better for so many validations; default: never"),
]


def is_exhausted(patience: int | None, validations: Sequence[Mapping[str, float]]) -> bool:
    """Whether training ends: no selected metric was better than ever before in the last `patience` validations.

    Args:
        patience: None: training does not end by this rule.
        validations: the values by which checkpoints are selected, all minimised, of every validation so far in order.
    """
    if patience is None:
        return False
    best: dict[str, float] = {}
    last_better = 0
    for number, values in enumerate(validations, start=1):
        for metric, value in values.items():
            if value < best.get(metric, math.inf):  # NaN never is
                best[metric], last_better = value, number
    return len(validations) - last_better >= patience
