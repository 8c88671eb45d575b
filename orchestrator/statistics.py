"""Numbers over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values; std is NaN for n = 1."""

    mean: float
    std: float
    n: int

    def text(self, digits: int = 2) -> str:
        """`mean ± std`, or the one value there is."""
        if math.isnan(self.std):
            return f"{self.mean:.{digits}f}"
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("`values` must hold at least one number, but got none.")
    std = float(array.std(ddof=1)) if array.size > 1 else math.nan
    return Summary(float(array.mean()), std, int(array.size))


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
