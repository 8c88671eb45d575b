"""Asynchronous successive halving: where a curve stands at each rung, and who goes on."""

import math
import random

import pytest

from search_spaces.halving import Halving, goes_on


@pytest.mark.parametrize(
    ("own", "others", "factor", "expected"),
    [
        (9.0, [], 3, True),  # fewer than three have come
        (9.0, [1.0], 3, True),
        (9.0, [1.0, 2.0], 3, False),  # of three the best goes on
        (0.5, [1.0, 2.0], 3, True),
        (1.0, [1.0, 2.0], 3, True),  # no better one came before
        (2.0, [1.0, 3.0, 4.0, 5.0, 6.0], 3, True),  # the second of six
        (2.0, [1.0, 1.5, 4.0, 5.0, 6.0], 3, False),
        (2.0, [1.0, 3.0, 4.0, 5.0], 3, False),  # of five still one alone
        (math.nan, [1.0], 2, False),
        (math.nan, [], 2, True),
        (1.0, [math.nan, math.nan], 3, True),
    ],
)
def test_the_best_share_of_those_that_came_so_far_goes_on(own, others, factor, expected):
    assert goes_on(own, others, factor) == expected


def test_it_is_the_best_quantile_of_a_simulation_that_sorts():
    """Of values without ties, one is kept where it stands in the first `n // factor` of all in order."""
    draw = random.Random(1)
    for factor in (2, 3, 4):
        came: list[float] = []
        kept = 0
        for _ in range(300):
            own = draw.random()
            order = sorted([*came, own])
            expected = len(order) < factor or own in order[: len(order) // factor]
            assert goes_on(own, came, factor) == expected
            kept += expected
            came.append(own)
        assert 300 / factor - 40 < kept < 300 / factor + 40


def test_rungs_are_reached_by_the_first_value_at_or_behind_them_and_hold_the_best_so_far():
    halving = Halving("loss", first=2, factor=3)
    history = {1: 5.0, 2: math.nan, 4: 3.0, 5: 2.0, 7: 4.0, 20: 1.0}
    assert list(halving.reached(history, 100)) == [(2, 2, 5.0), (6, 7, 2.0), (18, 20, 1.0)]
    assert list(halving.reached(history, 20)) == [(2, 2, 5.0), (6, 7, 2.0)]  # nothing is left behind step 20
    assert [rung.value for rung in Halving("acc", 2, 3, "maximize").reached(history, None)] == [5.0, 5.0, 5.0]
    ((_, _, value),) = halving.reached({3: math.nan}, None)
    assert math.isnan(value) and list(halving.reached({}, None)) == list(halving.reached({1: 1.0}, None)) == []
