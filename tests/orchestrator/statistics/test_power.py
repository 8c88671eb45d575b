"""Power against SciPy's noncentral t and against simulated tests."""

import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.statistics import student
from orchestrator.statistics.equivalence import equivalence_p
from orchestrator.statistics.power import (
    Design,
    detection,
    equivalence_power,
    equivalence_required_sample_size,
    noncentrality,
    required_sample_size,
    required_sample_size_rows,
)
from tests.orchestrator.statistics.scalar_forms import minimum_detectable_difference


def detected(centre, freedom, level):
    return stats.nct.sf(stats.t.isf(level / 2, freedom), freedom, centre)


@pytest.mark.parametrize("freedom", [1, 2, 4, 7.5, 30])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_smallest_difference_is_shown_with_that_power(freedom, level):
    found = minimum_detectable_difference(1.0, freedom, level, power=0.9)
    assert detected(found, freedom, level) == pytest.approx(0.9, abs=1e-5)
    assert float(detection(np.asarray(found), np.asarray(freedom), level)) == pytest.approx(0.9, abs=1e-5)
    assert minimum_detectable_difference(0.5, freedom, level, 0.9) == pytest.approx(found / 2, rel=1e-9)


def test_half_a_standard_deviation_takes_the_numbers_of_textbooks():
    """34 pairs, or 64 in each of two groups (Cohen 1988)."""
    assert required_sample_size(0.5, Design((1.0,))) == 34
    assert required_sample_size(0.5, Design((1.0, 1.0))) == 64


def test_far_out_quantiles_go_over_smoothly():
    """Where the noncentral distribution is replaced by that of its denominator."""
    freedom = np.array([2.0, 2.0])
    levels = [2 * stats.t.sf(limit, 2) for limit in (99.99, 100.01)]
    near, far = (float(noncentrality(freedom[:1], level)[0]) for level in levels)
    assert near == pytest.approx(far, rel=5e-4) and near < far * 1.001
    assert float(detection(np.array([far]), freedom[:1], levels[1])[0]) == pytest.approx(0.8, abs=1e-3)
    assert math.isfinite(float(noncentrality(np.array([1.0]), 1e-9)[0]))


def test_needed_seeds_are_the_least_that_are_enough():
    for difference, std in ((1.0, 1.0), (0.3, 1.0), (2.0, 0.5)):
        n = required_sample_size(difference, Design((std,)), level=0.01)
        powers = [detected(difference / std * math.sqrt(k), k - 1, 0.01) for k in (n - 1, n)] if n > 2 else [0, 1]
        assert powers[0] < 0.8 <= powers[1]


def test_needed_seeds_of_unequal_groups_are_simulated_enough():
    design, rng = Design((1.0, 3.0)), np.random.default_rng(0)
    n = required_sample_size(4.0, design)
    shares = []
    for k in (n - 1, n):
        a, b = rng.normal(4, 1, (20000, k)), rng.normal(0, 3, (20000, k))
        shares.append((student.two_sided_p(student.of_unpaired_difference(a, b)) <= 0.05).mean())
    assert shares[0] < 0.81 and shares[1] > 0.79 and shares[0] < shares[1]


def test_no_number_is_enough_for_nothing_and_few_are_for_certainty():
    assert required_sample_size(0.0, Design((1.0,))) is None
    assert required_sample_size(0.05, Design((1.0,))) is None
    assert 990 < required_sample_size(0.0889, Design((1.0,))) < 1000
    assert required_sample_size(0.1, Design((0.0,))) == 2 and required_sample_size(0.0, Design((0.0, 0.0))) is None
    assert required_sample_size(1e9, Design((1.0,))) == 2


def test_a_family_needs_more():
    design = Design((1.0,))
    of_one, of_ten = required_sample_size(1.0, design), required_sample_size(1.0, design, 0.005)
    enough = [n for n in range(2, 50) if detected(math.sqrt(n), n - 1, 0.005) >= 0.8]
    assert of_one < of_ten == min(enough)


def test_rows_are_what_single_ones_are_and_may_have_a_level_for_each_number():
    differences, stds = np.array([0.4, 1.0, 0.0]), np.array([1.0, 2.0, 1.0])
    found = required_sample_size_rows(differences, Design((stds,)), 0.05)
    single = [required_sample_size(d, Design((s,))) for d, s in zip(differences, stds, strict=True)]
    assert [None if math.isnan(n) else n for n in found] == single
    levels = np.where(np.arange(1000) < 100, 0.0, 0.05)
    assert required_sample_size_rows(differences[:1], Design((1.0,)), levels)[0] == 100


def test_a_published_spread_limits_what_more_seeds_show():
    design = Design.against_published(1.0, 1.0, 5)
    error, freedom = design.at(1_000_000)
    assert (error, freedom) == pytest.approx((math.sqrt(1 / 5), 4), rel=1e-4)
    assert design.at(5) == pytest.approx((math.sqrt(2 / 5), 8))
    assert required_sample_size(1.0, design) is None and required_sample_size(3.0, design) is not None


def test_a_number_that_is_enough_is_found_where_more_would_not_be():
    """Against five published values degrees of freedom rise to 8.6, and fall to 4 again."""
    design = Design.against_published(1.0, 1.0, 5)
    powers = [detected(3.4 / error, freedom, 0.001) for error, freedom in map(design.at, range(2, 1000))]
    assert powers[-1] < 0.5 and max(powers) > 0.8
    assert required_sample_size(3.4, design, 0.001) == 2 + [power >= 0.8 for power in powers].index(True)


def test_a_published_mean_without_spread_counts_as_exact():
    assert Design.against_published(1.0) == Design((1.0,)) == Design.against_published(1.0, 0.5, None)


@pytest.mark.parametrize(("difference", "freedom"), [(0.0, 4), (0.6, 9), (-0.6, 9), (1.0, 4)])
def test_equivalence_power_is_what_simulation_finds(difference, freedom):
    rng, n = np.random.default_rng(1), int(freedom) + 1
    means, stds = rng.normal(difference, 1 / math.sqrt(n), 20000), np.sqrt(rng.chisquare(freedom, 20000) / freedom)
    rows = zip(means, stds / math.sqrt(n), strict=True)
    share = np.mean([equivalence_p(mean, error, freedom, 1.0) <= 0.05 for mean, error in rows])
    power = equivalence_power(difference, 1 / math.sqrt(n), freedom, 1.0)
    assert power == pytest.approx(share, abs=4 * math.sqrt(0.25 / 20000))


def test_seeds_for_equivalence():
    """For a margin of sigma and no difference 11: simulated, their power is 0.849, that of 10 is 0.795."""
    assert equivalence_required_sample_size(0.0, Design((1.0,)), 1.0) == 11
    assert equivalence_required_sample_size(1.0, Design((1.0,)), 1.0) is None
    assert equivalence_required_sample_size(0.0, Design((1.0,)), 0.05) is None
    assert equivalence_required_sample_size(0.1, Design((0.0,)), 0.2) == 2
    assert equivalence_power(0.1, 0.0, 3, 0.2) == 1.0 and equivalence_power(0.3, 0.0, 3, 0.2) == 0.0
