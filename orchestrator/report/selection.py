"""Which of many conditions a page, a figure or a table has."""

from typing import Final

from orchestrator.pareto.front import nearest
from orchestrator.pareto.membership import UncertainFront
from orchestrator.statistics.subsample import subsample

MAX_POINTS: Final = 300


def selected_points(
    front: UncertainFront, most: int = MAX_POINTS, num_front: int = 150, num_near: int = 100, num_others: int = 49
) -> tuple[int, ...]:
    """Numbers of the points that are drawn or listed, rising; all of up to `most`.

    Of more: the front (at even steps, where it is long), the likeliest of what is within noise of it, then what lies
    nearest to it, some of the rest, the reference.
    """
    points = front.points
    if len(points) <= most:
        return tuple(range(len(points)))
    places = {point.name: i for i, point in enumerate(points)}
    on_front = [i for i, point in enumerate(points) if point.is_front]
    near = [i for i, membership in enumerate(front.memberships) if membership.standing == "near within noise"]
    likely = sorted(near, key=lambda i: -front.memberships[i].on_front)
    close = list(dict.fromkeys([*likely, *(places[point.name] for point in nearest(points, num_near))]))[:num_near]
    found = {on_front[i] for i in subsample(len(on_front), num_front)} | set(close)
    rest = [i for i, point in enumerate(points) if not point.is_front and i not in found]
    found |= {rest[i] for i in subsample(len(rest), num_others)}
    return tuple(sorted(found | {places[name] for name in (front.reference,) if name in places}))


def curve_conditions(front: UncertainFront, count: int = 12) -> tuple[str, ...]:
    """Conditions whose learning curves are drawn: the reference's, then those likeliest on the front."""
    ranks = [(p.is_front, sure.on_front) for p, sure in zip(front.points, front.memberships, strict=True)]
    order = sorted(range(len(ranks)), key=lambda i: ranks[i], reverse=True)
    reference = [point.condition for point in front.points if point.name == front.reference]
    names = dict.fromkeys([*reference, *(front.points[i].condition for i in order)])
    return tuple(names)[:count]
