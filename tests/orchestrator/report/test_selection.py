"""Which of many conditions a page shows."""

from orchestrator.report.selection import MAX_POINTS, curve_conditions, selected_points
from orchestrator.statistics.subsample import subsample
from tests.orchestrator.report.made_answers import CONDITIONS, OBJECTIVES, front_of, study_of


def many(count):
    """A front of two, and all others behind it, the last ones farthest."""
    places = {f"c{i}": (0.1 + 0.001 * i, 1e5 + i, 0.5) for i in range(count)} | {"cheap": (0.9, 1e4, 0.5)}
    return front_of(study_of(places, seeds=1, noise=0.0), OBJECTIVES[:2], reference=f"c{count // 2}")


def test_all_of_few():
    assert selected_points(many(MAX_POINTS - 1)) == tuple(range(MAX_POINTS))


def test_of_many_the_front_the_nearest_some_others_and_the_reference():
    front = many(2000)
    shown = selected_points(front)
    names = [front.points[i].name for i in shown]
    assert len(shown) <= MAX_POINTS and list(shown) == sorted(set(shown))
    assert {"c0", "cheap", "c1000"} <= set(names)
    assert {f"c{i}" for i in range(1, 101)} <= set(names)
    assert "c1999" in names


def test_curves_are_of_the_reference_and_the_likeliest():
    front = front_of(study_of(CONDITIONS), OBJECTIVES[:2])
    order = sorted(
        zip(front.points, front.memberships, strict=True), key=lambda pair: (pair[0].is_front, pair[1].on_front)
    )
    best = [point.condition for point, _ in reversed(order) if point.name != "always_big"]
    found = curve_conditions(front, 3)
    assert found[0] == "always_big"
    assert set(found[1:]) <= set(best[:4]) and len(found) == 3
    assert "random" not in found


def test_even_steps_keep_both_ends():
    assert list(subsample(3, 5)) == [0, 1, 2]
    assert list(subsample(101, 5)) == [0, 25, 50, 75, 100]
    assert len(set(subsample(101, 100))) == 100
