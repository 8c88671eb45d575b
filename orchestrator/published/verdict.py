"""A study held against what was published."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.statistics.intervals import Interval
from orchestrator.statistics.summary import Summary
from search_spaces.claim import Claim


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
        ours: in the published unit, of a statement its left side; None where there is no value.
        difference: ours minus the published number, or left minus right; in the published unit. NaN without either.
        interval: of the difference, 95 %.
        p: of a number that it is within the margin where it is reproduced, else that it differs; of a statement that
            of its test, adjusted (Holm) over all statements of the report. NaN where there was no test.
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
