"""How large a difference is, beside whether it is one."""

import functools
import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import scale
from orchestrator.statistics.student import RESOLUTION, Floats

Direction = Literal["minimize", "maximize"]

LEAST_SEEDS: Final = 3
"""The least seeds of a group: with two, the best two are the same group's in one of three comparisons of equals."""


def hedges_g_rows(a: Floats, b: Floats) -> Floats:
    """Hedges' g (1981) of each row of (R, n) and (R, m): the difference of means in units of their pooled deviation.

    The bias of d for m degrees of freedom is taken off by the exact Gamma(m / 2) / (sqrt(m / 2) Gamma((m - 1) / 2)).
    NaN without spread, with an empty group, or with fewer than four values in all, where that factor is 0 or none.
    """
    n, m = a.shape[1], b.shape[1]
    freedom = n + m - 2
    if min(n, m) < 1 or freedom < 2:
        return np.full(len(a), np.nan)
    a, b = scale.normalised(a, b)
    largest = scale.largest(a, b)
    pooled = np.sqrt((a.var(1) * n + b.var(1) * m) / freedom)
    factor = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    g: Floats = factor * (a.mean(1) - b.mean(1)) / np.where(pooled <= RESOLUTION * largest, np.nan, pooled)
    return g


def improvement_rows(a: Floats, b: Floats, direction: Direction) -> Floats:
    """The share of all pairs in which a's value is better than b's, ties counted half; of rows of (R, n) and (R, m).

    The probability of improvement of Agarwal et al. (2021, arXiv:2108.13264) for one task. NaN with an empty group.
    """
    if min(a.shape[1], b.shape[1]) < 1:
        return np.full(len(a), np.nan)
    a, b = scale.normalised(a, b)
    gains = (a[:, :, None] - b[:, None, :]) * (1 if direction == "maximize" else -1)
    rounding = RESOLUTION * scale.largest(a, b)[:, None, None]
    shares: Floats = (0.5 + 0.5 * np.where(np.abs(gains) <= rounding, 0.0, np.sign(gains))).mean((1, 2))
    return shares


def almost_stochastic_order_rows(
    a: Floats, b: Floats, direction: Direction, level: float = 0.95, num_draws: int = 1000, seed: int = 0
) -> Floats:
    """An upper bound of how far a is from better than b throughout, 0 to 1; of each row of (R, n) and (R, m).

    The violation ratio (del Barrio et al. 2018, arXiv:1705.01788; Dror et al. 2019, ACL): of the squared Wasserstein
    distance between a's and b's distributions, the part from quantiles at which a is worse. The bound adds to the
    samples' ratio a normal quantile times the standard deviation of `num_draws` bootstrap samples of the same sizes;
    all rows are resampled alike. 0: a is better at every quantile; 1: worse at every one. It is a description and
    decides nothing here: of two equal conditions one is below 0.5 far more often than 1 - `level`
    (`benchmarks/coverage.py` prints how often).

    NaN with fewer than three values in a group, or where all values are equal.
    """
    from scipy.special import ndtri

    n, m = a.shape[1], b.shape[1]
    bounds = np.full(len(a), np.nan)
    if min(n, m) < LEAST_SEEDS:
        return bounds
    a, b = scale.normalised(a, b)
    places_a, places_b, widths = _steps(n, m)
    rng = np.random.default_rng(seed)
    drawn_a, drawn_b = (np.sort(rng.integers(0, size, (num_draws, size))) for size in (n, m))
    drawn_a, drawn_b = drawn_a[:, places_a], drawn_b[:, places_b]
    sign = 1.0 if direction == "maximize" else -1.0
    for i, (ours, theirs) in enumerate(zip(np.sort(sign * a), np.sort(sign * b), strict=True)):
        rounding = RESOLUTION * max(np.abs(ours).max(), np.abs(theirs).max())
        ratio = _ratio(theirs[places_b] - ours[places_a], widths, rounding)
        if not np.isnan(ratio):
            ratios = _ratio(theirs[drawn_b] - ours[drawn_a], widths, rounding)
            bounds[i] = np.clip(ratio + ndtri(level) * np.std(ratios[~np.isnan(ratios)]), 0.0, 1.0)
    return bounds


def _ratio(gaps: Floats, widths: Floats, rounding: float) -> Floats:
    """The share of the positive of `gaps` (..., steps) in the integral of their squares; what is `rounding` is 0.

    The integrals of del Barrio et al. (2018) over empirical quantile functions are sums over their steps.
    """
    gaps = np.where(np.abs(gaps) <= rounding, 0.0, gaps)
    whole, above = np.square(gaps) @ widths, np.square(np.maximum(gaps, 0.0)) @ widths
    ratio: Floats = above / np.where(whole > 0, whole, np.nan)
    return ratio


@functools.cache
def _steps(n: int, m: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """The steps of the quantile functions of n and of m sorted values: their places in both, and their widths."""
    ends = np.unique(np.concatenate([np.arange(1, n + 1) * m, np.arange(1, m + 1) * n]))  # in units of 1 / (n m)
    starts = np.concatenate([[0], ends[:-1]])
    return starts // m, starts // n, np.diff(ends, prepend=0) / (n * m)
