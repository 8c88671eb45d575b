"""Many comparisons of two groups at once: all that can be said of each by itself, before the others are known.

How large a difference is, whether it is one, and what its reader must know about seeds and test.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import permutation, permutation_power, power, scale, student
from orchestrator.statistics.significance import least_paired_p, least_permutation_p, seeds_for_level
from orchestrator.statistics.student import RESOLUTION, Estimates, Floats

Direction = Literal["minimize", "maximize"]

LEAST_SEEDS: Final = 3
"""The least seeds of a group: with two, the best two are the same group's in one of three comparisons of equals."""


def hedges_g_rows(a: Floats, b: Floats) -> Floats:
    """Hedges' g (1981) of each row of (R, n) and (R, m): the difference of means in units of their pooled deviation.

    The bias of d for m degrees of freedom is taken off by the exact Gamma(m / 2) / (sqrt(m / 2) Gamma((m - 1) / 2)).
    NaN without spread, with an empty group, or with fewer than four values in all, where that factor is 0 or none.
    """
    n, m = a.shape[1], b.shape[1]
    freedom = n + m - 2
    if min(n, m) < 1 or freedom < 2:
        return np.full(len(a), np.nan)
    a, b = scale.normalised(a, b)
    largest = scale.largest(a, b)
    pooled = np.sqrt((a.var(1) * n + b.var(1) * m) / freedom)
    factor = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    g: Floats = factor * (a.mean(1) - b.mean(1)) / np.where(pooled <= RESOLUTION * largest, np.nan, pooled)
    return g


def improvement_rows(a: Floats, b: Floats, direction: Direction) -> Floats:
    """The share of all pairs in which a's value is better than b's, ties counted half; of rows of (R, n) and (R, m).

    The probability of improvement of Agarwal et al. (2021, arXiv:2108.13264) for one task. NaN with an empty group.
    """
    if min(a.shape[1], b.shape[1]) < 1:
        return np.full(len(a), np.nan)
    a, b = scale.normalised(a, b)
    gains = (a[:, :, None] - b[:, None, :]) * (1 if direction == "maximize" else -1)
    rounding = RESOLUTION * scale.largest(a, b)[:, None, None]
    shares: Floats = (0.5 + 0.5 * np.where(np.abs(gains) <= rounding, 0.0, np.sign(gains))).mean((1, 2))
    return shares


def almost_stochastic_order_rows(
    a: Floats, b: Floats, direction: Direction, level: float = 0.95, num_draws: int = 1000, seed: int = 0
) -> Floats:
    """An upper bound of how far a is from better than b throughout, 0 to 1; of each row of (R, n) and (R, m).

    The violation ratio (del Barrio et al. 2018, arXiv:1705.01788; Dror et al. 2019, ACL): of the squared Wasserstein
    distance between a's and b's distributions, the part from quantiles at which a is worse. The bound adds to the
    samples' ratio a normal quantile times the standard deviation of `num_draws` bootstrap samples of the same sizes;
    all rows are resampled alike. 0: a is better at every quantile; 1: worse at every one. It is a description and
    decides nothing here: of two equal conditions one is below 0.5 far more often than 1 - `level`
    (`benchmarks/coverage.py` prints how often).

    NaN with fewer than three values in a group, or where all values are equal.
    """
    from scipy.special import ndtri

    n, m = a.shape[1], b.shape[1]
    bounds = np.full(len(a), np.nan)
    if min(n, m) < LEAST_SEEDS:
        return bounds
    a, b = scale.normalised(a, b)
    places_a, places_b, widths = _steps(n, m)
    rng = np.random.default_rng(seed)
    drawn_a, drawn_b = (np.sort(rng.integers(0, size, (num_draws, size))) for size in (n, m))
    drawn_a, drawn_b = drawn_a[:, places_a], drawn_b[:, places_b]
    sign = 1.0 if direction == "maximize" else -1.0
    for i, (ours, theirs) in enumerate(zip(np.sort(sign * a), np.sort(sign * b), strict=True)):
        rounding = RESOLUTION * max(np.abs(ours).max(), np.abs(theirs).max())
        ratio = _ratio(theirs[places_b] - ours[places_a], widths, rounding)
        if not np.isnan(ratio):
            ratios = _ratio(theirs[drawn_b] - ours[drawn_a], widths, rounding)
            bounds[i] = np.clip(ratio + ndtri(level) * np.std(ratios[~np.isnan(ratios)]), 0.0, 1.0)
    return bounds


