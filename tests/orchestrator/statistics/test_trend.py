"""Page's test against the table that he published and against another implementation of it."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import page_trend_test

from orchestrator.statistics.trend import page_l, page_p

# Page 1963, table 2: conditions, seeds, the least L that is significant at 5 % and at 1 %
CRITICAL = (
    (3, 3, 41, 42),
    (3, 4, 54, 55),
    (3, 5, 66, 68),
    (4, 2, 58, 60),
    (4, 3, 84, 87),
    (4, 5, 137, 141),
    (5, 2, 103, 106),
    (5, 5, 244, 251),
)


def with_l(num_conditions: int, num_seeds: int, wanted: int) -> np.ndarray:
    """Orders of ranks, one a seed, that have Page's L of `wanted`."""
    places = np.arange(1, num_conditions + 1)
    orders = {int(np.dot(order, places)): order for order in itertools.permutations(range(1, num_conditions + 1))}
    reached: dict[int, list[tuple[int, ...]]] = {0: []}
    for _ in range(num_seeds):
        reached = {total + own: [*rows, order] for total, rows in reached.items() for own, order in orders.items()}
    return np.array(reached[wanted], dtype=float)


@pytest.mark.parametrize(("num_conditions", "num_seeds", "at_5", "at_1"), CRITICAL)
def test_the_critical_values_are_those_that_page_published(num_conditions, num_seeds, at_5, at_1):
    for least, level in ((at_5, 0.05), (at_1, 0.01)):
        table = with_l(num_conditions, num_seeds, least)
        assert page_l(table) == least
        assert page_p(table) <= level < page_p(with_l(num_conditions, num_seeds, least - 1))


@pytest.mark.parametrize("shape", [(3, 3), (5, 4), (5, 6), (4, 8)])
def test_without_ties_it_is_the_exact_test(shape):
    values = np.random.default_rng(sum(shape)).normal(size=shape) + np.arange(shape[1]) / 3
    other = page_trend_test(values, method="exact")
    assert (page_l(values), page_p(values)) == (pytest.approx(other.statistic), pytest.approx(other.pvalue))


def test_many_conditions_take_the_normal_approximation():
    values = np.random.default_rng(3).normal(size=(6, 12)) + np.arange(12) / 8
    other = page_trend_test(values, method="asymptotic")
    assert page_p(values) == pytest.approx(other.pvalue, rel=1e-9) and page_p(values) < 0.05


def test_ties_share_their_ranks_and_the_orders_are_counted_with_them():
    """One seed with values 1, 1 and 2: of the three orders of ranks 1.5, 1.5, 3 one is as large."""
    tied = np.array([[1.0, 1.0, 2.0]])
    assert page_l(tied) == 1.5 + 3 + 9 and page_p(tied) == pytest.approx(1 / 3)
    assert page_p(np.array([[1.0, 1.0 + 1e-14, 2.0]])) == pytest.approx(1 / 3)
    assert page_p(np.ones((4, 3))) == 1.0 and page_p(np.ones((4, 12))) == 1.0
    assert page_p(np.zeros((4, 3))) == 1.0


def test_rising_and_falling_mirror_each_other():
    values = np.array([[1.0, 2, 3, 5], [2, 1, 3, 4], [1, 2, 4, 3]])
    assert page_p(values) < 0.01 and page_p(values[:, ::-1]) > 0.99
    assert math.isclose(page_p(-values), page_p(values[:, ::-1]))
