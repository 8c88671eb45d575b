"""Effects by hand, by their definitions, and by numerical integration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.orchestrator.statistics.scalar_forms import (
    almost_stochastic_order,
    hedges_g,
    improvement_probability,
    violation_ratio,
)

values = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=6)


def test_hedges_g_by_hand():
    """Means 2 and 5, both variances 1, so d = -3; for 4 degrees of freedom the factor is sqrt(2 / pi)."""
    assert hedges_g([1, 2, 3], [4, 5, 6]) == pytest.approx(-3 * math.sqrt(2 / math.pi), rel=1e-12)


def test_hedges_g_has_no_bias():
    rng = np.random.default_rng(0)
    found = [hedges_g(a, b) for a, b in zip(rng.normal(1.0, 1, (6000, 3)), rng.normal(0, 1, (6000, 4)), strict=True)]
    assert np.mean(found) == pytest.approx(1.0, abs=4 * np.std(found) / math.sqrt(6000))


def test_hedges_g_says_nothing_without_spread_or_with_too_few():
    assert all(math.isnan(hedges_g(*pair)) for pair in ([[1, 1], [2, 2]], [[1], [2, 3]], [[1.0, 2.0, 3.0], []]))
    assert math.isnan(hedges_g([0.3 - 0.1, 0.4 - 0.2], [0.5, 0.5]))
    assert hedges_g([1, 1, 1], [2]) != hedges_g([1, 1, 2], [2])
    assert hedges_g([1], [2, 3, 4]) < 0


@given(values, values)
def test_improvement_is_the_mann_whitney_statistic_over_all_pairs(a, b):
    u = stats.mannwhitneyu(a, b).statistic
    assert improvement_probability(a, b, "maximize") == pytest.approx(u / len(a) / len(b))
    assert improvement_probability(a, b, "minimize") == pytest.approx(1 - u / len(a) / len(b))


def test_improvement_by_hand_and_of_nothing():
    assert improvement_probability([1, 2], [2, 3], "minimize") == (1 + 1 + 0.5 + 1) / 4
    assert improvement_probability([0.3 - 0.1], [0.4 - 0.2], "minimize") == 0.5
    assert math.isnan(improvement_probability([], [1.0], "minimize"))


def integrated(a, b, num_steps=3 * 4 * 5 * 7 * 8):
    """The ratio by summing over many quantile levels, each in the middle of a step."""
    levels = (np.arange(num_steps) + 0.5) / num_steps
    gaps = [np.quantile(b, t, method="inverted_cdf") - np.quantile(a, t, method="inverted_cdf") for t in levels]
    squares = np.square(gaps)
    return squares[np.array(gaps) > 0].sum() / squares.sum()


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 5), (8, 3), (7, 5)])
def test_violation_ratio_is_the_integral(n, m):
    rng = np.random.default_rng(n * m)
    a, b = rng.normal(size=n), rng.normal(size=m)
    assert violation_ratio(a, b) == pytest.approx(integrated(a, b), rel=1e-9)
    assert violation_ratio(a, b) + violation_ratio(b, a) == pytest.approx(1.0)


def test_violation_ratio_by_hand():
    """Sorted gaps b - a of 1, -2 and 0: the first is a violation, 1 of 5 squares."""
    assert violation_ratio([3, 0, 5], [5, 1, 1]) == pytest.approx(1 / 5)
    assert math.isnan(violation_ratio([1, 2], [2, 1]))


def test_order_is_the_ratio_and_a_normal_quantile_of_its_bootstrap():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.8, 1, 6), rng.normal(0, 1, 9)
    draws = [violation_ratio(rng.choice(a, 6), rng.choice(b, 9)) for _ in range(4000)]
    expected = violation_ratio(a, b) + stats.norm.ppf(0.9) * np.std(draws)
    assert 0.1 < expected < 0.9
    assert almost_stochastic_order(a, b, "maximize", 0.9, 4000) == pytest.approx(expected, abs=0.03)
    assert almost_stochastic_order(-a, -b, "minimize", 0.9, 4000) == almost_stochastic_order(
        a, b, "maximize", 0.9, 4000
    )


def test_order_at_its_ends_and_of_nothing():
    assert almost_stochastic_order([1, 2, 3], [4, 5, 6], "minimize") == 0.0
    assert almost_stochastic_order([1, 2, 3], [4, 5, 6], "maximize") == 1.0
    assert almost_stochastic_order([1, 1, 1], [2, 2, 2], "minimize") == 0.0
    nothing = [([1, 2], [3, 4, 5]), ([1, 1, 1], [1, 1, 1]), ([0.3 - 0.1] * 3, [0.4 - 0.2] * 3), ([], [1, 2, 3])]
    assert all(math.isnan(almost_stochastic_order(a, b, "minimize")) for a, b in nothing)


def test_order_repeats_itself_and_grows_with_its_level():
    a, b = [1.0, 4.0, 2.0, 6.0], [2.0, 3.0, 5.0, 5.5]
    bounds = [almost_stochastic_order(a, b, "minimize", level) for level in (0.5, 0.8, 0.95)]
    assert bounds == sorted(set(bounds)) and bounds[0] == pytest.approx(
        violation_ratio([-x for x in a], [-x for x in b])
    )
    assert almost_stochastic_order(a, b, "minimize") == bounds[2]
    assert len(set(itertools.starmap(almost_stochastic_order, [(a, b, "minimize", 0.8, 50, s) for s in range(3)]))) > 1
