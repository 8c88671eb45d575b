"""Tests over seeds against their definitions."""

import math

import pytest
from scipy import stats

from orchestrator.statistics.significance import holm, welch_p


def test_welch_by_its_formula():
    a, b = [1.0, 2.0, 4.0], [3.0, 5.0, 6.0, 8.0]
    means = [sum(x) / len(x) for x in (a, b)]
    errors = [sum((v - m) ** 2 for v in x) / (len(x) - 1) / len(x) for x, m in zip((a, b), means, strict=True)]
    t = (means[0] - means[1]) / math.sqrt(sum(errors))
    freedom = sum(errors) ** 2 / sum(e**2 / (len(x) - 1) for e, x in zip(errors, (a, b), strict=True))
    assert welch_p(a, b) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-12)
    assert welch_p(a, b) == welch_p(b, a)


def test_welch_says_nothing_without_spread_or_with_one_value():
    assert math.isnan(welch_p([1.0], [2.0, 3.0]))
    assert math.isnan(welch_p([1.0, 1.0], [1.0, 1.0]))
    assert math.isnan(welch_p([], [1.0, 2.0]))
    assert welch_p([1.0, 1.0], [1.0, 2.0]) > 0.05


def test_holm_by_hand():
    """Of .01, .04, .03, .005: 4 x .005, 3 x .01, 2 x .03, and .04, which must not be below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_counts_no_test_that_says_nothing():
    adjusted = holm([math.nan, 0.02, 0.03])
    assert math.isnan(adjusted[0]) and adjusted[1:] == pytest.approx([0.04, 0.04])
