"""What a metric is: the entry of a family's documented list."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One number that a trainable reports."""

    name: str
    unit: str
    direction: Literal["minimize", "maximize", "none"]
    definition: str
