"""What a sweep on fresh seeds confirms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ENDING: Final = ".confirm"
"""What the name of such a sweep adds to that of the other one."""


@dataclass(frozen=True)
class Confirmation:
    """What a sweep confirms on fresh seeds: conditions that the results of another sweep's seeds have chosen.

    Attributes:
        sweep: the name of the other one.
        num_conditions: of which they were chosen.
        means: by chosen condition, the means that chose it, by `metric@evaluation`.
    """

    sweep: str
    num_conditions: int
    means: Mapping[str, Mapping[str, float]]
