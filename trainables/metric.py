"""What a metric is, and how families list theirs: by direction and unit, each name with its definition."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One number that a trainable reports."""

    name: str
    unit: str = ""
    direction: Literal["minimize", "maximize", "none"] = "none"
    definition: str = ""


@dataclass(frozen=True)
class Best:
    """The checkpoint with the lowest, or highest, value of a metric."""

    metric: str
    direction: Literal["minimize", "maximize"] = "minimize"

    def cost(self, value: float) -> float:
        """Lower where `value` is better; NaN, with which every comparison is false, costs as much as the worst."""
        if math.isnan(value):
            return math.inf
        return -value if self.direction == "maximize" else value


def lower(unit: str, **definitions: str) -> list[Metric]:
    """Metrics of `unit` that are better the lower they are."""
    return [Metric(name, unit, "minimize", definition) for name, definition in definitions.items()]


def higher(unit: str, **definitions: str) -> list[Metric]:
    """Metrics of `unit` that are better the higher they are."""
    return [Metric(name, unit, "maximize", definition) for name, definition in definitions.items()]


def neutral(unit: str, **definitions: str) -> list[Metric]:
    """Metrics of `unit` that are neither good nor bad."""
    return [Metric(name, unit, "none", definition) for name, definition in definitions.items()]
