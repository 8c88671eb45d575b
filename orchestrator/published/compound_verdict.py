"""What a study says of a claim about more than two means: trends, spreads, joint comparisons, and places on a front.

Each is tested here before the other claims of the report are known.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from orchestrator.published.statement_verdict import StatementTest, Values, is_paired, tied
from orchestrator.published.verdict import LEVEL, UNDECIDABLE, Finding, Verdict, more_seeds
from orchestrator.statistics import scale
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.pairwise import Test
from orchestrator.statistics.power import MOST_SEEDS, POWER
from orchestrator.statistics.spread import LEAST as LEAST_OF_SPREAD
from orchestrator.statistics.spread import (
    brown_forsythe_p,
    paired_spread_required_sample_size,
    pitman_morgan_p,
    spread_required_sample_size,
)
from orchestrator.statistics.summary import NONE, Interval, Summary, summarise
from orchestrator.statistics.trend import page_p
from search_spaces.claim import Claim, FrontClaim, JointClaim, Place, StatementClaim, TrendClaim

LEAST_OF_TREND: Final = 2
UNPLANNED: Final = "a side without spread does not tell how many seeds would show it"

WITHOUT_SPREAD: Final = " in every replicate, without any spread"

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
        seen: what is said after "So it is" or "Contradicted" where it is certain.
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
    seen: str = WITHOUT_SPREAD
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
            reason = f"{'So it is' if self.is_as_claimed else 'Contradicted'}{self.seen}"
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

    is_tie = math.isclose(ours.std, other.std)
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


Part = StatementTest | CompoundTest
Compare = Callable[[StatementClaim], Part | Verdict]


def joint_test(claim: JointClaim, compare: Compare) -> CompoundTest | Verdict:
    """All parts are shown where the least of them is (intersection-union test, Berger 1982).

    One part that is contradicted contradicts the whole, with Bonferroni's correction for its choice, and while others
    still wait for replicates; nothing is tested while some wait and no other is against it. A part that is a tie leaves
    it open.
    """
    parts, waits = _split([compare(part) for part in claim.parts])
    against = [one for one in parts if not one.is_as_claimed]
    if waits and all(one.tie for one in against):
        return replace(waits[0], claim=claim)
    ties = [one.tie for one in against if one.tie]
    deciding = against or parts
    if against:
        p = min(1.0, len(claim.parts) * min(map(_p_of_part, against)))
        needed = _least([_at(one, len(claim.parts)) for one in against])
        is_certain = any(map(_is_certain, against))
    else:
        p, needed = max(map(_p_of_part, parts)), _most([one.needed for one in parts])
        is_certain = all(map(_is_certain, parts))
    certain = [one for one in deciding if _is_certain(one)]
    every = [one for one in certain if isinstance(one, StatementTest) and one.claim.of == "every"]
    of_every = [one.test for one in every]  # these hold within margins, or fail in one replicate
    others = [f"{'another part' if against else 'all else'}{WITHOUT_SPREAD}"] if len(certain) > len(of_every) else []
    return CompoundTest(
        claim=claim,
        ours=parts[0].ours,
        difference=math.nan,
        is_as_claimed=not against,
        p=math.nan if is_certain else p,
        test=_text(deciding),
        num_seeds=min(one.num_seeds for one in deciding),
        needed=needed,
        seen=f": {'; '.join(dict.fromkeys(of_every + others))}" if of_every else WITHOUT_SPREAD,
        tie=f"In one part {ties[0][0].lower()}{ties[0][1:]}" if ties and len(ties) == len(against) else "",
        waits=waits[0] if waits else None,
    )


def front_test(claim: FrontClaim, compare: Compare) -> CompoundTest | Verdict:
    """On the front is what each other is shown to be worse than in something; off it, what some other dominates.

    Each comparison is one of two means. That all others fail to dominate is an intersection of unions: the largest over
    the others of the smallest p-value of an objective, times the number of objectives (Berger 1982; Bonferroni). One
    that dominates is enough while others still wait for replicates; without one nothing is tested until then.
    """
    rows, missing = [], []
    for other in claim.others:
        row, waits = _split([compare(part) for part in _parts(claim, other)])
        missing += waits
        if not waits:
            rows.append([one for one in row if isinstance(one, StatementTest)])
    waits = sorted(missing, key=_wait, reverse=True)
    # Rows in which the other was seen at least as good in everything and better in something.
    dominated = [row for row in rows if all(one.surplus <= 0 for one in row) and any(one.surplus < 0 for one in row)]
    if waits and not dominated:
        return replace(waits[0], claim=claim)
    p, needed, deciding = _of_off(dominated, len(claim.others)) if dominated else _of_on(rows)
    every = [one for row in rows for one in row]
    return CompoundTest(
        claim=claim,
        ours=every[0].ours,
        difference=math.nan,
        is_as_claimed=(not dominated) == claim.is_on,
        p=p if deciding else math.nan,
        test=_text(deciding or every),
        num_seeds=min(one.num_seeds for one in deciding or every),
        needed=needed,
        waits=waits[0] if waits else None,
    )


def _split(found: Sequence[Part | Verdict]) -> tuple[list[Part], list[Verdict]]:
    """The tests, and what waits for replicates, the longest wait first."""
    waits = [one for one in found if isinstance(one, Verdict)]
    return [one for one in found if not isinstance(one, Verdict)], sorted(waits, key=_wait, reverse=True)


def front_parts(claim: FrontClaim) -> list[StatementClaim]:
    """The statements that the point is better than each other in each objective."""
    return [part for other in claim.others for part in _parts(claim, other)]


def _wait(one: Verdict) -> int:
    return one.seeds_needed or 0


def _parts(claim: FrontClaim, other: Sequence[Place]) -> list[StatementClaim]:
    """The statements that the point is better than `other` in each objective."""
    parts = []
    for left, right, direction in zip(claim.point, other, claim.directions, strict=True):
        relation = "below" if direction == "minimize" else "above"
        parts.append(StatementClaim("", (), claim.text, left, relation, right, claim.source, claim.setting))  # type: ignore[arg-type]
    return parts


def _of_on(rows: Sequence[Sequence[StatementTest]]) -> tuple[float, Needed, list[StatementTest]]:
    """The p-value, the seeds that it needs, and the tests that it rests on; none where all is certain.

    A row without spread is certainly not dominating, and neither is one in which the point is certainly better.
    """
    p, needed = 0.0, []
    tests: list[StatementTest] = []
    for row in rows:
        better = [one for one in row if one.surplus > 0]
        if all(math.isnan(one.p) for one in row) or any(map(_is_certain, better)):
            continue
        p = max(p, min(1.0, len(row) * min((one.p for one in better), default=1.0)))
        needed.append(_least([_at(one, len(row)) for one in better]))
        tests += better or row
    return p, _most(needed), tests


def _of_off(dominated: Sequence[Sequence[StatementTest]], num_others: int) -> tuple[float, Needed, list[StatementTest]]:
    """p-value, seeds and tests as of `_of_on`, where some other dominates; one row is enough."""
    tested = [[one for one in row if not math.isnan(one.p)] for row in dominated]
    p = min(max(map(_p, row)) for row in dominated)
    needed = _least([_most([_at(one, num_others) for one in row]) for row in dominated])
    return min(1.0, num_others * p), needed, [one for row in tested for one in row] if all(tested) else []


def _is_certain(one: Part) -> bool:
    """Whether what was seen is so without a test."""
    return math.isnan(one.p) and not one.tie


def _p(one: Part) -> float:
    """The p-value of a part; 0 where it is certain."""
    return 0.0 if math.isnan(one.p) else one.p


def _p_of_part(one: Part) -> float:
    """The p-value of a part, 0 where it is certain, and 1 for a tie, which shows nothing."""
    return 1.0 if one.tie else _p(one)


def _at(one: Part, num_choices: int) -> Needed:
    return lambda level: one.needed(level / num_choices)


def _most(parts: Sequence[Needed]) -> Needed:
    def needed(level: float) -> int | None:
        found = [part(level) for part in parts]
        return None if None in found else max(number for number in found if number is not None)

    return needed


def _least(parts: Sequence[Needed]) -> Needed:
    def needed(level: float) -> int | None:
        return min((number for part in parts if (number := part(level)) is not None), default=None)

    return needed


def _text(deciding: Sequence[Part]) -> str:
    """The tests that decided."""
    tested = [one for one in deciding if not math.isnan(one.p)]
    return " and ".join(dict.fromkeys(one.test for one in tested or deciding))
