"""Mean and standard deviation over seeds; confidence intervals of means, of differences, of what seeds are left out.

Common to all intervals: none for fewer than two values (in a group), and the value itself where nothing varies; numbers
that differ by rounding only (1e-12 of the largest) do not vary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orchestrator.statistics import scale, student
from orchestrator.statistics.student import is_constant


class Interval(NamedTuple):
    """The bounds of a confidence interval; both NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean; none for fewer than two values, the mean itself where all are equal."""
    return of_estimates(student.of_mean(np.asarray(values, np.float64)), level)


def of_estimates(estimate: student.Estimates, level: float) -> Interval:
    """The interval of a single estimate."""
    low, high = student.bounds(estimate, level)
    return Interval(float(low), float(high))


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values.

    The standard deviation is NaN for n = 1, 0 where the values differ by rounding only, and infinite where it is
    larger than the largest number, 1.8e308.
    """

    mean: float
    std: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("`values` must hold at least one number, but got none.")
    std = math.nan
    if array.size > 1:
        power = scale.exponents(scale.largest(array))
        std = 0.0 if is_constant(array) else float(scale.times(scale.divided(array, power).std(ddof=1), power))
    return Summary(exact_mean(array.tolist()), std, int(array.size))


def exact_mean(values: Sequence[float]) -> float:
    """The mean of at least one value, rounded once, so that the order of seeds does not decide between equal means."""
    if not all(map(math.isfinite, values)):
        return sum(values) / len(values)
    power = math.frexp(max(map(abs, values)))[1]
    return math.ldexp(math.fsum(math.ldexp(value, -power) for value in values) / len(values), power)
