"""Which evaluations are compared, in made-up names and in every shipped sweep."""

import pytest

from orchestrator.results.comparison import reference_points
from orchestrator.results.points import Point, counterpart
from search_spaces.find import find_sweep, sweep_functions


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
