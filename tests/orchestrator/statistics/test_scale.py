"""Statistics at the edges of float64, against exact fractions, and against themselves at an ordinary size."""

import math
import warnings
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest

from orchestrator.statistics import pairwise, scale, shape, spread
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.pairwise import Groups
from orchestrator.statistics.permutation import regrouping_p
from orchestrator.statistics.power import Design, equivalence_required_sample_size, required_sample_size
from orchestrator.statistics.significance import paired_permutation_p, welch_p
from orchestrator.statistics.student import combine, is_constant, of_jackknife, of_mean
from orchestrator.statistics.summary import exact_mean, mean_interval, summarise
from orchestrator.statistics.trend import page_l, page_p

pytestmark = pytest.mark.filterwarnings("error")
LARGEST, LEAST = 1.7976931348623157e308, 5e-324
ULP = 2.0**-52
DIGITS = Context(prec=60, Emin=-2000, Emax=2000)

POWERS = (-1000, -520, -200, 200, 520, 1000, 1019)
A, B = [1.0, 2.25, 4.5, 4.75, 3.5], [3.0, 5.5, 6.25, 8.0, 4.0]


def scaled(values, power):
    return [math.ldexp(value, power) for value in values]


def exactly(values):
    """Mean and sample standard deviation, by fractions and 60 digits."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / (len(exact) - 1)
    quotient = DIGITS.divide(Decimal(variance.numerator), Decimal(variance.denominator))
    return mean, Fraction(DIGITS.sqrt(quotient))


@pytest.mark.parametrize("exponent", [-323, -315, -308, -300, -200, -155, -100, 0, 100, 154, 155, 200, 300, 306, 307])
def test_mean_and_standard_deviation_are_those_of_exact_fractions(exponent):
    rng = np.random.default_rng(exponent + 400)
    for _ in range(20):
        values = [float(f"{x:.17g}e{exponent}") for x in rng.uniform(-9, 9, rng.integers(2, 12))]
        found, (mean, std) = summarise(values), exactly(values)
        largest = Fraction(max(map(abs, values)))
        assert abs(Fraction(found.mean) - mean) <= Fraction(ULP) * abs(mean) + Fraction(LEAST)
        assert found.std == 0 or abs(Fraction(found.std) - std) <= 4 * Fraction(ULP) * largest + Fraction(LEAST)
        error = float(of_mean(np.array(values)).standard_error)
        assert error == pytest.approx(found.std / math.sqrt(len(values)), rel=8 * ULP, abs=LEAST)


def test_the_case_of_a_square_and_of_a_sum_that_are_too_large():
    assert summarise([1.1e155, 1.2e155, 1.3e155]).std == pytest.approx(1e154, rel=1e-14)
    found = summarise([1.1e308, 1.2e308, 1.3e308])
    assert (found.mean, found.std) == pytest.approx((1.2e308, 1e307), rel=1e-14)
    assert mean_interval([1.1e155, 1.2e155, 1.3e155])[0] == pytest.approx(1e155 * mean_interval([1.1, 1.2, 1.3])[0])


def test_what_is_beyond_the_largest_number_is_infinite_and_nothing_else_is():
    found = summarise([LARGEST, -LARGEST])
    assert (found.mean, found.std) == (0.0, math.inf)
    assert mean_interval([LARGEST, -LARGEST]) == (-math.inf, math.inf)
    assert summarise([LARGEST] * 3) == summarise([LARGEST] * 3).__class__(LARGEST, 0.0, 3)
    assert summarise([LEAST] * 3).mean == LEAST and summarise([LEAST, 3 * LEAST]).std > 0
    assert exact_mean([math.inf, 1.0]) == math.inf and math.isnan(exact_mean([math.inf, -math.inf]))


SCALE_FREE = {
    "welch_p": welch_p,
    "paired_permutation_p": paired_permutation_p,
    "regrouping_p": lambda a, b: regrouping_p(np.array([a]), np.array([b])).tolist(),
    "hedges_g": lambda a, b: pairwise.hedges_g_rows(np.array([a]), np.array([b])).tolist(),
    "improvement": lambda a, b: pairwise.improvement_rows(np.array([a]), np.array([b]), "minimize").tolist(),
    "epsilon": lambda a, b: pairwise.almost_stochastic_order_rows(np.array([a]), np.array([b]), "minimize").tolist(),
    "brown_forsythe_p": spread.brown_forsythe_p,
    "pitman_morgan_p": spread.pitman_morgan_p,
    "spread_size": lambda a, b: spread.spread_required_sample_size(summarise(a).std, summarise(b).std * 2, 0.05),
    "paired_spread_size": lambda a, b: spread.paired_spread_required_sample_size(
        summarise(a).std, summarise(b).std * 2, 0.3, 0.05
    ),
    "page_l": lambda a, b: page_l(np.array([a, b])),
    "page_p": lambda a, b: page_p(np.array([a, b])),
    "shape": lambda a, b: (shape.warnings([a, b]), shape.may_hide_noise([a, b])),
    "unpaired": lambda a, b: (Difference.unpaired(a, b).p(), Difference.unpaired(a, b).freedom),
    "paired": lambda a, b: Difference.paired(a, b).p(),
    "published": lambda a, b: Difference.from_published(a, b[0], summarise(b).std, 5).p(),
    "size": lambda a, b: required_sample_size(a[0] - b[0], Design((summarise(a).std, summarise(b).std))),
    "published_size": lambda a, b: required_sample_size(
        a[0] - b[0], Design.against_published(summarise(a).std, summarise(b).std, 5)
    ),
    "equivalence_size": lambda a, b: equivalence_required_sample_size(
        (a[0] - b[0]) / 8, Design((summarise(a).std, summarise(b).std)), b[1]
    ),
    "groups": lambda a, b: [
        column(Groups(np.array([a]), np.array([b]), is_paired)).tolist()
        for is_paired in (True, False)
        for column in (
            lambda groups: groups.permutation_p,
            lambda groups: groups.welch_p,
            lambda groups: groups.is_constant(),
            lambda groups: groups.required_sample_size("paired_permutation", 0.05),
        )
    ],
    "constant": lambda a, b: is_constant(np.array([a, b, [a[0] / 3 * 3, a[0], a[0], a[0], a[0]]])).tolist(),
}


@pytest.mark.parametrize("name", SCALE_FREE)
def test_what_has_no_unit_has_equal_digits_at_every_size(name):
    """By powers of two, which change no digit; all values of the pair are whole numbers of eighths."""
    statistic = SCALE_FREE[name]
    usual = statistic(A, B)
    for power in POWERS:
        assert statistic(scaled(A, power), scaled(B, power)) == usual, power


@pytest.mark.parametrize("power", [-1000, -520, 520, 1000])
def test_what_has_a_unit_is_so_many_times_as_large(power):
    def seen(a, b):
        jackknife = of_jackknife(np.array(a[0]), np.array(b))
        found = (
            of_mean(np.array(a)),
            combine(*(np.array(a[0]), of_mean(np.array(a)), of_mean(np.array(b)))),
            jackknife,
        )
        return [x for one in found for x in (float(one.value), float(one.standard_error))] + [*mean_interval(a)]

    assert seen(scaled(A, power), scaled(B, power)) == scaled(seen(A, B), power)


def test_a_small_group_beside_a_large_one_keeps_its_own_spread():
    small, large = [1.0, 1.1, 1.2], [1e308] * 3
    groups = Groups(np.array([small]), np.array([large]), False)
    assert not groups.is_constant().any()
    assert of_mean(np.array([small, large])).standard_error[0] == pytest.approx(0.1 / math.sqrt(3))


def test_a_line_between_large_places_is_straight():
    assert scale.between(0.5e308, [-1e308, 1e308], [-1.6e308, 1.6e308], math.nan, math.nan) == pytest.approx(0.8e308)
    assert scale.between(2e-310, [1e-310, 3e-310], [1.0, 2.0], math.nan, None) == pytest.approx(1.5)
    assert math.isnan(scale.between(2.0, [0.0, 1.0], [1.0, 2.0], math.nan, math.nan))


def test_ordinary_numbers_are_left_as_they_are():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scale.headroom(np.array([[1.0, 1e298], [LARGEST, 0.0], [0.0, 0.0]])).tolist() == [0, 34, 0]
    assert scale.exponents(np.array([0.0, 1.0, 0.5, LEAST, math.nan, math.inf])).tolist() == [0, 1, 0, -1073, 0, 0]
