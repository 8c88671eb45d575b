"""Whether a metric still gets better when training ends, and what one more tenth of training would bring."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from orchestrator.statistics.summary import NONE, Interval, exact_mean, mean_interval

LEAST_IN_LAST_THIRD: Final = 5
"""Values without which nothing is said of the end of a curve."""

LEAST_OF_SLOPE: Final = 3
"""Values that a slope is laid through, also where the last tenth has fewer."""

Standing = Literal["improving", "ended", "not known"]
Points = Sequence[tuple[int, float]]
"""A curve: steps in order, each with a finite value."""


@dataclass(frozen=True)
class Ending:
    """How a metric goes at the end of training.

    Attributes:
        standing: `improving` where the interval of the change lies on the better side of 0; `ended` where it does not,
            which shows no improvement and does not show that there is none.
        change: in the metric, by which one more tenth of training would move it if it went on so: the mean over seeds
            of a tenth of the steps times the slope. NaN where it is not known.
        interval: of the change, 95 %, over seeds.
        n: seeds.
    """

    standing: Standing
    change: float
    interval: Interval
    n: int


def ending(curves: Sequence[Points], direction: Literal["minimize", "maximize"]) -> Ending:
    """How the curves of a condition's seeds end; not known with fewer than two, or than five values in a last third.

    The slope of a seed is that of the least squares through the values of the last tenth of its own steps, and of the
    last three values where that has fewer.

    Args:
        curves: of each seed.
        direction: which way is better.
    """
    if len(curves) < 2 or any(_in_last(curve, 1 / 3) < LEAST_IN_LAST_THIRD for curve in curves):
        return Ending("not known", math.nan, NONE, len(curves))
    changes = []
    for curve in curves:
        number = _num_of_slope(curve)
        steps, values = np.array(curve[-number:], np.float64).T
        steps = (steps - steps.mean()) / (curve[-1][0] / 10)  # so that the slope is that of a tenth of training
        changes.append(float(steps @ (values - values.mean()) / (steps @ steps)))
    interval = mean_interval(changes)
    is_improving = interval.high < 0 if direction == "minimize" else interval.low > 0
    return Ending("improving" if is_improving else "ended", exact_mean(changes), interval, len(curves))


def num_needed(curve: Points) -> int:
    """How many values at the end of a curve its `ending` rests on."""
    return max(LEAST_IN_LAST_THIRD, _num_of_slope(curve))


def _num_of_slope(curve: Points) -> int:
    return max(LEAST_OF_SLOPE, _in_last(curve, 1 / 10))


def _in_last(curve: Points, share: float) -> int:
    """How many values stand in the last `share` of the steps, its beginning included."""
    if not curve:
        return 0
    last = curve[-1][0]
    return sum(step >= last - share * last for step, _ in curve)
