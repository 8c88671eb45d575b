"""Page's test of an ordered alternative: whether values rise along conditions that share their seeds."""

import itertools
import math
from collections import Counter
from functools import cache
from typing import Final

import numpy as np

from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION, Floats

MOST_EXACT: Final = 8
"""Conditions whose orders are all counted: 40,320."""


def page_l(values: Floats) -> float:
    """Page's L (1963) of `values` (n seeds, k conditions): the sum of each condition's place times its sum of ranks.

    Ranks are within a seed, from 1; equal values share the mean of theirs, and so do values that differ by rounding.
    """
    ranks = _ranks(values)
    return float(ranks.sum(0) @ np.arange(1, ranks.shape[1] + 1))


def page_p(values: Floats) -> float:
    """The one-sided p-value of Page's L that `values` (n, k) rise along the conditions: of an L at least so large.

    If the conditions are alike, every order of a seed's ranks is equally likely: exact up to 8 conditions, ties
    included; beyond, by the normal approximation of L. 1 where all values of each seed are equal.
    """
    ranks = _ranks(values)
    num_seeds, count = ranks.shape
    places = np.arange(1, count + 1)
    if count <= MOST_EXACT:
        # scipy's `page_trend_test` counts the orders of ranks without ties: with them it is off by up to .13.
        doubled = np.rint(2 * ranks).astype(int)  # whole numbers, also of a tie's mean rank
        observed = int((doubled @ places).sum())
        shares, least = np.ones(1), 0
        for row in doubled:
            own, own_least = _distribution_of_seed(tuple(sorted(row.tolist())))
            shares, least = np.convolve(shares, own), least + own_least
        return float(shares[max(0, observed - least) :].sum())
    mean = num_seeds * count * (count + 1) ** 2 / 4
    spread = np.square(places - places.mean()).sum() / (count - 1)
    variance = spread * np.square(ranks - (count + 1) / 2).sum()
    return math.erfc((page_l(values) - mean) / math.sqrt(variance) / math.sqrt(2)) / 2 if variance else 1.0


def _ranks(values: Floats) -> Floats:
    (values,) = scale.normalised(values)
    size = np.abs(values).max(axis=1, keepdims=True)
    steps = np.round(values / np.where(size == 0, 1.0, size * RESOLUTION * 10))
    gaps = steps[:, :, None] - steps[:, None, :]
    ranks: Floats = (gaps > 0).sum(2) + ((gaps == 0).sum(2) + 1) / 2
    return ranks


@cache
def _distribution_of_seed(doubled: tuple[int, ...]) -> tuple[Floats, int]:
    """How likely each sum of place times doubled rank is, from the least sum on."""
    orders = np.array(list(itertools.permutations(doubled)))
    counts = Counter((orders @ np.arange(1, len(doubled) + 1)).tolist())
    least = min(counts)
    shares = np.zeros(max(counts) - least + 1)
    for total, count in counts.items():
        shares[total - least] = count / len(orders)
    return shares, least
