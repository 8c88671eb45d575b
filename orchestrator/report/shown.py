"""Which of many conditions a page shows."""

from typing import Final

from orchestrator.pareto.front import nearest, spread_out
from orchestrator.pareto.membership import UncertainFront

MAX_POINTS: Final = 300
NUM_FRONT: Final = 150
NUM_NEAREST: Final = 100
NUM_OTHERS: Final = 49


def shown_points(front: UncertainFront) -> tuple[int, ...]:
    """Numbers of the points that are shown, rising; all of up to 300.

    Of more: the front (at even steps, where it is long), what is within noise of it, what lies nearest to it, some of
    the rest, the reference.
    """
    points = front.points
    if len(points) <= MAX_POINTS:
        return tuple(range(len(points)))
    near = [i for i, membership in enumerate(front.memberships) if membership.standing == "near within noise"]
    likely = sorted(near, key=lambda i: -front.memberships[i].on_front)[:NUM_NEAREST]
    close = [*(points[i] for i in likely), *nearest(points, NUM_NEAREST - len(likely))]
    names = {point.name for point in (*spread_out([point for point in points if point.is_front], NUM_FRONT), *close)}
    rest = [point for point in points if not point.is_front and point.name not in names]
    names |= {point.name for point in spread_out(rest, NUM_OTHERS)} | {front.reference}
    return tuple(i for i, point in enumerate(points) if point.name in names)


def curve_conditions(front: UncertainFront, count: int = 12) -> tuple[str, ...]:
    """Conditions whose learning curves are shown: the reference's, then those likeliest on the front."""
    order = sorted(range(len(front.points)), key=lambda i: _rank(front, i), reverse=True)
    reference = [point.condition for point in front.points if point.name == front.reference]
    names = dict.fromkeys([*reference, *(front.points[i].condition for i in order)])
    return tuple(names)[:count]


def _rank(front: UncertainFront, i: int) -> tuple[bool, float]:
    return front.points[i].is_front, front.memberships[i].on_front
