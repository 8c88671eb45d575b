"""Numbers over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.statistics.student import RESOLUTION


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1 in the denominator) of n values.

    The standard deviation is NaN for n = 1, and 0 where the values differ by rounding only.
    """

    mean: float
    std: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """The summary of at least one value."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("`values` must hold at least one number, but got none.")
    is_constant = np.ptp(array) <= RESOLUTION * np.abs(array).max()
    std = math.nan if array.size == 1 else 0.0 if is_constant else float(array.std(ddof=1))
    mean = math.fsum(array) / array.size  # exact, so that the order of seeds does not decide between equal means
    return Summary(mean, std, int(array.size))
