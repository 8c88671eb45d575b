"""Tests of spread against scipy's, and against a simulation of what they need."""

import math

import numpy as np
import pytest
from scipy.stats import levene, pearsonr

from orchestrator.statistics.spread import brown_forsythe_p, pitman_morgan_p, spread_required_sample_size


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


def test_so_many_values_show_a_ratio_of_spreads():
    """By the normal law of the logarithm of s: 1 + ((1.96 + .84) / ln 2)^2 = 17.3 for twice the spread."""
    assert spread_required_sample_size(1.0, 2.0, 0.05) == spread_required_sample_size(2.0, 1.0, 0.05) == 18
    assert spread_required_sample_size(1.0, 1.0, 0.05) is None and spread_required_sample_size(1.0, 1.01, 0.05) is None
    assert spread_required_sample_size(0.0, 1.0, 0.05) is None and spread_required_sample_size(1.0, 0.0, 0.05) is None