def _ratio(gaps: Floats, widths: Floats, rounding: float) -> Floats:
    """The share of the positive of `gaps` (..., steps) in the integral of their squares; what is `rounding` is 0.

    The integrals of del Barrio et al. (2018) over empirical quantile functions are sums over their steps.
    """
    gaps = np.where(np.abs(gaps) <= rounding, 0.0, gaps)
    whole, above = np.square(gaps) @ widths, np.square(np.maximum(gaps, 0.0)) @ widths
    ratio: Floats = above / np.where(whole > 0, whole, np.nan)
    return ratio


@functools.cache
def _steps(n: int, m: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """The steps of the quantile functions of n and of m sorted values: their places in both, and their widths."""
    ends = np.unique(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]))  # in units of 1 / (n m)
    starts = np.concatenate([[0], ends[:-1]])
    return starts // m, starts // n, np.diff(ends, prepend=0) / (n * m)


Test = Literal["welch", "paired_permutation"]
NAMES: Final[Mapping[Test, str]] = {
    "welch": "Welch's t-test",
    "paired_permutation": "the exact paired permutation test",
}
LEVEL: Final = 0.05
MOST_ORDERS: Final = 2000
"""Almost stochastic order takes a bootstrap for each comparison, less than a second for so many together."""


@dataclass(frozen=True)
class Groups:
    """Values of R comparisons in one metric, of n seeds against m; with `is_paired` of the same seeds in order.

    Attributes:
        a: (R, n).
        b: (R, m).
        is_one_condition: whether a and b are of one condition: then a paired t-test takes the place of Welch's.
    """

    a: Floats
    b: Floats
    is_paired: bool
    is_one_condition: bool = False

    @cached_property
    def difference(self) -> Estimates:
        """Means of a minus means of b, with the errors of paired differences, or by Welch."""
        return student.of_paired_difference(self.a, self.b) if self.is_paired else self.welch

    @cached_property
    def welch(self) -> Estimates:
        """Means of a minus means of b, as of two groups."""
        return student.of_unpaired_difference(self.a, self.b)

    @cached_property
    def welch_p(self) -> Floats:
        """NaN with fewer than two seeds in a group, or without spread in both."""
        return student.two_sided_p(self.welch)

    @cached_property
    def permutation_p(self) -> Floats:
        """The two-sided p-value of an exact test: of sign flips, or of regroupings where not paired.

        Every choice of n of all values is equally likely if both groups are of one distribution (Fisher 1935, Pitman
        1937). Exact up to 1,048,576 regroupings, such as 11 against 11; beyond, of 999,999 drawn with a fixed seed and
        the one seen (Phipson and Smyth 2010). 1 where all values are equal; NaN with fewer than two seeds in a group.
        Differences that differ by rounding only are equal.
        """
        if self.least_size() < 2:
            return self._nothing()
        if self.is_paired:
            sizes = np.maximum(np.abs(self.a), np.abs(self.b)).max(1)
            return permutation.sign_flip_p(self.a - self.b, sizes)
        return permutation.regrouping_p(self.a, self.b)

    def estimates(self, test: Test) -> Estimates:
        """Differences with the errors that go with the promised test, or with what takes its place."""
        return self.difference if self.is_flipped(test) or self.is_of_replicates else self.welch

    @property
    def is_of_replicates(self) -> bool:
        """Whether both are of the same replicates."""
        return self.is_one_condition and self.is_paired

    def _is_shift(self) -> NDArray[np.bool_]:
        """Of which comparisons of the same replicates a t-test says nothing: of a difference without any spread."""
        is_shift: NDArray[np.bool_] = (self.difference.standard_error == 0) & ~self.is_constant()
        return is_shift

    def is_flipped(self, test: Test) -> bool:
        """Whether signs of pairs are flipped; where seeds do not pair, Welch's test takes the place of that.

        An exact test of regroupings does not: it errs in up to a third of all cases where few seeds of a large spread
        meet many of a small one.
        """
        return test == "paired_permutation" and self.is_paired

    def p(self, test: Test) -> Floats:
        """The p-value of the promised test, or of what takes its place."""
        if self.is_flipped(test):
            return self.permutation_p
        if not self.is_of_replicates:
            return self.welch_p
        p, is_shift = student.two_sided_p(self.difference), self._is_shift()
        return np.where(is_shift, self.permutation_p, p) if is_shift.any() else p

    def least_permutation_p(self) -> float:
        """The smallest that `permutation_p` can be."""
        n, m = self.a.shape[1], self.b.shape[1]
        return least_paired_p(n) if self.is_paired else least_permutation_p(n, m)

    def least_p(self, test: Test) -> Floats:
        """The smallest that `p` can be, 0 for a t-test; NaN with fewer than two seeds in a group."""
        if self.least_size() < 2:
            return self._nothing()
        if self.is_flipped(test):
            return np.full(len(self.a), self.least_permutation_p())
        if not self.is_of_replicates:
            return np.zeros(len(self.a))
        return np.where(self._is_shift(), self.least_permutation_p(), 0.0)

    def least_size(self) -> int:
        """Seeds in the smaller group."""
        return int(min(self.a.shape[1], self.b.shape[1]))

    def is_constant(self) -> NDArray[np.bool_]:
        """Whether the values of a differ by rounding only, and those of b; not so of one value."""
        errors = [student.of_mean(values).standard_error for values in (self.a, self.b)]
        is_constant: NDArray[np.bool_] = (errors[0] == 0) & (errors[1] == 0)
        return is_constant

    def minimum_detectable_difference(self, test: Test, level: float) -> Floats:
        """The smallest difference that the promised test shows at `level` with power 0.8; NaN where it shows none."""
        if self.least_size() < 2:
            return self._nothing()
        estimates = self.estimates(test)
        if self.is_flipped(test):
            centres = np.full(len(self.a), permutation_power.paired_centre(self.a.shape[1], level))
        else:
            centres = power.noncentrality(estimates.freedom, level)
        return np.where(np.isfinite(centres), centres, np.nan) * estimates.standard_error

    def required_sample_size(self, test: Test, level: float) -> Floats:
        """Seeds with which the difference seen is detectable; NaN where no number below 1,000 does."""
        if self.least_size() < 2:
            return self._nothing()
        value, error, _ = self.difference
        if self.is_flipped(test):
            stds = error * np.sqrt(self.a.shape[1])
            return permutation_power.paired_required_sample_size_rows(value, stds, level)
        if self.is_of_replicates:
            groups = [error * np.sqrt(self.a.shape[1])]
        else:
            groups = [student.of_mean(values).standard_error * np.sqrt(values.shape[1]) for values in (self.a, self.b)]
        return power.required_sample_size_rows(value, power.Design(tuple(groups)), level)

    def _nothing(self) -> Floats:
        return np.full(len(self.a), np.nan)


