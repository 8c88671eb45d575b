"""Tests of spread against scipy's, and against a simulation of what they need."""

import math

import numpy as np
import pytest
from scipy.stats import levene, pearsonr, ttest_ind

from orchestrator.statistics.spread import (
    brown_forsythe_p,
    paired_spread_required_sample_size,
    pitman_morgan_p,
    spread_required_sample_size,
)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (4, 9), (3, 20)])
def test_groups_are_compared_as_brown_and_forsythe_do(n, m):
    rng = np.random.default_rng(n * m)
    a, b = rng.normal(0, 1, n).tolist(), rng.normal(3, 4, m).tolist()
    assert brown_forsythe_p(a, b) == pytest.approx(levene(a, b, center="median").pvalue)


def test_pairs_are_compared_by_the_correlation_of_sums_and_differences():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 8), rng.normal(3, 4, 8)
    expected = pearsonr(a + b, a - b).pvalue
    assert pitman_morgan_p(a.tolist(), b.tolist()) == pytest.approx(expected)


def test_what_shows_nothing_is_no_test():
    assert math.isnan(brown_forsythe_p([1, 2], [1, 2, 3])) and math.isnan(pitman_morgan_p([1, 2], [1, 3]))
    assert math.isnan(brown_forsythe_p([1, 1, 1], [2, 2, 2])) and math.isnan(pitman_morgan_p([1, 2, 4], [2, 3, 5]))
    assert math.isnan(pitman_morgan_p([1, 2, 4], [7, 7, 7])) and pitman_morgan_p([1, 2, 4], [10, 20, 40]) == 0.0
    with pytest.raises(ValueError, match="of one length"):
        pitman_morgan_p([1, 2, 3], [1, 2])


def simulated_power(p_of_rows, n, ratio, correlation, level):
    """Of 8,000 experiments with n normal values a side, the second `ratio` times as wide."""
    rng = np.random.default_rng(n)
    a, other = rng.normal(size=(2, 8000, n))
    b = ratio * (correlation * a + math.sqrt(1 - correlation**2) * other)
    return float((p_of_rows(a, b) <= level).mean())


def brown_forsythe_rows(a, b):
    deviations = [np.abs(x - np.median(x, axis=1, keepdims=True)) for x in (a, b)]
    return ttest_ind(*deviations, axis=1).pvalue


def pitman_morgan_rows(a, b):
    return pearsonr(a + b, a - b, axis=1).pvalue


@pytest.mark.parametrize("ratio", [1.5, 2.0, 3.0, 10.0])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_so_many_values_show_a_ratio_of_spreads(ratio, level):
    n = spread_required_sample_size(1.0, ratio, level)
    assert n == spread_required_sample_size(ratio, 1.0, level)
    assert simulated_power(brown_forsythe_rows, n, ratio, 0.0, level) > 0.78
    assert simulated_power(brown_forsythe_rows, n - 2, ratio, 0.0, level) < 0.8


@pytest.mark.parametrize(("ratio", "correlation"), [(1.5, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, 0.8), (1.5, 0.9)])
@pytest.mark.parametrize("level", [0.05, 0.0125])
def test_so_many_pairs_show_a_ratio_of_spreads(ratio, correlation, level):
    n = paired_spread_required_sample_size(1.0, ratio, correlation, level)
    assert n == paired_spread_required_sample_size(ratio, 1.0, correlation, level)
    assert simulated_power(pitman_morgan_rows, n, ratio, correlation, level) > 0.77
    assert simulated_power(pitman_morgan_rows, n - 2, ratio, correlation, level) < 0.8


def test_no_number_shows_equal_spreads_or_one_that_is_none():
    for size in (spread_required_sample_size, lambda a, b, level: paired_spread_required_sample_size(a, b, 0.5, level)):
        assert [size(a, b, 0.05) for a, b in ((1.0, 1.0), (1.0, 1.01), (0.0, 1.0), (1.0, 0.0))] == [None] * 4
