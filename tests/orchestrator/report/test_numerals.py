"""Numbers as a paper prints them."""

import math

from orchestrator.report.numerals import (
    MINUS,
    between,
    decimals,
    estimate,
    fixed,
    p_value,
    probability,
    signed,
    with_interval,
    written_decimals,
)
from orchestrator.statistics.summary import NONE, Interval, Summary


def test_decimals_follow_the_median_standard_deviation():
    assert decimals([Summary(20.003, 0.15, 5), Summary(19.0, 0.2, 5), Summary(18.0, 0.0001, 5)]) == 2
    assert decimals([Summary(169_611.0, 530.0, 5), Summary(145_804.0, 0.0, 5)]) == -1
    assert decimals([Summary(1234.567, 40.0, 5)]) == 0
    assert decimals([Summary(0.0953, 0.0160, 2)]) == 3


def test_of_large_numbers_digits_before_the_point_are_rounded_but_the_smallest_keeps_three():
    assert decimals([Summary(9_400_000.0, 610_000.0, 5), Summary(8_800_000.0, 530_000.0, 5)]) == -4
    assert decimals([Summary(9_400_000.0, 610_000.0, 5), Summary(1_234.0, 530_000.0, 5)]) == -1
    assert decimals([Summary(0.0, 610_000.0, 5)]) == 0
    assert (fixed(8_805_150.0, -4), fixed(-8_805_150.0, -6)) == ("8,810,000", f"{MINUS}9,000,000")
    assert signed(1_234.0, -2) == "+1,200" and signed(4.0, -2) == "0"


def test_numbers_at_the_edges_of_float64_have_digits_too():
    largest = 1.7976931348623157e308
    assert decimals([Summary(1.0, largest, 2), Summary(1.0, largest, 2)]) == 0
    assert decimals([Summary(largest, 1e307, 3), Summary(1e308, math.inf, 2)]) == -306
    assert (fixed(largest, -306), fixed(-largest, -306), fixed(5e-324, 3)) == (
        "1.80e+308",
        f"{MINUS}1.80e+308",
        f"4.94e{MINUS}324",
    )
    assert between(Interval(-math.inf, math.inf), 2) == f"{MINUS}∞ to ∞"


def test_an_interval_supports_two_digits_of_a_quarter_of_its_length():
    assert with_interval(5060.0, Interval(4900.0, 5220.0)) == Summary(5060.0, 80.0, 2)
    assert decimals([with_interval(2.5, NONE)]) == 3


def test_decimals_where_nothing_varies():
    assert decimals([Summary(145_804.0, 0.0, 5), Summary(7.0, math.nan, 1)]) == 0
    assert decimals([Summary(0.12345678, math.nan, 1), Summary(0.1, math.nan, 1)]) == 4
    assert decimals([Summary(12.5, 0.0, 3)]) == 2
    assert decimals([]) == 0
    assert decimals([Summary(math.inf, math.nan, 2)]) == 0


def test_fixed():
    assert fixed(1234567.891, 1) == "1,234,567.9"
    assert fixed(-0.5, 2) == f"{MINUS}0.50"
    assert fixed(-0.001, 2) == "0.00"
    assert fixed(None, 2) == fixed(math.nan, 2) == ""
    assert fixed(-math.inf, 2) == f"{MINUS}∞"


def test_signed():
    assert signed(0.25, 1) == "+0.2"
    assert signed(-0.25, 2) == f"{MINUS}0.25"
    assert signed(0.001, 1) == "0.0"
    assert signed(math.nan, 1) == ""


def test_estimate_and_interval():
    assert estimate(Summary(20.003, 0.15, 5), 2) == "20.00 ± 0.15"
    assert estimate(Summary(20.003, math.nan, 1), 2) == "20.00"
    assert estimate(None, 2) == ""
    assert between(Interval(-0.1, 0.25), 2) == f"{MINUS}0.10 to 0.25"
    assert between(NONE, 2) == ""


def test_no_rounding_brings_a_share_or_a_p_value_to_the_other_side_of_what_decides():
    assert [p_value(p) for p in (0.0496, 0.05, 0.0504, 0.05004)] == ["0.050", "0.050", "0.0504", "0.05004"]
    assert [probability(x) for x in (0.0476, 0.0524, 0.9476, 0.9512)] == ["0.05", "0.052", "0.948", "0.95"]


def test_shares_and_p_values_are_never_rounded_to_certainty():
    assert [probability(x) for x in (0.0, 0.001, 0.5, 0.999, 1.0, math.nan)] == [
        "0.00",
        "<0.01",
        "0.50",
        ">0.99",
        "1.00",
        "",
    ]
    assert [p_value(x) for x in (0.0004, 0.0625, 1.0, math.nan)] == ["<0.001", "0.062", "1.000", ""]


def test_written_decimals():
    assert [written_decimals(x) for x in (18.1, 0.15, 168_000.0, 2.0)] == [1, 2, 0, 0]


def test_huge_numbers_and_those_below_their_columns_digits_have_an_exponent():
    assert fixed(1.0010133046652940e25, 3) == "1.00e+25" and fixed(-2.5e12, 0) == f"{MINUS}2.50e+12"
    assert fixed(1.234e-6, 3) == f"1.23e{MINUS}06" and fixed(0.0, 3) == "0.000" and fixed(0.0004, 3) == "0.000"
