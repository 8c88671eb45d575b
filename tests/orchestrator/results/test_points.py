"""Which evaluations are compared, in made-up names and in every shipped sweep."""

import pytest

from orchestrator.results.comparison import reference_points
from orchestrator.results.points import Point, counterpart, points_of
from orchestrator.results.study import Replicate, Study
from search_spaces.find import find_sweep, sweep_functions
from search_spaces.sweep import Objective


@pytest.mark.parametrize(
    ("evaluation", "expected"),
    [
        ("test", "test"),
        ("test_median", "test"),
        ("harder_median", "harder"),
        ("harder_sure_0_5", "harder_sure"),
        ("testing", "best"),  # a name that only begins alike
        ("median", "best"),
        ("", "best"),
    ],
)
def test_an_evaluation_is_compared_with_the_longest_one_that_its_name_goes_on_from(evaluation, expected):
    assert counterpart(evaluation, ("test", "harder", "harder_sure", "best")) == expected
    assert counterpart(evaluation, ("best", "harder_sure", "harder", "test")) == expected


@pytest.mark.parametrize("smoke", [False, True])
def test_what_shipped_sweeps_compare_with_their_references_is_tested_on_the_same_data(smoke):
    num_pairs = 0
    for name in sweep_functions():
        sweep = find_sweep(name, smoke)
        if not sweep.reference:
            continue
        data = {
            (condition.name, one.name): getattr(one, "data", None)
            for condition in sweep.conditions
            for one in getattr(sweep.config(condition, 1), "evaluations", ())
        }
        points = [Point(f"{condition}@{evaluation}", condition, evaluation, ()) for condition, evaluation in data]
        for point in points:
            rival = reference_points(points, sweep.reference).get(point.name)
            if rival:
                assert data[point.condition, point.evaluation] == data[rival.condition, rival.evaluation], point.name
                num_pairs += data[point.condition, point.evaluation] is not None
    assert num_pairs > 10


def found(rows, metrics=("error", "cost")):
    """Points of replicates `(condition, seed, metrics)`: name, seeds and the values of each objective."""
    replicates = tuple(Replicate("", condition, seed, "complete", metrics=values) for condition, seed, values in rows)
    points = points_of(Study("s", replicates), [Objective(metric) for metric in metrics])
    return [(point.name, point.seeds, point.values) for point in points]


def test_a_seed_that_was_not_tested_does_not_stand_in_the_test_with_its_training_error():
    tested = [("a", seed, {"error": 0.5, "cost": 10.0, "error@test": 0.1}) for seed in (1, 2)]
    untested = ("a", 3, {"error": 0.5, "cost": 10.0})
    assert found([*tested, untested]) == [("a", (1, 2), ((0.1, 0.1), (10.0, 10.0)))]


def test_a_condition_that_was_not_tested_so_has_no_point_there():
    a = ("a", 1, {"error": 0.5, "cost": 10.0, "error@test": 0.1, "error@test_median": 0.2})
    b = ("b", 1, {"error": 0.3, "cost": 10.0, "error@test": 0.4})
    assert [name for name, _, _ in found([a, b])] == ["a@test", "a@test_median", "b@test"]


def test_an_evaluation_that_lacks_an_objective_has_no_point_by_the_number_of_training():
    a = ("a", 1, {"error": 0.001, "cost": 10.0, "error@clean": 0.3, "cost@clean": 9.0, "cost@speed": 9.0})
    assert found([a]) == [("a@clean", (1,), ((0.3,), (9.0,)))]
    assert found([("a", 1, {"error": 0.001, "cost": 10.0, "error@clean": 0.3, "cost@speed": 9.0})]) == []


def test_metrics_that_are_no_objectives_make_no_points_of_their_own():
    rows = [("a", 1, {"error": 0.5, "cost": 10.0, "hits@1": 0.3, "hits@10": 0.6})]
    assert found(rows) == [("a", (1,), ((0.5,), (10.0,)))]
    assert found(rows, ("hits@1",)) == [("a", (1,), ((0.3,),))]
