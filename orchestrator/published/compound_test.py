"""The test of a claim about more than two means, before the other claims of the report are known."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from orchestrator.published.number_verdict import LEVEL, UNDECIDABLE, more_seeds
from orchestrator.published.statement_verdict import tied
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.statistics.intervals import NONE, Interval
from orchestrator.statistics.summary import Summary, summarise
from search_spaces.claim import Claim

Needed = Callable[[float], int | None]
"""Seeds in all with which a test at a level shows what was seen, if it is so; None where no number below 1,000 does."""


@dataclass(frozen=True)
class CompoundTest:
    """A claim and its test.

    Attributes:
        ours: of the claim's first place.
        difference: of means or standard deviations, where the claim is about one; else NaN.
        is_as_claimed: on which side it was seen.
        p: two-sided, that it is on that side; NaN where nothing varies, so that it is certain.
        test: in words.
        num_seeds: of the smallest group.
        tie: in words, where it was seen on neither side; else empty.
        waits: what is said if this test shows nothing, as a part of the claim has too few replicates.
        unplanned: what is said where `needed` is None.
    """

    claim: Claim
    ours: Summary
    difference: float
    is_as_claimed: bool
    p: float
    test: str
    num_seeds: int
    needed: Needed
    interval: Interval = NONE
    tie: str = ""
    unplanned: str = UNDECIDABLE
    waits: Verdict | None = None

    def verdict(self, p: float, num_tests: int) -> Verdict:
        """The verdict by the p-value adjusted for the family of so many tests; without one by what was seen."""
        if self.waits and p > LEVEL:
            return replace(self.waits, claim=self.claim)
        finding = Finding.reproduced if self.is_as_claimed else Finding.worse
        still: int | None = None
        family = f", p adjusted for {num_tests} tests" if num_tests > 1 else ""
        by = f"by {self.test} over n = {self.num_seeds}{family}"
        if math.isnan(p):
            reason = "So it is" if self.is_as_claimed else "Contradicted"
            reason += " in every replicate, without any spread"
        elif self.tie:
            finding, reason = Finding.inconclusive, f"{tied(self.tie)}, {by}"
        elif p <= LEVEL:
            reason = f"Shown {by}" if self.is_as_claimed else f"Contradicted: the opposite is shown {by}"
        else:
            finding, (still, plan) = Finding.inconclusive, self._plan(LEVEL / num_tests)
            seen = "as claimed" if self.is_as_claimed else "against the claim"
            reason = f"What was seen is {seen}, but not shown {by}; {plan}"
        return Verdict(self.claim, finding, self.ours, self.difference, self.interval, p, f"{reason}.", still)

    def _plan(self, level: float) -> tuple[int | None, str]:
        needed = self.needed(level)
        if needed is None:
            return None, self.unplanned
        still = max(1, needed - self.num_seeds)
        return still, f"if it is as seen, {more_seeds(still)} to show it"


def too_few(claim: Claim, first: Mapping[int, float], num_seeds: int, least: int) -> Verdict:
    """The verdict where `num_seeds` replicates have all numbers of the claim, and its test takes `least`."""
    there = f"n = {num_seeds} says nothing of it" if num_seeds else "No seed has all of its numbers yet"
    ours = summarise(list(first.values())) if first else None
    reason = f"{there}; at least {more_seeds(least - num_seeds)}."
    return Verdict(claim, Finding.inconclusive, ours, math.nan, NONE, math.nan, reason, least - num_seeds)
