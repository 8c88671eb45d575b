"""Tests of whether a difference is more than seed noise."""

import math
from collections.abc import Sequence

import numpy as np

from orchestrator.statistics import permutation, scale, student


def welch_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of Welch's t-test (1947) that two groups have one mean; NaN where it says nothing.

    So it is with fewer than two values in a group, or with no spread in both.
    """
    arrays = (np.asarray(values, np.float64) for values in (a, b))
    return float(student.two_sided_p(student.of_unpaired_difference(*arrays)))


def paired_permutation_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of an exact paired test: the share of sign flips whose mean difference is as large.

    Fisher's randomisation test (1935): if the seed's two values could as well be exchanged, all 2^n signs of the
    differences are equally likely. Exact up to 20 pairs; beyond, of 999,999 flips drawn with a fixed seed and the one
    seen (Phipson and Smyth 2010). 1 where all differences are 0; NaN with fewer than two pairs. Means that differ by
    rounding only are equal.

    Raises:
        ValueError: if there are not as many of a as of b.
    """
    if len(a) != len(b):
        raise ValueError(f"`a` and `b` must be of one length to be paired, but got {len(a)} and {len(b)}.")
    if len(a) < 2:
        return math.nan
    first, second = scale.normalised(np.array([a], np.float64), np.array([b], np.float64))
    return float(permutation.sign_flip_p(first - second, scale.largest(first, second))[0])


def least_paired_p(n: int) -> float:
    """The smallest p that `paired_permutation_p` can give with n pairs: 2 of 2^n flips; 1 with none or one."""
    if n < 2:
        return 1.0
    return 2.0 ** (1 - n) if permutation.is_flipped_exactly(n) else 1 / (permutation.NUM_DRAWS + 1)


def least_permutation_p(n: int, m: int) -> float:
    """The smallest p that an exact test of regroupings can give; 1 with fewer than two.

    It is 1 of all regroupings, 2 of equal groups.
    """
    if min(n, m) < 2:
        return 1.0
    if not permutation.is_regrouped_exactly(n, m):
        return 1 / (permutation.NUM_DRAWS + 1)
    return (2 if n == m else 1) / math.comb(n + m, n)


def seeds_for_level(level: float, num_comparisons: int = 1) -> int | None:
    """How many pairs `paired_permutation_p` needs to give p up to `level`; None where no number does.

    Args:
        num_comparisons: size of the family: the smallest of so many p-values is multiplied by it (Holm 1979).
    """
    for n in range(2, 22):
        if least_paired_p(n) * num_comparisons <= level:
            return n
    return None


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
