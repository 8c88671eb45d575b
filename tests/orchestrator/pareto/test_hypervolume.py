"""The dominated volume by hand, and its interval against the jackknife written out and against simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from orchestrator.pareto.front import front
from orchestrator.pareto.hypervolume import Volume, volume
from orchestrator.statistics.summary import Interval
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, ERROR_COST_LATENCY, study_of
from tests.orchestrator.statistics.scalar_forms import jackknife_interval


def area(rows, reference):
    """Of the union of rectangles from each row up to the reference point, by inclusion and exclusion."""
    rows = [row for row in rows if all(x < r for x, r in zip(row, reference, strict=True))]
    total = 0.0
    for k in range(1, len(rows) + 1):
        for chosen in itertools.combinations(rows, k):
            corner = [max(column) for column in zip(*chosen, strict=True)]
            total -= (-1) ** k * math.prod(r - x for x, r in zip(corner, reference, strict=True))
    return total


def means(conditions, left_out=()):
    return [
        [sum(column) / len(column) for column in zip(*(v for s, v in by.items() if s not in left_out), strict=True)]
        for by in conditions.values()
    ]


def test_a_staircase_by_hand():
    found = volume(
        front(study_of({"a": {1: (1.0, 3.0)}, "b": {1: (2.0, 1.0)}, "c": {1: (4.0, 4.0)}}), ERROR_COST), ERROR_COST
    )
    assert found.reference == pytest.approx((4.04, 4.04))
    assert found.value == pytest.approx((2 - 1) * (4.04 - 3) + (4.04 - 2) * (4.04 - 1))
    assert math.isnan(found.interval.low) and math.isnan(found.interval.high)


def test_maximized_objectives_have_their_reference_below():
    objectives = (Objective("per", "maximize"), Objective("macs"))
    found = volume(front(study_of({"a": {1: (0.5, 1.0)}, "b": {1: (0.8, 2.0)}}), objectives), objectives)
    assert found.reference == pytest.approx((0.495, 2.02))
    assert found.value == pytest.approx((0.5 - 0.495) * (2.02 - 1) + (0.8 - 0.5) * (2.02 - 2))


def test_three_objectives_by_hand():
    study = study_of({"a": {1: (1.0, 2.0, 2.0)}, "b": {1: (2.0, 1.0, 1.0)}})
    found = volume(front(study, ERROR_COST_LATENCY), ERROR_COST_LATENCY)
    assert found.value == pytest.approx(1.02 * 0.02 * 0.02 + 0.02 * 1.02 * 1.02 - 0.02**3)


def test_one_point_has_none():
    assert volume(front(study_of({"a": {1: (1.0, 3.0)}}), ERROR_COST), ERROR_COST) is None


def random_conditions(seeds_of, drawn, num_objectives=2):
    places = [(1.0, 3.0, 2.0), (2.0, 2.0, 3.0), (3.0, 1.0, 1.0), (3.5, 3.5, 3.5)]
    return {
        f"c{i}": {seed: tuple(x + 0.1 * drawn.normal() for x in place[:num_objectives]) for seed in seeds_of(i)}
        for i, place in enumerate(places)
    }


@pytest.mark.parametrize("objectives", [ERROR_COST, ERROR_COST_LATENCY])
def test_the_interval_of_paired_seeds_is_the_jackknife_of_all_points_together(objectives):
    conditions = random_conditions(lambda i: (1, 2, 3, 4, 5), np.random.default_rng(1), len(objectives))
    found = volume(front(study_of(conditions), objectives), objectives)
    whole = area(means(conditions), found.reference)
    left = [area(means(conditions, {seed}), found.reference) for seed in range(1, 6)]
    assert found.value == pytest.approx(whole)
    assert found.interval == pytest.approx(jackknife_interval(whole, left))


def test_unequal_seeds_add_their_variances_and_share_degrees_of_freedom():
    seeds = {0: (1, 2, 3), 1: (4, 5, 6, 7), 2: (1, 2, 3), 3: (9,)}
    conditions = random_conditions(seeds.get, np.random.default_rng(3))
    found = volume(front(study_of(conditions), ERROR_COST), ERROR_COST)
    whole = area(means(conditions), found.reference)
    variances, centre = {}, whole
    for group in ((1, 2, 3), (4, 5, 6, 7)):
        n = len(group)
        pseudo = [n * whole - (n - 1) * area(means(conditions, {seed}), found.reference) for seed in group]
        variances[n] = np.var(pseudo, ddof=1) / n
        centre += np.mean(pseudo) - whole
    total = sum(variances.values())
    freedom = total**2 / sum(variance**2 / (n - 1) for n, variance in variances.items())
    half = stats.t.ppf(0.975, freedom) * math.sqrt(total)
    assert found.interval == pytest.approx((centre - half, centre + half))


def test_a_mean_without_a_seed_that_passes_the_reference_point_takes_nothing_away():
    """The dearest point's costs are 1 and 5, so that without the first its mean passes the reference point."""
    conditions = {"a": {1: (1.0, 1.0), 2: (1.0, 5.0)}, "b": {1: (2.0, 1.0), 2: (2.0, 1.0)}}
    found = volume(front(study_of(conditions), ERROR_COST), ERROR_COST)
    assert found.reference == pytest.approx((2.02, 3.03))
    cheap = 0.02 * 2.03
    whole, without_first, without_second = cheap + 1.0 * 0.03, cheap, 1.02 * 2.03
    assert found.value == pytest.approx(whole)
    expected = jackknife_interval(whole, [without_first, without_second])
    assert expected.low < 0 == found.interval.low  # a volume cannot be below
    assert found.interval.high == pytest.approx(expected.high)


