"""What a sweep has produced so far: frozen records and the queries on them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.statistics import Summary, summarise

State = Literal["running", "stopped", "complete", "failed"]


@dataclass(frozen=True)
class Replicate:
    """A condition with a seed.

    Attributes:
        metrics: the last value of each; those of an evaluation are named `metric@evaluation`.
        error: one line, where it failed.
        evaluations: ids of those done, `name.hash`.
        is_lost: failed for a reason outside the trainable, so that another attempt may succeed.
    """

    key: str
    condition: str
    seed: int
    state: State
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    is_lost: bool = False
    code_version: str = ""
    run_id: str = ""
    evaluations: frozenset[str] = frozenset()
    data_fingerprint: str = ""


@dataclass(frozen=True)
class Study:
    """A sweep's replicates in the order of conditions and seeds."""

    sweep: str
    replicates: tuple[Replicate, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """Names in the order of their first replicate."""
        return tuple(dict.fromkeys(replicate.condition for replicate in self.replicates))

    def of(self, condition: str) -> tuple[Replicate, ...]:
        """The replicates of one condition by seed."""
        return tuple(sorted((r for r in self.replicates if r.condition == condition), key=lambda r: r.seed))

    def values(self, condition: str, metric: str) -> tuple[float, ...]:
        """The finite values of `metric` over the complete replicates of `condition`, by seed."""
        found = (r.metrics.get(metric, math.nan) for r in self.of(condition) if r.state == "complete")
        return tuple(value for value in found if math.isfinite(value))

    def summary(self, condition: str, metric: str) -> Summary | None:
        """Mean, standard deviation and number; None without a value."""
        values = self.values(condition, metric)
        return summarise(values) if values else None

    def evaluations(self) -> tuple[str, ...]:
        """Names of evaluations that some complete replicate has."""
        names = {m.partition("@")[2] for r in self.replicates for m in r.metrics if "@" in m}
        return tuple(sorted(names))