NO_SPREAD: Final = "no spread over the seeds in either: the difference is taken for certain, without a test"
HIDDEN_SPREAD: Final = (
    "no spread over the seeds in either, but values repeat in this metric under other conditions too: "
    "it may be chance, and a t-test says nothing here"
)
ONE_DIFFERENCE: Final = "the difference is the same under every seed, so its interval has no width; do not trust that"
NO_ORDERS: Final = f"almost stochastic order is left out, as of any more than {MOST_ORDERS:,} comparisons"
BEYOND: Final = (
    "the difference, its interval or a standard deviation is beyond 1.8e308, the largest number: it counts as infinite"
)
UNEQUAL: Final = (
    "not as many seeds in both: values are missing, or seeds were given by need; then this p is not corrected for the "
    "looks, while the run's own decision is (tag `ponderay.decision` in MLflow)"
)
ONE_CONDITION: Final = (
    "both are of the same replicates, which are compared one by one: a paired t-test takes the place of Welch's, and a "
    "test of signs where the difference is the same in all"
)
OTHER_SEEDS: Final = (
    "one of the evaluations lacks seeds, so they are compared as two groups and not replicate by replicate"
)
UNPAIRED: Final = "the seeds are not the same, so the promised paired permutation test is replaced by Welch's t-test"


def of_seeds(groups: Groups, test: Test, can_decide: bool, num_tests: int) -> tuple[str, ...]:
    """Sentences about unequal and unpaired seeds, one seed, and a test that cannot reach 0.05 with so many.

    Args:
        can_decide: whether it can in its family.
        num_tests: size of that family.
    """
    sentences = []
    n, m = groups.a.shape[1], groups.b.shape[1]
    seeds = f"{n} and {m} seeds" if n != m else f"{n} seed{'s' if n > 1 else ''}"
    if test == "paired_permutation" and not groups.is_paired:
        sentences.append(UNPAIRED)
    if test == "welch" and groups.is_one_condition:
        sentences.append(ONE_CONDITION if groups.is_paired else OTHER_SEEDS)
    if n != m and groups.least_size() > 1:
        sentences.append(UNEQUAL)
    if groups.least_size() < 2:
        sentences.append(f"{seeds}: one seed has no spread, so there is neither interval nor test")
    elif not can_decide:
        enough = seeds_for_level(LEVEL, num_tests)
        remedy = f"from {enough} seeds on it can" if enough else "no number of seeds is enough for so many"
        family = f"among {num_tests:,} comparisons (Holm) " if num_tests > 1 else ""
        least = groups.least_permutation_p()
        sentences.append(
            f"{seeds}: an exact paired permutation test cannot give p below {least:.4g}, "
            f"so {family}it can decide nothing at {LEVEL:g}; {remedy}"
        )
    return tuple(sentences)
