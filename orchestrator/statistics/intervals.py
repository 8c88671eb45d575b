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


def of_estimates(estimate: student.Estimates, level: float) -> Interval:
    """The interval of a single estimate."""
    low, high = student.bounds(estimate, level)
    return Interval(float(low), float(high))
