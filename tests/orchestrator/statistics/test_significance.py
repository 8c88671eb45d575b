"""Tests over seeds against their definitions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from orchestrator.statistics.significance import (
    holm,
    least_paired_p,
    least_permutation_p,
    paired_permutation_p,
    seeds_for_level,
    welch_p,
)
from tests.orchestrator.statistics.scalar_forms import permutation_p


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


def test_welch_says_nothing_where_values_differ_by_rounding_only():
    assert math.isnan(welch_p([0.3 - 0.1, 0.4 - 0.2], [0.5, 0.5]))


def flips(differences):
    """The share of sign flips with a sum as far from 0, in exact fractions."""
    exact = [Fraction(d).limit_denominator(10**6) for d in differences]
    sums = [
        abs(sum(s * d for s, d in zip(signs, exact, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(exact))
    ]
    return Fraction(sum(x >= sums[0] for x in sums), len(sums))


def regroupings(a, b):
    """The share of choices of len(a) of all values with means as far apart, in exact fractions."""
    values = [Fraction(x).limit_denominator(10**6) for x in (*a, *b)]
    total = sum(values)
    gaps = []
    for chosen in itertools.combinations(range(len(values)), len(a)):
        part = sum(values[i] for i in chosen)
        gaps.append(abs(part / len(a) - (total - part) / len(b)))
    return Fraction(sum(x >= gaps[0] for x in gaps), len(gaps))


rounded = st.integers(-40, 40).map(lambda k: k / 10)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(rounded, rounded), min_size=2, max_size=8))
def test_paired_p_is_the_share_of_all_flips_even_where_they_tie(pairs):
    a, b = zip(*pairs, strict=True)
    assert paired_permutation_p(a, b) == pytest.approx(float(flips([x - y for x, y in pairs])), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(rounded, min_size=2, max_size=5), st.lists(rounded, min_size=2, max_size=4))
def test_unpaired_p_is_the_share_of_all_regroupings_even_where_they_tie(a, b):
    assert permutation_p(a, b) == pytest.approx(float(regroupings(a, b)), abs=1e-12)


def test_exact_p_values_are_those_of_scipy():
    draws = np.random.default_rng(3).normal(size=(2, 9))

    def gap(x, y, axis):
        return np.abs(np.mean(x, axis) - np.mean(y, axis))

    a, b = draws
    options = {"n_resamples": np.inf, "alternative": "greater"}
    theirs = stats.permutation_test((a, b), gap, permutation_type="samples", **options).pvalue
    assert paired_permutation_p(a, b) == pytest.approx(theirs, abs=1e-12)
    for n, m in ((3, 6), (5, 5)):
        theirs = stats.permutation_test((a[:n], b[:m]), gap, permutation_type="independent", **options).pvalue
        assert permutation_p(a[:n], b[:m]) == pytest.approx(theirs, abs=1e-12)


def test_ten_pairs_and_ten_a_side_cross_blocks_of_flips():
    """More flips than are weighed at once; by SciPy's own enumeration."""
    a, b = np.random.default_rng(4).normal(size=(2, 12))
    theirs = stats.permutation_test((a - b,), lambda d, axis: np.abs(np.mean(d, axis)), permutation_type="samples",
                                    n_resamples=np.inf, alternative="greater").pvalue  # fmt: skip
    assert paired_permutation_p(a, b) == pytest.approx(theirs, abs=1e-12)


def test_a_shift_that_all_seeds_share_gives_the_least_p():
    assert paired_permutation_p([0.3, 0.4, 0.5, 0.6, 0.7], [0.1, 0.2, 0.3, 0.4, 0.5]) == 0.0625 == least_paired_p(5)
    assert permutation_p([3.0, 4.0, 5.0], [0.0, 1.0, 2.0]) == pytest.approx(0.1) == least_permutation_p(3, 3)
    assert permutation_p([30.0, 40.0], [0.0, 1.0, 2.0]) == pytest.approx(0.1) == least_permutation_p(2, 3)


def test_a_large_common_offset_does_not_split_ties():
    """With 1e6 added, differences of 0.1 are rounded at 1e-10."""
    a, b = [0.1, 0.2, 0.4], [0.2, 0.3, 0.3]
    far_a, far_b = [1e6 + x for x in a], [1e6 + x for x in b]
    assert paired_permutation_p(far_a, far_b) == paired_permutation_p(a, b) == 1.0
    assert permutation_p(far_a, far_b) == permutation_p(a, b)


def test_equal_values_give_one_and_single_values_nothing():
    assert paired_permutation_p([1.0, 2.0], [1.0, 2.0]) == 1.0 == permutation_p([0.1, 0.1], [0.1, 0.1])
    assert all(math.isnan(p) for p in (paired_permutation_p([1.0], [2.0]), paired_permutation_p([], [])))
    assert all(math.isnan(p) for p in (permutation_p([1.0], [2.0, 3.0]), permutation_p([1.0, 2.0], [])))
    assert least_paired_p(1) == least_permutation_p(1, 9) == 1.0
    with pytest.raises(ValueError, match="one length"):
        paired_permutation_p([1.0], [1.0, 2.0])


def test_beyond_the_exact_range_draws_are_near_and_repeat_themselves():
    """22 pairs of which the sum is known to be normal enough; 12 against 12 by the normal limit too."""
    a, b = np.random.default_rng(5).normal(0.3, size=22), np.zeros(22)
    p = paired_permutation_p(a, b)
    exact = 2 * stats.norm.sf(a.sum() / math.sqrt((a**2).sum()))
    assert p == pytest.approx(exact, rel=0.15) and p == paired_permutation_p(a, b)
    x, y = np.random.default_rng(6).normal([[0.5], [0.0]], size=(2, 12))
    spread = np.r_[x, y].std(ddof=1) * math.sqrt(2 / 12)
    assert permutation_p(x, y) == pytest.approx(2 * stats.norm.sf(abs(x.mean() - y.mean()) / spread), rel=0.15)


def test_drawn_p_values_are_never_zero():
    """Phipson and Smyth (2010): the flip that was seen counts."""
    assert paired_permutation_p([1.0] * 30, [0.0] * 30) == pytest.approx(1e-6) == least_paired_p(30)
    assert least_permutation_p(12, 12) == pytest.approx(1e-6)


def test_least_p_and_seeds_for_a_level():
    assert [least_paired_p(n) for n in (2, 5, 6, 20)] == [1 / 2, 1 / 16, 1 / 32, 2.0**-19]
    assert [least_permutation_p(n, n) for n in (3, 5, 10)] == [1 / 10, 1 / 126, 2 / 184756]
    assert seeds_for_level(0.05) == 6
    assert seeds_for_level(0.05, num_comparisons=5) == 8 and seeds_for_level(0.01) == 8
    assert seeds_for_level(1e-7) is None
    assert seeds_for_level(1 / 32) == 6


def test_more_pairs_never_raise_the_least_p():
    least = [least_paired_p(n) for n in range(2, 30)]
    assert least == sorted(least, reverse=True)
    least = [least_permutation_p(n, n) for n in range(2, 30)]
    assert least == sorted(least, reverse=True)
