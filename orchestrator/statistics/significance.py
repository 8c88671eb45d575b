"""Tests of whether a difference is more than seed noise."""

import math
from collections.abc import Sequence

import numpy as np


def welch_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of Welch's t-test (1947) that two groups have one mean; NaN where it says nothing.

    So it is with fewer than two values in a group, or with no spread in both.
    """
    if min(len(a), len(b)) < 2 or (np.ptp(a) == 0 and np.ptp(b) == 0):
        return math.nan
    from scipy import stats

    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): rejecting those up to 0.05 keeps the chance of any false one below 0.05.

    NaN stays NaN and counts as no test.
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for rank, (p, i) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[i] = largest
    return adjusted
