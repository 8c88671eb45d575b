"""Many comparisons of two groups at once: all that can be said of each by itself, before the others are known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import effects, permutation, permutation_power, power, student
from orchestrator.statistics.effects import Direction
from orchestrator.statistics.significance import least_paired_p, least_permutation_p
from orchestrator.statistics.student import Estimates, Floats

Test = Literal["welch", "paired_permutation"]
LEVEL: Final = 0.05
MOST_ORDERS: Final = 2000
"""Almost stochastic order takes a bootstrap for each comparison, less than a second for so many together."""


@dataclass(frozen=True)
class Groups:
    """Values of R comparisons in one metric, of n seeds against m; with `is_paired` of the same seeds in order.

    Attributes:
        a: (R, n).
        b: (R, m).
    """

    a: Floats
    b: Floats
    is_paired: bool

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
        """Differences with the errors that go with the promised test."""
        return self.difference if self.is_flipped(test) else self.welch

    def is_flipped(self, test: Test) -> bool:
        """Whether signs of pairs are flipped; where seeds do not pair, Welch's test takes the place of that.

        An exact test of regroupings does not: it errs in up to a third of all cases where few seeds of a large spread
        meet many of a small one.
        """
        return test == "paired_permutation" and self.is_paired

    def p(self, test: Test) -> Floats:
        """The p-value of the promised test, or of what takes its place."""
        return self.permutation_p if self.is_flipped(test) else self.welch_p

    def least_permutation_p(self) -> float:
        """The smallest that `permutation_p` can be."""
        n, m = self.a.shape[1], self.b.shape[1]
        return least_paired_p(n) if self.is_paired else least_permutation_p(n, m)

    def least_p(self, test: Test) -> float:
        """The smallest that `p` can be, 0 for Welch's test; NaN with fewer than two seeds in a group."""
        if self.least_size() < 2:
            return np.nan
        return self.least_permutation_p() if self.is_flipped(test) else 0.0

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
        groups = (student.of_mean(values).standard_error * np.sqrt(values.shape[1]) for values in (self.a, self.b))
        return power.required_sample_size_rows(value, power.Design(tuple(groups)), level)

    def hedges_g(self) -> Floats:
        """See `effects.hedges_g_rows`."""
        return effects.hedges_g_rows(self.a, self.b)

    def improvement(self, direction: Direction) -> Floats:
        """See `effects.improvement_rows`."""
        return effects.improvement_rows(self.a, self.b, direction)

    def almost_stochastic_order(self, direction: Direction) -> Floats:
        """See `effects.almost_stochastic_order_rows`."""
        return effects.almost_stochastic_order_rows(self.a, self.b, direction)

    def _nothing(self) -> Floats:
        return np.full(len(self.a), np.nan)
