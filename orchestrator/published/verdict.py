"""What a study says of what was published: the verdict, and how it is reached on a number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.power import Design, equivalence_required_sample_size, required_sample_size
from orchestrator.statistics.summary import NONE, Interval, Summary, summarise
from search_spaces.claim import Claim, NumberClaim, sentence


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


LEVEL: Final = 0.05
HIDDEN: Final = (
    "No spread is seen over the seeds, but values of this metric repeat in other conditions too: it may be chance; "
    "more seeds would show"
)
UNDECIDABLE: Final = "no number of seeds below 1,000 would decide it with power 0.8"


def number_verdict(claim: NumberClaim, values: Sequence[float], hides_noise: bool = False) -> Verdict:
    """The verdict of `values`, one a seed, in the published unit.

    Args:
        hides_noise: whether a lack of spread may be chance, as values of the metric repeat in other conditions.

    Reproduced where two one-sided tests (5 %) find the difference within the margin, be it distinguishable from 0 or
    not. Else better or worse where its 95 % interval leaves 0 out; a number without a better side deviates and counts
    as worse. Else inconclusive. What has no spread on either side is compared as it is. Where ours may only seem to
    have none, nothing is decided, whatever spread was published.
    """
    if len(values) < 2:
        return _too_few(claim, values)
    ours, published, needed = summarise(values), claim.published, None
    difference = Difference.from_published(values, published.mean, _std(claim), published.n)
    p_equal, p, interval = difference.equivalence_p(claim.margin), difference.p(), difference.interval()
    if ours.std == 0 and hides_noise:
        return Verdict(claim, Finding.inconclusive, ours, difference.value, NONE, math.nan, sentence(HIDDEN))
    if p_equal <= LEVEL:
        finding, p = Finding.reproduced, p_equal
        reason = f"within the margin of {claim.margin:g}{_by(claim, difference, 'two one-sided t-tests', ours.n)}"
    elif interval.low > 0 or interval.high < 0:
        is_better = difference.value < 0 if claim.direction == "minimize" else difference.value > 0
        finding = Finding.better if is_better and claim.direction != "none" else Finding.worse
        side = "above" if difference.value > 0 else "below"
        reason = f"deviates: neither side is better, and it is {side}" if claim.direction == "none" else side
        reason += _by(claim, difference, "t-test", ours.n)
    else:
        finding = Finding.inconclusive
        needed, reason = _still_needed(claim, difference.value, ours)
    p = math.nan if difference.standard_error == 0 else p
    return Verdict(claim, finding, ours, difference.value, interval, p, sentence(reason), needed)


def more_seeds(count: int) -> str:
    """`3 more seeds are needed`."""
    return "1 more seed is needed" if count == 1 else f"{count} more seeds are needed"


def _std(claim: NumberClaim) -> float | None:
    return None if claim.published.std is None else claim.published.sample_std


def _by(claim: NumberClaim, difference: Difference, test: str, n: int) -> str:
    """What decided, at the end of a sentence."""
    if difference.standard_error == 0:
        return ", without a spread on either side"
    has_spread = claim.published.std is not None and (claim.published.n or 0) > 1
    against = f"{claim.published.n}" if has_spread else "a mean taken as exact"
    return f", by {test} of {n} seeds against {against}"


def _still_needed(claim: NumberClaim, difference: float, ours: Summary) -> tuple[int | None, str]:
    """Seeds for a decision if the difference and spread seen are the true ones, and the reason with it."""
    design = Design.against_published(ours.std, _std(claim), claim.published.n)
    is_near = abs(difference) < claim.margin
    if is_near:
        needed = equivalence_required_sample_size(difference, design, claim.margin, LEVEL)
    else:
        needed = required_sample_size(difference, design, LEVEL)
    seen = f"the interval holds both 0 and more than the margin of {claim.margin:g}"
    if needed is None:
        return None, f"{seen}; {UNDECIDABLE}"
    still = max(1, needed - ours.n)
    goal = "that it is within the margin (equivalence)" if is_near else "a difference"
    return still, f"{seen}; if it is as seen, {more_seeds(still)} to show {goal}"


def _too_few(claim: NumberClaim, values: Sequence[float]) -> Verdict:
    """One replicate has no spread; the published one says how many it may take."""
    std, least, spread = _std(claim), 2 - len(values), ""
    still: int | None = least
    if std:
        design = Design.against_published(std, std, claim.published.n)
        needed = equivalence_required_sample_size(0.0, design, claim.margin, LEVEL)
        still = None if needed is None else max(least, needed - len(values))
        spread = " for equivalence, if ours spread as the published ones"
    there = "one replicate says nothing of the spread" if values else "no complete replicate has it yet"
    plan = UNDECIDABLE if still is None else f"{more_seeds(still)}{spread}"
    ours = summarise(values) if values else None
    difference = values[0] - claim.published.mean if values else math.nan
    reason = sentence(f"{there}; {plan}")
    return Verdict(claim, Finding.inconclusive, ours, difference, NONE, math.nan, reason, still)
