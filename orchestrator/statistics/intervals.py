"""Confidence intervals of means, of differences of means, and of what seeds are left out of.

Common to all: none for fewer than two values (in a group), and the value itself where nothing varies; numbers that
differ by rounding only (1e-12 of the largest) do not vary.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from orchestrator.statistics import student


class Interval(NamedTuple):
    """The bounds of a confidence interval; both NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean; none for fewer than two values, the mean itself where all are equal."""
    return of_estimates(student.of_mean(np.asarray(values, np.float64)), level)


def paired_difference_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of mean of a minus mean of b, from the differences under each seed.

    None for fewer than two pairs; the difference itself where all are equal.

    Raises:
        ValueError: if there are not as many of a as of b.
    """
    if len(a) != len(b):
        raise ValueError(f"`a` and `b` must be of one length to be paired, but got {len(a)} and {len(b)}.")
    return of_estimates(student.of_paired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)), level)


def welch_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval:
    """The interval of mean of a minus mean of b, of separate values with spreads of their own (Welch 1947).

    None for fewer than two values in a group; the difference itself where neither varies.
    """
    return of_estimates(student.of_unpaired_difference(np.asarray(a, np.float64), np.asarray(b, np.float64)), level)


def jackknife_interval(value: float, leave_one_out: Sequence[float], level: float = 0.95) -> Interval:
    """A studentised interval of a statistic of n seeds, from what it is without each of them (Tukey 1958).

    The n pseudo-values, n times `value` less n - 1 times the value without a seed, are taken for independent: theirs
    is the mean, and the standard error of the mean with n - 1 degrees of freedom. So the interval is centred on the
    jackknife's correction of `value` for bias, not on `value`. None for fewer than two seeds; the pseudo-values' mean
    where they are equal.

    Args:
        value: of all seeds.
        leave_one_out: n values, each without one of the seeds.
    """
    values = np.asarray(leave_one_out, np.float64)
    return of_estimates(student.of_jackknife(np.asarray(value, np.float64), values), level)


def of_estimates(estimate: student.Estimates, level: float) -> Interval:
    """The interval of a single estimate."""
    middle, half = float(estimate.value), float(student.half_width(estimate, level))
    return Interval(middle - half, middle + half)
