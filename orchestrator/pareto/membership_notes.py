"""What a reader of a front must know of its seeds."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from orchestrator.results.points import Point
from orchestrator.results.study import Study
from orchestrator.statistics.intervals import Interval
from search_spaces.sweep import Objective

MAX_NAMED: Final = 3
FEW_SEEDS: Final = 3
CLOSE: Final = (
    "Points within noise of each other at the front: the best of them is not as good as it looks, and the interval of "
    "the hypervolume covers less than 95 %: in simulation 89 to 92 % where two are equal at each place of the front, "
    "71 to 80 % where five are."
)


def notes(
    study: Study, points: Sequence[Point], objectives: Sequence[Objective], reference: str | None
) -> tuple[str, ...]:
    """Sentences on missing values, one seed, few seeds, no spread, unequal seeds and a reference that is not there."""
    found = []
    if lacking := _lacking(study, points):
        more = f" and {len(lacking) - MAX_NAMED:,} more" if len(lacking) > MAX_NAMED else ""
        names = ", ".join(lacking[:MAX_NAMED]) + more
        found.append(f"Complete replicates without a finite value of every objective are left out: {names}.")
    if single := [point for point in points if len(point.seeds) == 1]:
        found.append(
            f"One seed with values only: {_listed(single, points)}. Their noise is not known, and counts as none."
        )
    if few := [point for point in points if 1 < len(point.seeds) <= FEW_SEEDS]:
        found.append(
            f"Two or three seeds: {_listed(few, points)}. They can be drawn in 3 or 10 ways, so shares are coarse."
        )
    for i, objective in enumerate(objectives):
        if constant := [point for point in points if point.summaries[i].std == 0]:
            found.append(
                f"{objective.metric} does not vary over seeds: {_listed(constant, points)}. It counts as exact."
            )
    num_groups = len({point.seeds for point in points})
    if num_groups > 1:
        found.append(
            f"Seeds differ: {num_groups} sets of seeds, each drawn on its own; only within one are points paired."
        )
    if reference and not any(point.condition == reference for point in points):
        found.append(
            f"The reference {reference} is not shown: none of its replicates has these metrics, or --where hides it."
        )
    return tuple(found)


def notes_on_infinite(
    points: Sequence[Point], intervals: Sequence[Sequence[Interval]], sizes: Sequence[float]
) -> tuple[str, ...]:
    """A sentence where a spread, an interval's end or one of `sizes`, of the hypervolume, is larger than any number."""
    spreads = ([summary.std for summary in point.summaries] for point in points)
    ends = ([end for interval in own for end in interval] for own in intervals)
    infinite = [p for p, stds, own in zip(points, spreads, ends, strict=True) if any(map(math.isinf, (*stds, *own)))]
    listed = [_listed(infinite, points)] if infinite else []
    listed += ["the hypervolume"] if any(map(math.isinf, sizes)) else []
    return (f"Beyond 1.8e308, the largest number, and so infinite: {' and '.join(listed)}.",) if listed else ()


def _lacking(study: Study, points: Sequence[Point]) -> list[str]:
    """Points with fewer seeds than their condition has complete replicates: `name (4 of 5)`."""
    complete = Counter(replicate.condition for replicate in study.replicates if replicate.state == "complete")
    pairs = ((point.name, complete[point.condition], len(point.seeds)) for point in points)
    return [f"{name} ({total - used} of {total})" for name, total, used in pairs if used < total]


def _listed(chosen: Sequence[Point], points: Sequence[Point]) -> str:
    if len(chosen) == len(points):
        return "all points"
    names = ", ".join(point.name for point in chosen[:MAX_NAMED])
    more = f" and {len(chosen) - MAX_NAMED:,} more" if len(chosen) > MAX_NAMED else ""
    return f"{names}{more}"
