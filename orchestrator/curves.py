"""Learning curves of a condition: means over its replicates by step."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """One metric of one condition over training.

    Attributes:
        means: over the n replicates, at each of `steps`.
        stds: sample standard deviations; NaN for n = 1.
    """

    condition: str
    metric: str
    n: int
    steps: tuple[int, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]
