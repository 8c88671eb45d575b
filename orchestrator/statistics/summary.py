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
