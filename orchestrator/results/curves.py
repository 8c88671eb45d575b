"""Learning curves: of each replicate by step, thinned for keeping, and their means over a condition's replicates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from orchestrator.statistics import scale
from orchestrator.statistics.improving import num_needed
from orchestrator.statistics.subsample import subsample

MAX_STEPS: Final = 200
"""The most steps of a curve; enough to draw it, few enough to keep one for each metric of each replicate."""

Histories = Mapping[str, Mapping[int, float]]
"""Values of metrics by step."""


@dataclass(frozen=True)
class Curve:
    """One metric of one condition over training.

    Attributes:
        means: over the n replicates, at each of `steps`.
        stds: sample standard deviations; NaN for n = 1.
        is_pruned: whether it is the part that one replicate ran before its search stopped it.
    """

    condition: str
    metric: str
    n: int
    steps: tuple[int, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]
    is_pruned: bool = False


@dataclass(frozen=True)
class ReplicateCurves:
    """What is kept of all that a replicate reported in training.

    Attributes:
        curves: finite values of each metric at MAX_STEPS steps at most: every one, every second, every fourth and so
            on, and the last. So replicates of different lengths still have steps in common.
        endings: of metrics with more steps, every value at the end by which answers say whether training was long
            enough.
    """

    curves: Histories
    endings: Histories

    def of(self, metric: str) -> dict[int, float]:
        """All that is kept of one metric, by step."""
        return dict(sorted({**self.curves.get(metric, {}), **self.endings.get(metric, {})}.items()))


def thinned(histories: Histories) -> ReplicateCurves:
    """What is kept of the curves of one replicate."""
    curves, endings = {}, {}
    for metric, history in histories.items():
        steps, finite = sorted(history), _finite(history)
        stride = 1
        while (len(steps) + stride - 1) // stride > MAX_STEPS - (stride > 1):
            stride *= 2
        kept = dict.fromkeys((*steps[::stride], *steps[-1:]))
        curves[metric] = {step: finite[step] for step in kept if step in finite}
        if len(steps) > MAX_STEPS:
            last = list(finite.items())
            endings[metric] = dict(last[len(last) - num_needed(last) :])
    return ReplicateCurves(curves, endings)


def mean_curves(condition: str, replicates: Sequence[Histories]) -> tuple[Curve, ...]:
    """The curve of every metric that all replicates report in training, in the order of their names.

    Its steps are those on which all replicates have a finite value: of more than MAX_STEPS so many, evenly chosen, with
    the first and the last. A metric with fewer than two such steps has no curve.

    Args:
        replicates: of the condition's complete replicates; n is their number.
    """
    curves, n = [], len(replicates)
    for metric in sorted(set.intersection(*map(set, replicates)) if replicates else set()):
        histories = [_finite(by_metric[metric]) for by_metric in replicates]
        common = sorted(set.intersection(*map(set, histories)))
        steps = [common[i] for i in subsample(len(common), MAX_STEPS)]
        if len(steps) < 2:
            continue
        values = np.array([[history[step] for step in steps] for history in histories], np.float64)
        # Divided by a power of two, so that neither sum nor squares overflow.
        powers = scale.exponents(scale.largest(values.T))
        scaled = scale.times(values, -powers)
        means = scale.times(scaled.mean(axis=0), powers)
        stds = scale.times(scaled.std(axis=0, ddof=1), powers) if n > 1 else np.full(len(steps), math.nan)
        curves.append(Curve(condition, metric, n, tuple(steps), tuple(means.tolist()), tuple(stds.tolist())))
    return tuple(curves)


def _finite(history: Mapping[int, float]) -> dict[int, float]:
    return {step: value for step, value in sorted(history.items()) if math.isfinite(value)}
