"""Differences of means with their standard error: interval, p-value, and whether they lie within a margin."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import stdtr

from orchestrator.statistics import student
from orchestrator.statistics.student import Estimates
from orchestrator.statistics.summary import Interval, of_estimates


def equivalence_p(difference: float, standard_error: float, freedom: float, margin: float) -> float:
    """The p-value of two one-sided t-tests (Schuirmann 1987): that a difference is not within -`margin` to `margin`.

    It is the larger of the two; up to 0.05 the two means count as one. NaN where `freedom` is NaN. Without a standard
    error it is 0 within the margin, its ends included, and 1 beyond.

    Args:
        margin: 0 or more.

    Raises:
        ValueError: if the margin is negative.
    """
    if margin < 0:
        raise ValueError(f"`margin` must be 0 or more, but got {margin}.")
    if math.isnan(freedom):
        return math.nan
    if standard_error == 0:
        is_end = math.isclose(abs(difference), margin, rel_tol=1e-9)
        return 0.0 if abs(difference) < margin or is_end else 1.0
    return float(stdtr(freedom, (abs(difference) - margin) / standard_error))


@dataclass(frozen=True)
class Difference:
    """A difference of two means as Student's t sees it.

    Attributes:
        standard_error: of `value`; 0 where nothing varies, so that the difference is taken for certain.
        freedom: degrees of freedom. NaN, as `standard_error`, where one value or none says nothing: then the interval
            is none and the p-values are NaN.
    """

    value: float
    standard_error: float
    freedom: float

    @classmethod
    def from_published(
        cls, values: Sequence[float], mean: float, std: float | None = None, n: int | None = None
    ) -> Self:
        """Mean of `values` minus a published mean of `n` values with a spread of its own (Welch 1947).

        The published mean is taken for exact (one-sample t-test) where `std` or `n` is missing or `n` is below 2.

        Args:
            std: the sample standard deviation, n - 1 in the denominator.
        """
        array, published = np.asarray(values, np.float64), np.asarray([mean], np.float64)
        ours = student.of_mean(array)
        with np.errstate(over="ignore"):
            value = student.without_rounding(ours.value - mean, array, published)
        if std is None or n is None or n < 2:
            return cls._of(ours._replace(value=value))
        theirs = Estimates(*(np.asarray(x, np.float64) for x in (mean, std / math.sqrt(n), n - 1)))
        return cls._of(student.combine(value, ours, theirs))

    @classmethod
    def of_published(cls, a: tuple[float, float, int], b: tuple[float, float, int]) -> Self:
        """The difference of two published means (Welch 1947).

        Args:
            a: mean, sample standard deviation and n, which is at least 2.
            b: the same of the other.
        """
        first, second = (
            Estimates(*(np.asarray(x, np.float64) for x in (mean, std / math.sqrt(n), n - 1)))
            for mean, std, n in (a, b)
        )
        return cls._of(student.combine(first.value - second.value, first, second))

    @classmethod
    def paired(cls, a: Sequence[float], b: Sequence[float]) -> Self:
        """Mean of a minus mean of b, from the differences under each seed.

        Raises:
            ValueError: if there are not as many of a as of b.
        """
        if len(a) != len(b):
            raise ValueError(f"`a` and `b` must be of one length to be paired, but got {len(a)} and {len(b)}.")
        return cls._of(student.of_paired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)))

    @classmethod
    def unpaired(cls, a: Sequence[float], b: Sequence[float]) -> Self:
        """Mean of a minus mean of b, of separate values with spreads of their own (Welch 1947)."""
        return cls._of(student.of_unpaired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)))

    @classmethod
    def _of(cls, estimate: Estimates) -> Self:
        return cls(*(float(x) for x in estimate))

    def interval(self, level: float = 0.95) -> Interval:
        """The t interval; the difference itself without a standard error."""
        return of_estimates(self._estimate(), level)

    def p(self) -> float:
        """The two-sided p-value that the difference is 0; without a standard error 1 if it is 0, else 0."""
        if self.standard_error == 0:
            return 1.0 if self.value == 0 else 0.0
        return float(student.two_sided_p(self._estimate()))

    def equivalence_p(self, margin: float) -> float:
        """The p-value that the difference is not within -`margin` to `margin`; see `equivalence_p`."""
        return equivalence_p(self.value, self.standard_error, self.freedom, margin)

    def _estimate(self) -> Estimates:
        return Estimates(*(np.asarray(x, np.float64) for x in (self.value, self.standard_error, self.freedom)))
