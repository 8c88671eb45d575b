"""The test of a claim about more than two means, before the other claims of the report are known.

Trends and spreads are tested here; claims that are made of several comparisons in `compound_verdict`.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from orchestrator.published.number_verdict import LEVEL, UNDECIDABLE, more_seeds
from orchestrator.published.statement_verdict import Test, Values, is_paired, tied
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.statistics import scale
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.intervals import NONE, Interval
from orchestrator.statistics.power import MOST_SEEDS, POWER
from orchestrator.statistics.spread import LEAST as LEAST_OF_SPREAD
from orchestrator.statistics.spread import (
    brown_forsythe_p,
    paired_spread_required_sample_size,
    pitman_morgan_p,
    spread_required_sample_size,
)
from orchestrator.statistics.summary import Summary, summarise
from orchestrator.statistics.trend import page_p
from search_spaces.claim import Claim, StatementClaim, TrendClaim

LEAST_OF_TREND: Final = 2
UNPLANNED: Final = "a side without spread does not tell how many seeds would show it"

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
            finding, plan = Finding.inconclusive, self.unplanned
            if (needed := self.needed(LEVEL / num_tests)) is not None:  # at the first step of Holm
                still = max(1, needed - self.num_seeds)
                plan = f"if it is as seen, {more_seeds(still)} to show it"
            seen = "as claimed" if self.is_as_claimed else "against the claim"
            reason = f"What was seen is {seen}, but not shown {by}; {plan}"
        return Verdict(self.claim, finding, self.ours, self.difference, self.interval, p, f"{reason}.", still)


def too_few(claim: Claim, first: Mapping[int, float], num_seeds: int, least: int) -> Verdict:
    """The verdict where `num_seeds` replicates have all numbers of the claim, and its test takes `least`."""
    there = f"n = {num_seeds} says nothing of it" if num_seeds else "No seed has all of its numbers yet"
    ours = summarise(list(first.values())) if first else None
    reason = f"{there}; at least {more_seeds(least - num_seeds)}."
    return Verdict(claim, Finding.inconclusive, ours, math.nan, NONE, math.nan, reason, least - num_seeds)


def trend_test(claim: TrendClaim, columns: Sequence[Values]) -> CompoundTest | Verdict:
    """Page's test (1963) over the seeds that all places share; the difference is of the last place and the first.

    Its p-value is twice the one-sided one of the side on which the ranks were seen.
    """
    seeds = sorted(set.intersection(*(set(column) for column in columns)))
    if len(seeds) < LEAST_OF_TREND:
        return too_few(claim, columns[0], len(seeds), LEAST_OF_TREND)
    values = np.array([[column[seed] for column in columns] for seed in seeds])
    rising, falling = page_p(values), page_p(values[:, ::-1])
    as_claimed, against = (rising, falling) if claim.relation == "rises" else (falling, rising)
    p = min(1.0, 2 * min(rising, falling))
    tie = ""
    if math.isclose(rising, falling, rel_tol=1e-9):  # both are 1 where no seed has two ranks
        is_constant = math.isclose(rising, 1.0, rel_tol=1e-9)
        tie = "All places are the same in every replicate" if is_constant else "The ranks rise as much as they fall"
    change = Difference.paired(values[:, -1].tolist(), values[:, 0].tolist())
    return CompoundTest(
        claim=claim,
        ours=summarise(values[:, 0].tolist()),
        difference=change.value,
        is_as_claimed=as_claimed < against,
        p=p,
        test=f"Page's test of {len(columns)} places",
        num_seeds=len(seeds),
        needed=lambda level: _seeds_for_trend(p, len(seeds), level),
        interval=change.interval(),
        tie=tie,
    )


def _seeds_for_trend(p: float, num_seeds: int, level: float) -> int | None:
    """Seeds by the normal law of L, whose distance from its mean grows as the root of their number."""
    from scipy.special import ndtri  # slow to load: only where it is used, as in statistics

    if p >= 1:
        return None
    needed = num_seeds * ((ndtri(1 - level / 2) + ndtri(POWER)) / ndtri(1 - p / 2)) ** 2
    return None if needed > MOST_SEEDS else math.ceil(needed)


def spread_test(claim: StatementClaim, left: Values, right: Values, test: Test) -> CompoundTest | Verdict:
    """The test that the left side's standard deviation is below or above the right side's.

    By Brown and Forsythe's test (1974) of two groups; by Pitman's and Morgan's (1939) where means would be compared
    seed by seed, too, and both sides vary: for theirs a side of equal values would be a certainty, from three of them.
    """
    is_by_seed = is_paired(claim, left, right, test)
    if is_by_seed:
        shared = sorted(left.keys() & right.keys())
        left, right = ({seed: group[seed] for seed in shared} for group in (left, right))
    num_seeds = min(len(left), len(right))
    if num_seeds < LEAST_OF_SPREAD:
        return too_few(claim, left, num_seeds, LEAST_OF_SPREAD)
    a, b = list(left.values()), list(right.values())
    ours, other = summarise(a), summarise(b)
    is_paired_test = is_by_seed and min(ours.std, other.std) > 0
    p = pitman_morgan_p(a, b) if is_paired_test else brown_forsythe_p(a, b)

    def needed(level: float) -> int | None:
        if not is_paired_test:
            return spread_required_sample_size(ours.std, other.std, level)
        rho = statistics.correlation(*(scale.normalised(np.array(x))[0].tolist() for x in (a, b)))
        return paired_spread_required_sample_size(ours.std, other.std, rho, level)

    is_tie = math.isclose(ours.std, other.std, rel_tol=1e-9)
    difference = 0.0 if is_tie else ours.std - other.std
    return CompoundTest(
        claim=claim,
        ours=ours,
        difference=difference,
        is_as_claimed=difference < 0 if claim.relation == "below" else difference > 0,
        p=1.0 if is_tie or math.isnan(p) else p,
        test=f"{'Pitman and Morgan' if is_paired_test else 'Brown and Forsythe'}'s test of two standard deviations",
        num_seeds=num_seeds,
        needed=needed,
        tie="Both sides have the same spread" if is_tie else "",
        unplanned=UNDECIDABLE if min(ours.std, other.std) else UNPLANNED,
    )
