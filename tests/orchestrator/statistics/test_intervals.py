"""Intervals against SciPy's, the definition of pseudo-values, and what degenerate data leave."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.statistics.student import of_mean, of_paired_difference, of_unpaired_difference
from orchestrator.statistics.summary import NONE, mean_interval
from tests.orchestrator.statistics.scalar_forms import jackknife_interval, paired_difference_interval, welch_interval

A, B = [1.0, 2.0, 4.0, 4.5], [3.0, 5.0, 6.0, 8.0]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_those_of_scipy(level):
    own = (mean_interval(A, level), paired_difference_interval(A, B, level), welch_interval(A, B[:3], level))
    theirs = (
        stats.ttest_1samp(A, 0.0).confidence_interval(level),
        stats.ttest_rel(A, B).confidence_interval(level),
        stats.ttest_ind(A, B[:3], equal_var=False).confidence_interval(level),
    )
    for ours, other in zip(own, theirs, strict=True):
        assert ours == pytest.approx((other.low, other.high), rel=1e-12)


def test_the_jackknife_of_a_mean_is_its_t_interval():
    without = [np.mean(A[:i] + A[i + 1 :]) for i in range(4)]
    assert jackknife_interval(np.mean(A), without) == pytest.approx(mean_interval(A), rel=1e-12)


def test_the_jackknife_takes_off_the_bias_of_a_variance():
    """Of the variance with n in the denominator the mean pseudo-value is the one with n - 1 (Quenouille 1956)."""
    without = [np.var(A[:i] + A[i + 1 :]) for i in range(4)]
    low, high = jackknife_interval(np.var(A), without)
    assert (low + high) / 2 == pytest.approx(np.var(A, ddof=1), rel=1e-12)


def test_there_is_none_for_one_value():
    intervals = [mean_interval([1.0]), mean_interval([]), paired_difference_interval([1.0], [2.0])]
    intervals += [welch_interval([1.0], B), welch_interval(A, [])]
    intervals += [jackknife_interval(1.0, [1.0]), jackknife_interval(1.0, [])]
    assert all(math.isnan(bound) for interval in (*intervals, NONE) for bound in interval)


def test_without_spread_it_is_the_value_itself():
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
    assert paired_difference_interval([0.3, 0.4, 0.9], [0.1, 0.2, 0.7]) == pytest.approx((0.2, 0.2), abs=1e-15)
    assert welch_interval([2.0, 2.0], [1.0, 1.0, 1.0]) == (1.0, 1.0)
    assert jackknife_interval(3.0, [3.0, 3.0]) == (3.0, 3.0)


def test_what_differs_by_rounding_only_has_no_spread():
    """0.3 - 0.1 and 0.4 - 0.2 are not the same number, by 3e-17."""
    assert 0.3 - 0.1 != 0.4 - 0.2
    low, high = paired_difference_interval([0.3, 0.4], [0.1, 0.2])
    assert low == high
    low, high = mean_interval([1e6, 1e6 * (1 + 2e-16), 1e6])
    assert low == high
    assert mean_interval([1e6, 1e6 + 1e-3])[1] > 1e6 + 1e-3


def test_rows_are_what_single_ones_are():
    draws = np.random.default_rng(1).normal(size=(2, 3, 5))
    for i in range(3):
        a, b = draws[:, i]
        for many, one in (
            (of_mean(draws[0]), of_mean(a)),
            (of_paired_difference(*draws), of_paired_difference(a, b)),
            (of_unpaired_difference(draws[0], draws[1, :, :3]), of_unpaired_difference(a, b[:3])),
        ):
            assert [column[i] for column in many] == pytest.approx([float(x) for x in one], rel=1e-14)
