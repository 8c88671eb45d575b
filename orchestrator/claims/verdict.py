"""A study held against what was published."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.claims.claim import Claim
from orchestrator.statistics.intervals import Interval
from orchestrator.statistics.summary import Summary


class Finding(StrEnum):
    """What a study says of a claim."""

    reproduced = "REPRODUCED"
    better = "BETTER"
    worse = "WORSE"
    inconclusive = "INCONCLUSIVE"
    not_comparable = "NOT COMPARABLE"


@dataclass(frozen=True)
class Verdict:
    """A claim, and what a study says of it.

    Attributes:
        ours: in the published unit; None where there is nothing to compare.
        difference: ours minus the published number, or left minus right; in the published unit.
        interval: of the difference, 95 %.
        p: of the test that decided; NaN where none did. Adjusted by Holm over the statements of the report.
        reason: one sentence: what decided, or what is missing, or why it is not comparable.
        seeds_needed: still, for a decision with power 0.8; None where none is needed or no number below 1,000 does.
    """

    claim: Claim
    finding: Finding
    ours: Summary | None
    difference: float
    interval: Interval
    p: float
    reason: str
    seeds_needed: int | None = None
