"""What a study says of a published comparison."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.published.verdict import HIDDEN, LEVEL, UNDECIDABLE, Finding, Verdict, more_seeds
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.pairwise import Test
from orchestrator.statistics.permutation_power import paired_required_sample_size
from orchestrator.statistics.power import Design, equivalence_required_sample_size, required_sample_size
from orchestrator.statistics.significance import paired_permutation_p
from orchestrator.statistics.student import RESOLUTION
from orchestrator.statistics.summary import NONE, Summary, summarise
from search_spaces.claim import Place, StatementClaim

Values = Mapping[int, float]
"""A number of each seed."""

PERMUTATION: Final = "an exact paired permutation test"


@dataclass(frozen=True)
class StatementTest:
    """A statement and its test, before the other statements are known.

    Attributes:
        ours: the left side.
        difference: left minus right.
        surplus: how far it is on the claimed side of its margin; below 0 on the other side.
        p: of the test that it is on the side on which it was seen; NaN without spread, or where no test decides.
        design: how its standard error falls with more seeds.
        num_seeds: of the smaller group.
        test: in words; of `every` it is what the values say.
        hides_noise: whether it is without spread, but may be so by chance.
    """

    claim: StatementClaim
    ours: Summary
    difference: Difference
    surplus: float
    p: float
    design: Design
    num_seeds: int
    test: str
    hides_noise: bool = False

    def uncertain(self) -> "StatementTest":
        """The test of a statement whose lack of spread may be chance."""
        return replace(self, p=1.0, test="a test, for no spread is seen, which may be chance,", hides_noise=True)

    @property
    def is_as_claimed(self) -> bool:
        """On which side of its margin it was seen; of `same` the margin is within."""
        return self.surplus > 0 or (self.surplus == 0 and self.claim.relation == "same")

    @property
    def tie(self) -> str:
        """Why it is a tie, in words, where it was seen on neither side of its margin; else empty."""
        if self.surplus != 0 or self.claim.relation == "same":
            return ""
        if self.claim.margin:
            return "Both sides are just the margin apart"
        return f"Both sides {'are the same in every replicate' if math.isnan(self.p) else 'have the same mean'}"

    def verdict(self, p: float, num_tests: int) -> Verdict:
        """The verdict by the p-value adjusted for the family of so many tests; without one by what was seen."""
        needed: int | None = None
        if self.tie:
            finding, reason = Finding.inconclusive, tied(self.tie)
        elif self.hides_noise:
            finding, reason = Finding.inconclusive, HIDDEN
        elif math.isnan(p):
            finding = Finding.worse if self.surplus < 0 else Finding.reproduced
            if self.claim.of == "every":
                reason = f"Contradicted: {self.test}" if self.surplus < 0 else self.test
            elif self.surplus < 0:
                reason = "Contradicted by every replicate, without any spread"
            else:
                reason = "So it is in every replicate, without any spread"
        elif p <= LEVEL:
            finding = Finding.worse if self.surplus < 0 else Finding.reproduced
            start = "Contradicted: the opposite is shown" if self.surplus < 0 else "Shown"
            reason = f"{start} by {self._by(num_tests)}"
        else:
            finding, plan = Finding.inconclusive, UNDECIDABLE
            if (in_all := self.needed(LEVEL / num_tests)) is not None:  # at the first step of Holm
                needed = max(1, in_all - self.num_seeds)
                plan = f"if it is as seen, {more_seeds(needed)} to show it"
            seen = "as claimed" if self.is_as_claimed else "against the claim"
            reason = f"What was seen is {seen}, but not shown by {self._by(num_tests)}; {plan}"
        interval = self.difference.interval() if math.isnan(p) or self.difference.standard_error else NONE
        return Verdict(self.claim, finding, self.ours, self.difference.value, interval, p, f"{reason}.", needed)

    def _by(self, num_tests: int) -> str:
        family = f", p adjusted for {num_tests} tests" if num_tests > 1 else ""
        return f"{self.test} over n = {self.num_seeds}{family}"

    def needed(self, level: float) -> int | None:
        """Seeds in all with which a test at `level` shows what was seen, if it is so; None if none below 1,000 do."""
        if self.claim.of == "every":
            return self.num_seeds
        if self.hides_noise:
            return None
        if self.claim.relation == "same" and self.surplus > 0:
            return equivalence_required_sample_size(self.difference.value, self.design, self.claim.margin, level)
        if self.test == PERMUTATION:
            return paired_required_sample_size(self.surplus, float(self.design.stds[0]), level)
        return required_sample_size(self.surplus, self.design, level)


def tied(tie: str) -> str:
    """Why a tie leaves a claim open, in words."""
    return f"{tie}, neither as claimed nor against the claim"


def statement_test(claim: StatementClaim, left: Values, right: Values | float, test: Test) -> StatementTest | Verdict:
    """The statement's test; or at once its verdict, where there are too few values.

    Two evaluations or metrics of one condition are of the same replicates, and are compared replicate by replicate; so
    are two ratios that share a condition. Two conditions with the same seeds are where the sweep promises the paired
    permutation test. Otherwise they are two groups, compared by Welch's test. That both are within a margin is for two
    one-sided t-tests to show.
    """
    if not isinstance(right, Mapping):
        if len(left) < 2:
            return _too_few(claim, left, right, len(left))
        values = list(left.values())
        design = Design((summarise(values).std,))
        return _tested(claim, values, Difference.from_published(values, right), design, "a one-sample t-test")
    if is_paired(claim, left, right, test):
        return _paired(claim, left, right, test)
    if (least := min(len(left), len(right))) < 2:
        return _too_few(claim, left, right, least)
    a, b = list(left.values()), list(right.values())
    design = Design((summarise(a).std, summarise(b).std))
    found = _tested(claim, a, Difference.unpaired(a, b), design, "Welch's t-test")
    return replace(found, num_seeds=least)


def is_paired(claim: StatementClaim, left: Values, right: Values, test: Test) -> bool:
    """Whether the two sides are compared seed by seed."""
    shared = isinstance(claim.right, Place) and set(claim.left.conditions) & set(claim.right.conditions)
    return bool(shared) or (test == "paired_permutation" and left.keys() == right.keys())


def every_test(claim: StatementClaim, left: Values, right: float) -> StatementTest | Verdict:
    """One replicate is enough to contradict what is said of every one; two at least hold it.

    Args:
        left: of each seed the number that was reported; one that is not finite contradicts the claim.
    """
    others = [value for value in left.values() if _is_beyond(value, right, claim.margin)]
    if len(left) < 2 and not others:
        return _too_few(claim, left, right, len(left))
    values = [value for value in left.values() if math.isfinite(value)]
    within = f" within {claim.margin:g}" if claim.margin else ""
    said = f"{claim.left.text} is {right:g}{within} in every replicate (n = {len(left)})"
    if others:
        furthest = max(others, key=lambda value: abs(value - right))
        said = (
            f"{claim.left.text} is not {right:g}{within} in {len(others)} of {len(left)} replicates, but {furthest:g}"
        )
    if not values:
        return Verdict(claim, Finding.worse, None, math.nan, NONE, math.nan, f"Contradicted: {said}.")
    found = _tested(claim, values, Difference.from_published(values, right), Design((summarise(values).std,)), said)
    surplus = claim.margin - max(abs(value - right) if math.isfinite(value) else math.inf for value in left.values())
    return replace(found, surplus=surplus if others else max(0.0, surplus), p=math.nan, test=said)


def _is_beyond(value: float, other: float, margin: float) -> bool:
    """Whether they are further apart than the margin, by more than rounding; what is not finite is."""
    if not math.isfinite(value):
        return True
    rounding = RESOLUTION * max(abs(value), abs(other))
    apart = abs(value - other)
    return apart > margin and not math.isclose(apart, margin, rel_tol=1e-9, abs_tol=rounding)


def _paired(claim: StatementClaim, left: Values, right: Values, test: Test) -> StatementTest | Verdict:
    seeds = sorted(left.keys() & right.keys())
    if len(seeds) < 2:
        return _too_few(claim, left, right, len(seeds))
    a, b = ([group[seed] for seed in seeds] for group in (left, right))
    design = Design((summarise([x - y for x, y in zip(a, b, strict=True)]).std,))
    found = _tested(claim, a, Difference.paired(a, b), design, "a paired t-test")
    if math.isnan(found.p) and found.surplus and found.difference.value and summarise(a).std > 0:
        return replace(found, p=paired_permutation_p([found.surplus] * len(a), [0.0] * len(a)), test=PERMUTATION)
    if test != "paired_permutation" or claim.relation == "same" or math.isnan(found.p):
        return found
    shift = claim.margin if claim.relation == "below" else -claim.margin
    return replace(found, p=paired_permutation_p(a, [y + shift for y in b]), test=PERMUTATION)


def _tested(
    claim: StatementClaim, left: list[float], difference: Difference, design: Design, test: str
) -> StatementTest:
    signs = {"below": -difference.value, "above": difference.value, "same": -abs(difference.value)}
    beside = signs[claim.relation]
    surplus = 0.0 if math.isclose(-beside, claim.margin, rel_tol=1e-9) else claim.margin + beside
    if difference.standard_error == 0:
        p = math.nan
    elif claim.relation == "same" and surplus > 0:
        p, test = difference.equivalence_p(claim.margin), f"two one-sided t-tests ({test})"
    else:
        p = Difference(surplus, difference.standard_error, difference.freedom).p()
    return StatementTest(claim, summarise(left), difference, surplus, p, design, len(left), test)


def _too_few(claim: StatementClaim, left: Values, right: Values | float, least: int) -> Verdict:
    """One replicate has no spread, so that nothing can be shown."""
    missing = "both sides"  # where none has either, or none has both
    if left and isinstance(claim.right, Place) and not right:
        missing = claim.right.text
    elif not left and (right or not isinstance(claim.right, Place)):
        missing = claim.left.text
    lack = "One replicate says nothing of the spread" if least else f"No complete replicate has {missing} yet"
    reason = f"{lack}; at least {more_seeds(2 - least)}."
    ours = summarise(list(left.values())) if left else None
    return Verdict(claim, Finding.inconclusive, ours, math.nan, NONE, math.nan, reason, 2 - least)
