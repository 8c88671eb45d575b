import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.pareto.front import front, is_minimal, nearest, signs
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Objective
from tests.orchestrator.pareto.made_up import ERROR_COST, study_of

numbers = st.sampled_from([0.0, 1.0, 2.0, 2.5, 3.0, -1.0, math.inf, -math.inf, math.nan])
directions = st.lists(st.sampled_from(["minimize", "maximize"]), min_size=2, max_size=3)


@given(st.data(), directions)
def test_minimal_by_the_definition_with_ties_infinities_and_nan(data, directions):
    values = data.draw(st.lists(st.tuples(*[numbers] * len(directions)), max_size=12))
    objectives = [Objective(str(i), direction) for i, direction in enumerate(directions)]

    def is_better(a, b, direction):
        return a < b if direction == "minimize" else a > b

    def dominates(a, b):
        if any(map(math.isnan, (*a, *b))):
            return False
        is_worse = any(is_better(y, x, d) for x, y, d in zip(a, b, directions, strict=True))
        return not is_worse and any(is_better(x, y, d) for x, y, d in zip(a, b, directions, strict=True))

    expected = [not any(map(math.isnan, row)) and not any(dominates(other, row) for other in values) for row in values]
    rows = np.array(values).reshape(len(values), len(directions)) * signs(objectives)
    assert is_minimal(rows).tolist() == expected


def test_front_is_that_of_the_means_with_sample_std_and_n():
    study = study_of(
        {
            "cheap": {1: (0.30, 1.0), 2: (0.32, 1.2)},
            "good": {1: (0.20, 2.0), 2: (0.22, 2.0)},
            "bad": {1: (0.33, 2.0), 2: (0.35, 3.0)},
        }
    )
    points = {point.condition: point for point in front(study, ERROR_COST)}
    assert [name for name, point in points.items() if point.is_front] == ["good", "cheap"]
    assert not points["bad"].is_front
    per = points["cheap"].summaries[0]
    assert (per.mean, per.std, per.n) == pytest.approx((0.31, 0.02 / math.sqrt(2), 2))
    assert points["cheap"].seeds == (1, 2) and points["cheap"].values == ((0.30, 0.32), (1.0, 1.2))


def test_points_come_by_the_first_objective_from_its_best():
    study = study_of({"a": {1: (1.0, 1.0)}, "b": {1: (3.0, 1.0)}, "c": {1: (2.0, 1.0)}})
    assert [point.name for point in front(study, ERROR_COST)] == ["a", "c", "b"]
    upwards = (Objective("per", "maximize"), Objective("macs"))
    assert [point.name for point in front(study, upwards)] == ["b", "c", "a"]


def test_failed_replicates_and_conditions_without_values_are_not_points():
    failed = Replicate("x", "failed", 1, "failed", {"per@e": 0.0, "macs@e": 0.0})
    broken = Replicate("y", "broken", 1, "complete", {"per@e": math.nan, "macs@e": 0.0})
    study = Study("s", (*study_of({"a": {1: (1.0, 1.0)}}).replicates, failed, broken))
    assert [point.name for point in front(study, ERROR_COST)] == ["a"]
    assert front(Study("s", (failed,)), ERROR_COST) == ()


def test_constants_of_unequal_numbers_of_seeds_are_equal():
    """Means of three and of five times 0.1 differ in their last digit."""
    assert np.mean([0.1] * 3) != np.mean([0.1] * 5)
    study = study_of({"a": dict.fromkeys(range(3), (1.0, 0.1)), "b": dict.fromkeys(range(5), (1.0, 0.1))})
    assert [point.is_front for point in front(study, ERROR_COST)] == [True, True]


def test_the_order_of_seeds_does_not_decide_between_equal_means():
    """(.1 + .2 + .3) / 3 is more than (.3 + .2 + .1) / 3 in its last digit."""
    assert (0.1 + 0.2 + 0.3) / 3 > (0.3 + 0.2 + 0.1) / 3
    costs = {"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1)}
    errors = {"a": 0.2, "b": 0.5}
    study = study_of({c: {i: (errors[c], cost) for i, cost in enumerate(own)} for c, own in costs.items()})
    assert {point.name: point.is_front for point in front(study, ERROR_COST)} == {"a": True, "b": False}


def points_of(places):
    return front(study_of({f"c{i}": {1: (y, x)} for i, (x, y) in enumerate(places)}), ERROR_COST)


def test_the_nearest_are_those_of_brute_force():
    places = np.random.default_rng(1).random((200, 2)) * [1e6, 1.0]
    points = points_of(places.tolist())
    means = {
        p.name: (p.summaries[0].mean / np.ptp(places[:, 1]), p.summaries[1].mean / np.ptp(places[:, 0])) for p in points
    }
    on_front = [means[p.name] for p in points if p.is_front]
    distances = {p.name: min(math.dist(means[p.name], f) for f in on_front) for p in points if not p.is_front}
    expected = set(sorted(distances, key=distances.__getitem__)[:30])
    found = nearest(points, 30)
    assert {point.name for point in found} == expected
    assert list(found) == [point for point in points if point.name in expected]
    assert len(nearest(points, 1000)) == len(distances)


def test_nearest_of_points_without_a_range():
    points = points_of([(1.0, 1.0), (1.0, 1.0)])
    assert all(point.is_front for point in points)
    assert nearest(points, 5) == ()


def test_ten_thousand_points_by_one_pass_from_the_cheapest():
    values, best, expected = np.random.default_rng(0).random((10_000, 2)), math.inf, set()
    for i in np.argsort(values[:, 1]):
        if values[i, 0] < best:
            best = values[i, 0]
            expected.add(i)
    assert set(np.flatnonzero(is_minimal(values * signs(ERROR_COST)))) == expected
    assert 1 < len(expected) < 100
