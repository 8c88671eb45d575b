"""Axes: values at their places, round numbers at the ticks."""

import math

import pytest

from orchestrator.report.figure.axis import Axis

EDGES = [
    sign * x for x in (0.0, 5e-324, 1e-310, 2e-308, 1e-5, 1.0, 1e155, 1e308, 1.7976931348623157e308) for sign in (1, -1)
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("values", [(a, b) for a in EDGES for b in EDGES if a <= b])
def test_every_finite_number_has_a_place(values):
    axis = Axis.around(values, 100.0, 300.0, values)
    places = [axis.at(value) for value in values]
    assert 100 <= places[0] <= places[1] <= 300
    assert all(100 <= place <= 300 and text for place, text in axis.ticks())
    assert math.isfinite(axis.limits[0]) and axis.unit is not None


def test_values_lie_in_proportion():
    axis = Axis(0.0, 10.0, 100.0, 300.0)
    assert [axis.at(x) for x in (0.0, 2.5, 10.0)] == [100.0, 150.0, 300.0]


def test_a_vertical_axis_goes_up():
    axis = Axis(0.0, 10.0, 300.0, 100.0)
    assert axis.at(0.0) == 300.0 and axis.at(10.0) == 100.0


def test_what_lies_outside_is_at_the_end():
    axis = Axis(0.0, 10.0, 100.0, 300.0)
    assert [axis.at(x) for x in (-5.0, 99.0, math.inf, -math.inf)] == [100.0, 300.0, 300.0, 100.0]


def test_ticks_are_round_and_at_their_values():
    axis = Axis(0.13, 0.38, 0.0, 250.0)
    ticks = {text: place for place, text in axis.ticks()}
    assert list(ticks) == ["0.15", "0.20", "0.25", "0.30", "0.35"]
    assert ticks["0.20"] == pytest.approx(70.0, abs=0.06)


def test_ticks_of_large_numbers_are_in_thousands_and_millions():
    axis = Axis(140_000.0, 190_000.0, 0.0, 100.0)
    assert [text for _, text in axis.ticks()] == ["140", "150", "160", "170", "180", "190"]
    assert axis.unit == " / 10³"
    assert Axis(1.0e6, 3.0e6, 0.0, 1.0).unit == " / 10⁶"
    assert Axis(0.0, 2e-5, 0.0, 1.0).unit == " / 10⁻⁶"
    assert Axis(0.0, 2000.0, 0.0, 1.0).unit == ""


def test_an_axis_around_values_has_room_on_both_sides():
    axis = Axis.around([2.0, 4.0, math.nan, math.inf], 0.0, 100.0)
    assert axis.low < 2.0 and axis.high > 4.0 and not axis.is_log
    assert axis.high - axis.low < 2.5


def test_extremes_count_up_to_half_the_range_of_the_values():
    near, far = (Axis.around([2.0, 4.0], 0.0, 100.0, [1.5, high]) for high in (4.5, 1000.0))
    assert near.low < 1.5 and 4.5 < near.high < 5.0
    assert 5.0 < far.high < 5.5


def test_one_value_and_none():
    for values in ([0.0], [5.0], [-3.0], []):
        axis = Axis.around(values, 0.0, 100.0)
        assert axis.at(values[0] if values else 0.0) == 50.0
        assert axis.ticks()


def test_wide_ranges_are_logarithmic():
    axis = Axis.around([1.0, 100.0], 0.0, 100.0)
    assert axis.is_log
    assert axis.at(10.0) == pytest.approx(50.0)
    assert {"1", "10", "100"} <= {text for _, text in axis.ticks()}
    assert axis.at(0.0) == axis.at(-1.0) == 0.0
    assert not Axis.around([0.0, 100.0], 0.0, 100.0).is_log
