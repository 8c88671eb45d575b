"""Two points of a study held against each other: difference, tests, effect, and what so many seeds can show."""

from dataclasses import dataclass

from orchestrator.statistics.intervals import Interval
from orchestrator.statistics.summary import Summary


@dataclass(frozen=True)
class Comparison:
    """Point `a` against point `b` in one metric.

    Attributes:
        a: name of a point: the condition, with `@evaluation` where the study has several.
        is_paired: whether both have the same seeds, so that differences are taken seed by seed.
        is_better: whether a's mean is on the good side of b's.
        difference: mean of a minus mean of b.
        interval: of the difference, 95 %.
        welch_p: NaN where it says nothing.
        permutation_p: exact, of sign flips where paired, else of regroupings; NaN where it says nothing.
        least_p: the smallest p that the permutation test can give with so many seeds.
        p: of the test that the sweep promises.
        p_holm: `p` adjusted for the family it is in.
        effect: Hedges' g, the difference in units of the standard deviation; NaN without spread.
        epsilon: of almost stochastic order, an upper bound of how far a is from being better throughout; NaN without.
        improvement: probability that a replicate of a is better than one of b.
        shown: the smallest difference that so many seeds show with power 0.8.
        seeds_needed: for the difference seen, with power 0.8; None where no number below 1,000 does.
        can_decide: whether the promised test can reach 0.05 in its family at all with so many seeds.
        warnings: what the reader must know: a test that cannot reach its level, skew, ties.
    """

    a: str
    b: str
    metric: str
    summary_a: Summary
    summary_b: Summary
    is_paired: bool
    is_better: bool
    difference: float
    interval: Interval
    welch_p: float
    permutation_p: float
    least_p: float
    p: float
    p_holm: float
    effect: float
    epsilon: float
    improvement: float
    shown: float
    seeds_needed: int | None
    can_decide: bool
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> str:
        """`better`, `worse`, or `undecided`, by the adjusted p."""
        if not self.p_holm <= 0.05:
            return "undecided"
        return "better" if self.is_better else "worse"
