"""Student's t along the last axis: estimates with their standard errors, for one sample or for many at once."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.statistics import scale

Floats = NDArray[np.float64]

RESOLUTION: Final = 1e-12
"""Relative to the largest number that went in: what differs by less differs by rounding only."""


def is_constant(values: Floats, sizes: Floats | None = None) -> NDArray[np.bool_]:
    """Whether each row of `values` (..., n) varies by no more than rounding; there is no other rule for that.

    Args:
        sizes: (..., n) of the numbers that the values were made of; default: their own.
    """
    sizes = np.abs(values) if sizes is None else sizes
    powers = scale.exponents(sizes.max(-1))
    resolution = RESOLUTION * scale.times(sizes.max(-1), -powers)
    is_within: NDArray[np.bool_] = np.ptp(scale.divided(values, powers), -1) <= resolution
    return is_within


class Estimates(NamedTuple):
    """Numbers of one shape, each with what its interval and tests need.

    Attributes:
        standard_error: 0 where nothing varies.
        freedom: degrees of freedom; NaN where the values are too few to say anything.
    """

    value: Floats
    standard_error: Floats
    freedom: Floats


def of_mean(values: Floats) -> Estimates:
    """The mean of `values` (..., n)."""
    return _of_sample(values, np.abs(values))


def of_new_value(values: Floats, new: Floats) -> Estimates:
    """`new` (...) minus the mean of `values` (..., n), where it is one more draw of the same (Hahn and Meeker 1991).

    Its interval about 0 is the prediction interval of a single value.
    """
    mean = of_mean(values)
    difference = without_rounding(new - mean.value, values, new[..., None])
    return Estimates(difference, mean.standard_error * np.sqrt(values.shape[-1] + 1), mean.freedom)


def of_paired_difference(a: Floats, b: Floats) -> Estimates:
    """Mean of `a` minus mean of `b`, both (..., n), from the differences value by value; 0 if by rounding only."""
    powers = scale.headroom(a, b)
    a, b = scale.divided(a, powers), scale.divided(b, powers)
    estimates = _of_sample(a - b, np.maximum(np.abs(a), np.abs(b)))
    return _times(estimates._replace(value=without_rounding(estimates.value, a, b)), powers)


def of_unpaired_difference(a: Floats, b: Floats) -> Estimates:
    """Mean of `a` (..., n) minus mean of `b` (..., m), which may have spreads of their own (Welch 1947)."""
    powers = scale.headroom(a, b)
    a, b = scale.divided(a, powers), scale.divided(b, powers)
    first, second = of_mean(a), of_mean(b)
    return _times(combine(without_rounding(first.value - second.value, a, b), first, second), powers)


def of_jackknife(value: Floats, leave_one_out: Floats) -> Estimates:
    """A statistic `value` (...) of n seeds from its values without each of them (..., n): mean of the pseudo-values.

    Tukey (1958): pseudo-value i is n times `value` less n - 1 times the value without seed i.
    """
    n = leave_one_out.shape[-1]
    powers = scale.headroom(value[..., None], leave_one_out)
    whole, leave_one_out = scale.divided(value[..., None], powers), scale.divided(leave_one_out, powers)
    sizes = n * np.maximum(np.abs(whole), np.abs(leave_one_out))
    return _times(_of_sample(n * whole - (n - 1) * leave_one_out, sizes), powers)


def combine(value: Floats, first: Estimates, second: Estimates) -> Estimates:
    """`value` with the standard error of a difference of two, and degrees of freedom by Welch (1947).

    Where neither varies they are the sum of both.
    """
    powers = scale.exponents(np.maximum(first.standard_error, second.standard_error))
    squares = [np.square(scale.times(part.standard_error, -powers)) for part in (first, second)]
    total = squares[0] + squares[1]
    shares = np.square(squares[0]) / first.freedom + np.square(squares[1]) / second.freedom
    is_certain = total == 0
    freedom = np.where(is_certain, first.freedom + second.freedom, np.square(total) / np.where(is_certain, 1.0, shares))
    return Estimates(value, scale.times(np.sqrt(total), powers), freedom)


def without_rounding(difference: Floats, a: Floats, b: Floats) -> Floats:
    """`difference` (...), 0 where it is no more than rounding of `a` (..., n) and `b` (..., m)."""
    largest = np.maximum(np.abs(a).max(-1, initial=0.0), np.abs(b).max(-1, initial=0.0))
    return np.where(np.abs(difference) <= RESOLUTION * largest, 0.0, difference)


def half_width(estimates: Estimates, level: float) -> Floats:
    """Half the width of each confidence interval; 0 without a standard error, NaN where there is none."""
    from scipy.special import stdtrit

    with np.errstate(over="ignore"):
        width: Floats = stdtrit(estimates.freedom, (1 + level) / 2) * estimates.standard_error
    return width


def bounds(estimates: Estimates, level: float) -> tuple[Floats, Floats]:
    """The ends of each confidence interval: NaN where there is none, infinite where they lie beyond float64."""
    half = half_width(estimates, level)
    with np.errstate(over="ignore", invalid="ignore"):
        return estimates.value - half, estimates.value + half


def two_sided_p(estimates: Estimates) -> Floats:
    """p-values that each is 0; NaN where there is no standard error, or none can be said."""
    from scipy.special import stdtr

    is_certain = estimates.standard_error == 0
    with np.errstate(over="ignore", invalid="ignore"):
        t = np.abs(estimates.value) / np.where(is_certain, np.nan, estimates.standard_error)
    p: Floats = 2 * stdtr(estimates.freedom, -t)
    return p


def _of_sample(values: Floats, sizes: Floats) -> Estimates:
    """The mean of `values`; of no spread where they differ by no more than rounding of numbers of `sizes`."""
    n = values.shape[-1]
    nothing = np.full(values.shape[:-1], np.nan)
    if n == 0:
        return Estimates(nothing, nothing, nothing)
    powers = scale.exponents(sizes.max(-1))
    values, sizes = scale.divided(values, powers), scale.divided(sizes, powers)
    mean = scale.times(values.mean(-1), powers)
    if n == 1:
        return Estimates(mean, nothing, nothing)
    error = np.where(is_constant(values, sizes), 0.0, values.std(-1, ddof=1)) / np.sqrt(n)
    return Estimates(mean, scale.times(error, powers), np.full(mean.shape, n - 1.0))


def _times(estimates: Estimates, powers: scale.Exponents) -> Estimates:
    value, error, freedom = estimates
    return Estimates(scale.times(value, powers), scale.times(error, powers), freedom)
