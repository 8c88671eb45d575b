"""What a metric is, and how families list theirs: by direction and unit, each name with its definition."""

import math
import posixpath
import re
from dataclasses import dataclass
from typing import Final, Literal

_NAME: Final = re.compile(r"[\w.:/@ -]{1,150}")
"""What MLflow takes, and leaves room for names of evaluations and of means; there @ becomes /."""

NAME_RULE: Final = (
    "have 1 to 150 letters, digits, spaces and any of _ . : / - @, not begin with . / or @, and have no empty, . or .. "
    "part between / or @"
)


def is_metric_name(name: object) -> bool:
    """Whether a metric may be called so: what `NAME_RULE` says."""
    path = name.replace("@", "/") if isinstance(name, str) else ""
    is_path = posixpath.normpath(path) == path and not path.startswith(("/", "."))
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and is_path


@dataclass(frozen=True)
class Metric:
    """One number that a trainable reports.

    Attributes:
        name: without the name of an evaluation.
        unit: such as "s" or "nats/frame"; empty of a share or a count.
        direction: of what is better; "none" where neither is.
        definition: one sentence; what a reader of a report is told.
        floor: of a metric to minimise, the metric that tells what needs no learning on the same data, such as a linear
            prediction. Reports and checks warn where it is not beaten by 5 %.
    """

    name: str
    unit: str = ""
    direction: Literal["minimize", "maximize", "none"] = "none"
    definition: str = ""
    floor: str = ""


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
