"""Differences against SciPy's t-tests, and what is within a margin."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.statistics.equivalence import Difference, equivalence_p
from orchestrator.statistics.summary import mean_interval
from tests.orchestrator.statistics.scalar_forms import paired_difference_interval, welch_interval

OURS, THEIRS = [18.1, 18.9, 18.4, 17.6], [17.2, 17.9, 18.3]


def test_against_a_published_summary_it_is_welch_of_the_values_behind_it():
    mean, std = float(np.mean(THEIRS)), float(np.std(THEIRS, ddof=1))
    found = Difference.from_published(OURS, mean, std, 3)
    theirs = stats.ttest_ind_from_stats(np.mean(OURS), np.std(OURS, ddof=1), 4, mean, std, 3, equal_var=False)
    assert found.p() == pytest.approx(theirs.pvalue, rel=1e-9)
    assert found.interval() == pytest.approx(welch_interval(OURS, THEIRS), rel=1e-9)


@pytest.mark.parametrize(("std", "n"), [(None, None), (None, 5), (0.3, None), (0.3, 1)])
def test_a_published_mean_without_spread_or_number_is_exact(std, n):
    found = Difference.from_published(OURS, 18.0, std, n)
    assert found.p() == pytest.approx(stats.ttest_1samp(OURS, 18.0).pvalue, rel=1e-9)
    assert found.interval(0.9) == pytest.approx([x - 18.0 for x in mean_interval(OURS, 0.9)], rel=1e-9)


def test_a_published_spread_of_zero_is_exact_too():
    assert Difference.from_published(OURS, 18.0, 0.0, 5) == Difference.from_published(OURS, 18.0)


def test_paired_and_unpaired_are_the_tests_of_that_name():
    assert Difference.paired(OURS[:3], THEIRS).p() == pytest.approx(stats.ttest_rel(OURS[:3], THEIRS).pvalue, rel=1e-9)
    assert Difference.paired(OURS[:3], THEIRS).interval() == paired_difference_interval(OURS[:3], THEIRS)
    expected = stats.ttest_ind(OURS, THEIRS, equal_var=False).pvalue
    assert Difference.unpaired(OURS, THEIRS).p() == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="one length"):
        Difference.paired(OURS, THEIRS)


def test_equivalence_is_the_larger_of_two_one_sided_tests():
    shifted = [stats.ttest_rel(OURS[:3], [x - m for x in THEIRS], alternative=a).pvalue
               for m, a in ((0.9, "greater"), (-0.9, "less"))]  # fmt: skip
    assert Difference.paired(OURS[:3], THEIRS).equivalence_p(0.9) == pytest.approx(max(shifted), rel=1e-9)


def test_equivalence_is_found_where_the_90_percent_interval_is_within_the_margin():
    found = Difference(0.2, 0.1, 4)
    low, high = found.interval(0.9)
    assert found.equivalence_p(high) == pytest.approx(0.05)
    assert found.equivalence_p(high * 1.01) < 0.05 < found.equivalence_p(high * 0.99)
    assert Difference(-0.2, 0.1, 4).interval(0.9) == pytest.approx((-high, -low))
    assert equivalence_p(0.2, 0.1, 4, 0.2) == 0.5


def test_without_a_standard_error_the_difference_is_certain():
    same, other = Difference.from_published([0.1] * 3, 0.1), Difference.from_published([24.3] * 3, 24.2)
    assert (same.value, same.standard_error, same.p(), same.equivalence_p(0.0)) == (0.0, 0.0, 1.0, 0.0)
    assert other.p() == 0.0 and other.interval() == pytest.approx((0.1, 0.1))
    assert (other.equivalence_p(0.09), other.equivalence_p(0.1), other.equivalence_p(0.11)) == (1.0, 0.0, 0.0)
    assert Difference.unpaired([0.3 - 0.1] * 2, [0.4 - 0.2] * 2).p() == 1.0


def test_a_constant_against_a_spread_has_the_spreads_error():
    found = Difference.from_published([2.0, 2.0, 2.0], 1.0, 0.5, 4)
    assert (found.value, found.standard_error, found.freedom) == pytest.approx((1.0, 0.25, 3.0))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_value_says_nothing(values):
    found = [Difference.from_published(values, 1.0, 0.1, 5), Difference.from_published(values, 1.0)]
    found += [Difference.unpaired(values, THEIRS), Difference.paired(values, values)]
    for one in found:
        assert math.isnan(one.p()) and math.isnan(one.equivalence_p(1.0)) and math.isnan(one.interval().low)


def test_a_margin_is_no_negative_number():
    with pytest.raises(ValueError, match="margin"):
        equivalence_p(0.0, 1.0, 3, -0.1)