def test_what_cannot_reach_the_front_changes_nothing():
    drawn = np.random.default_rng(8)
    conditions = random_conditions(lambda i: (1, 2, 3), drawn)
    corner = {"corner": dict.fromkeys((1, 2, 3), (20.0, 20.0))}
    far = {f"far{i}": {9 + i: (15 + drawn.random(), 15.0), 99 + i: (15.0, 16.0)} for i in range(5)}
    without = volume(front(study_of(conditions | corner), ERROR_COST), ERROR_COST)
    assert volume(front(study_of(conditions | corner | far), ERROR_COST), ERROR_COST) == without


def test_constants_have_an_interval_of_no_width():
    study = study_of({"a": dict.fromkeys((1, 2, 3), (1.0, 2.0)), "b": dict.fromkeys((1, 2, 3), (2.0, 1.0))})
    found = volume(front(study, ERROR_COST), ERROR_COST)
    assert found.interval == (found.value, found.value)


@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize("n", [3, 10])
def test_the_interval_covers_the_true_volume_of_a_well_separated_front(n, is_paired):
    """The true one up to the same reference point; 95 % within four standard errors of 500 studies."""
    drawn, num_studies, num_covered = np.random.default_rng(n), 500, 0
    places = {"a": (1.0, 4.0), "b": (2.0, 2.0), "c": (4.0, 1.0), "worst": (6.0, 6.0)}
    for _ in range(num_studies):
        values = {name: np.array(place) + 0.1 * drawn.normal(size=(n, 2)) for name, place in places.items()}
        values["worst"][:] = places["worst"]
        conditions = {
            name: dict(enumerate(map(tuple, rows.tolist()), start=1 if is_paired else 1 + 100 * i))
            for i, (name, rows) in enumerate(values.items())
        }
        found = volume(front(study_of(conditions), ERROR_COST), ERROR_COST)
        truth = area([place for name, place in places.items() if name != "worst"], found.reference)
        num_covered += found.interval.low <= truth <= found.interval.high
    margin = 4 * math.sqrt(0.95 * 0.05 / num_studies)
    print(f"n = {n}, {'paired' if is_paired else 'own seeds'}: covered {num_covered / num_studies:.3f}")
    assert abs(num_covered / num_studies - 0.95) < margin + (0 if is_paired else 0.01)


def test_a_volume_at_the_rounded_end_of_its_interval_is_not_outside():
    ends = 0.00228 * (1 + 1e-15), 0.00228 * (1 + 3e-15)
    assert not Volume(0.00228, (1.0,), Interval(*ends)).is_outside()
    assert Volume(0.00228, (1.0,), Interval(0.0023, 0.0024)).is_outside()
