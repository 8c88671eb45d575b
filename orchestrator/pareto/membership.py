"""How sure the front is, given so few seeds: a bootstrap over seeds."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.pareto.front import Point
from orchestrator.statistics.intervals import Interval

Standing = Literal["front", "front within noise", "near within noise", "dominated"]


@dataclass(frozen=True)
class Membership:
    """What the draws say of one point.

    Attributes:
        on_front: share of the draws in which no other point dominates it.
        dominates_reference: share of the draws in which it dominates the reference; NaN for that and without one.
        standing: on the front of the means in at least 95 % of the draws, or in fewer; off it but on the front in more
            than 5 % of them, or dominated.
        intervals: of each objective's mean, 95 %.
    """

    on_front: float
    dominates_reference: float
    standing: Standing
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Volume:
    """Hypervolume of the front of the means.

    Attributes:
        reference: the point up to which it is counted, a value for each objective.
        interval: 95 %; none where no condition has two seeds.
    """

    value: float
    reference: tuple[float, ...]
    interval: Interval


@dataclass(frozen=True)
class UncertainFront:
    """A front with its uncertainty.

    Attributes:
        memberships: one for each of the points, in their order.
        num_draws: how many resamples; with `is_exact` every one there is.
        is_paired: whether all points have the same seeds, so that a draw takes the same seeds of all.
        reference: name of the reference's point; empty without one.
        notes: what the reader must know: one seed, no spread, unequal seeds.
    """

    points: tuple[Point, ...]
    memberships: tuple[Membership, ...]
    volume: Volume | None
    num_draws: int
    is_exact: bool
    is_paired: bool
    reference: str = ""
    notes: tuple[str, ...] = ()
