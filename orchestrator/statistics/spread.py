"""Tests of whether two groups spread alike, and how many values it takes to show that they do not."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from orchestrator.statistics import scale
from orchestrator.statistics.power import MOST_SEEDS, POWER
from orchestrator.statistics.student import RESOLUTION, Estimates, Floats, two_sided_p

LEAST: Final = 3
"""Values of a group that has a spread to test."""


def brown_forsythe_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value that two separate groups have one variance (Brown and Forsythe 1974).

    An analysis of variance of the absolute deviations from each group's median, which holds its level where values are
    not normal. NaN with fewer than three values in a group, or where the deviations of neither group vary.
    scipy's `levene` takes rounding for spread and squares what float64 cannot hold.
    """
    if min(len(a), len(b)) < LEAST:
        return math.nan
    groups = scale.normalised(np.asarray(a, np.float64), np.asarray(b, np.float64))
    deviations = [np.abs(values - np.median(values)) for values in groups]
    freedom = len(a) + len(b) - 2
    squares = sum(float(np.square(group - group.mean()).sum()) for group in deviations)
    error = math.sqrt(squares / freedom * (1 / len(a) + 1 / len(b)))
    if error <= RESOLUTION * scale.largest(*groups):
        return math.nan
    difference = deviations[0].mean() - deviations[1].mean()
    return float(two_sided_p(Estimates(*(np.asarray(x, np.float64) for x in (difference, error, freedom)))))


def pitman_morgan_p(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value that paired values have one variance (Pitman 1939, Morgan 1939).

    Two variances are equal where sums and differences of the pairs are not correlated: Student's t of their
    correlation, with n - 2 degrees of freedom, for normal values. NaN with fewer than three pairs, or where one side,
    sums or differences do not vary.

    Raises:
        ValueError: if there are not as many of a as of b.
    """
    if len(a) != len(b):
        raise ValueError(f"`a` and `b` must be of one length to be paired, but got {len(a)} and {len(b)}.")
    if len(a) < LEAST:
        return math.nan
    first, second = scale.normalised(np.asarray(a, np.float64), np.asarray(b, np.float64))
    sums, differences = _centred(first + second), _centred(first - second)
    lengths = [float(np.sqrt(np.square(x).sum())) for x in (sums, differences, _centred(first), _centred(second))]
    if min(lengths) <= RESOLUTION * float(np.abs(first).max() + np.abs(second).max()):
        return math.nan
    correlation = max(-1.0, min(1.0, float(sums @ differences) / (lengths[0] * lengths[1])))
    if (unexplained := 1 - correlation**2) <= RESOLUTION:  # before the root, which makes 1e-8 of rounding
        return 0.0
    freedom = len(a) - 2
    error = math.sqrt(unexplained / freedom)
    return float(two_sided_p(Estimates(*(np.asarray(x, np.float64) for x in (correlation, error, freedom)))))


def spread_required_sample_size(a: float, b: float, level: float) -> int | None:
    """About how many values of each group show by `brown_forsythe_p` that standard deviations `a` and `b` differ.

    By the mean and the variance of the size of normal values, and a few values more for their median and Student's t,
    as simulated. None where no number below 1,000 does, or one of them is 0: that tells nothing of its size.
    """
    if min(a, b) <= 0 or a == b:
        return None
    a, b = scale.normalised(np.array([a, b]))[0].tolist()
    z, share = ndtri(1 - level / 2), 2 / math.pi  # of a normal value's square that its mean size has
    needed = (z + ndtri(POWER)) ** 2 * (1 - share) / share * (a * a + b * b) / (a - b) ** 2 + z * z / 4 + 0.55
    return _whole(needed)


def paired_spread_required_sample_size(a: float, b: float, correlation: float, level: float) -> int | None:
    """About how many pairs show by `pitman_morgan_p` that standard deviations `a` and `b` differ.

    By Fisher's z of the correlation of their sums and differences; None as in `spread_required_sample_size`.

    Args:
        correlation: of the pairs' values.
    """
    if min(a, b) <= 0 or a == b:
        return None
    a, b = scale.normalised(np.array([a, b]))[0].tolist()
    squares, product = a * a + b * b, 2 * correlation * a * b
    r = abs(a * a - b * b) / math.sqrt(squares * squares - product * product)
    return _whole(((ndtri(1 - level / 2) + ndtri(POWER)) / math.atanh(min(r, 1 - RESOLUTION))) ** 2 + 2.2)


def _whole(needed: float) -> int | None:
    return None if needed > MOST_SEEDS else max(LEAST + 1, math.ceil(needed))


def _centred(values: Floats) -> Floats:
    centred: Floats = values - values.mean()
    return centred
