"""Volume that a front dominates, and how sure it is."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import moocore
import numpy as np

from orchestrator.pareto.front import is_minimal, places, signs
from orchestrator.pareto.seed_values import Floats, SeedValues
from orchestrator.results.points import Point
from orchestrator.statistics import scale, student
from orchestrator.statistics.summary import NONE, Interval, of_estimates
from search_spaces.sweep import Objective

OUTSIDE: Final = "It lies outside its interval, which is corrected for the bias of a front of near-equal points."


@dataclass(frozen=True)
class Volume:
    """Hypervolume of the front of the means.

    Attributes:
        reference: the point up to which it is counted, a value for each objective.
        interval: 95 %, cut off at 0; none where no condition that could be on the front has two seeds.
    """

    value: float
    reference: tuple[float, ...]
    interval: Interval

    def is_outside(self) -> bool:
        """Whether the interval does not hold the value; see `OUTSIDE`."""
        slack = student.RESOLUTION * abs(self.value)
        return bool(self.value < self.interval.low - slack or self.value > self.interval.high + slack)


def volume(points: Sequence[Point], objectives: Sequence[Objective]) -> Volume | None:
    """Volume that the front's means dominate, up to the worst mean of each objective, 1 % further.

    The interval is by the jackknife over seeds: points with the same seeds lack the same one at a time, the reference
    point staying where it is. With n seeds it is Student's t with n - 1 degrees of freedom of the pseudo-values; where
    seeds differ, the variances of all groups are added, with degrees of freedom by Welch and Satterthwaite. It is of
    the volume up to this very reference point.

    Points that are nearly equal bias the volume: it is that of the best of several means, so noise makes it larger. The
    jackknife takes off a part of that only: its interval is centred below the volume then, may not even hold it, and
    is too narrow.

    None for fewer than two points.
    """
    if len(points) < 2:
        return None
    values, sign = SeedValues.of(points, objectives), signs(objectives)
    values = values.divided(scale.exponents(scale.largest(values.magnitudes.T)))
    worst = values.means.max(axis=0)
    reference = worst + 0.01 * np.abs(worst)
    total = _up_to(reference, values.means)
    own = tuple(scale.times(reference * sign, values.powers).tolist())
    left = values.chosen(values.contenders(values.jackknife_reach()))
    size, low, high = scale.times(np.array([total, *_interval(total, left, reference)]), values.powers.sum()).tolist()
    return Volume(size, own, Interval(low, high))


def _up_to(reference: Floats, means: Floats) -> float:
    """A mean that passes the reference point dominates nothing up to it."""
    return float(moocore.hypervolume(means, ref=reference))


def _interval(total: float, values: SeedValues, reference: Floats) -> Interval:
    if values.sizes.max() < 2:
        return NONE
    whole, found = np.asarray(total), []
    best = values.means - values.jackknife_reach()
    front = np.flatnonzero(is_minimal(places(values.means, values.magnitudes)))
    for group in np.flatnonzero(values.sizes > 1).tolist():
        others = values.means[front[values.groups[front] != group]]
        is_behind = (others[:, None] <= best[values.groups == group]).all(axis=2).any(axis=0)
        if is_behind.all():
            continue  # without any of its seeds the front stays as it is
        left = [_up_to(reference, values.without(group, seed)) for seed in range(int(values.sizes[group]))]
        found.append(student.of_jackknife(whole, np.array(left)))
    if not found:
        return Interval(total, total)
    corrected = whole + sum(one.value - whole for one in found)
    low, high = of_estimates(functools.reduce(lambda a, b: student.combine(corrected, a, b), found), 0.95)
    return Interval(max(low, 0.0), max(high, 0.0))
