"""Confidence intervals of means and of differences of means."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Interval(NamedTuple):
    """The bounds of a confidence interval; both NaN where there is none."""

    low: float
    high: float


NONE = Interval(math.nan, math.nan)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Student's t interval of the mean; none for fewer than two values, the mean itself where all are equal."""
    from scipy.special import stdtrit

    array = np.asarray(values, dtype=np.float64)
    if array.size < 2:
        return NONE
    half = float(stdtrit(array.size - 1, (1 + level) / 2)) * float(array.std(ddof=1)) / math.sqrt(array.size)
    mean = float(array.mean())
    return Interval(mean - half, mean + half)
