"""Learning curves of a condition: means over its replicates by step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.statistics.subsample import subsample

MAX_STEPS: Final = 200
"""Of a curve; enough to draw it, few enough to store one for each metric of each condition."""


@dataclass(frozen=True)
class Curve:
    """One metric of one condition over training.

    Attributes:
        means: over the n replicates, at each of `steps`.
        stds: sample standard deviations; NaN for n = 1.
    """

    condition: str
    metric: str
    n: int
    steps: tuple[int, ...]
    means: tuple[float, ...]
    stds: tuple[float, ...]


def mean_curves(condition: str, journals: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[Curve, ...]:
    """The curve of every metric that all replicates report in training, in the order of their names.

    Its steps are those on which all replicates have a finite value: of more than MAX_STEPS so many, evenly chosen, with
    the first and the last. A metric with fewer than two such steps has no curve.

    Args:
        journals: the records of the condition's complete replicates; n is their number.
    """
    histories = [_histories(journal) for journal in journals]
    common = set.intersection(*(set(by_metric) for by_metric in histories)) if histories else set()
    curves = (_curve(condition, metric, [one[metric] for one in histories]) for metric in sorted(common))
    return tuple(curve for curve in curves if len(curve.steps) > 1)


def _histories(journal: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, float]]:
    """The finite values of each metric by step."""
    histories: dict[str, dict[int, float]] = {}
    for record in journal:
        if record["kind"] == "metrics":
            for metric, value in record["metrics"].items():
                if math.isfinite(value):
                    histories.setdefault(metric, {})[record["step"]] = value
    return histories


def _curve(condition: str, metric: str, histories: Sequence[Mapping[int, float]]) -> Curve:
    import numpy as np

    from orchestrator.statistics import scale

    common = sorted(set.intersection(*(set(history) for history in histories)))
    steps = [common[i] for i in subsample(len(common), MAX_STEPS)]
    values = np.array([[history[step] for step in steps] for history in histories], np.float64)
    powers, n = scale.exponents(scale.largest(values.T)), len(histories)
    scaled = scale.times(values, -powers)
    means = scale.times(scaled.mean(axis=0), powers)
    stds = scale.times(scaled.std(axis=0, ddof=1), powers) if n > 1 else np.full(len(steps), math.nan)
    return Curve(condition, metric, n, tuple(steps), tuple(means.tolist()), tuple(stds.tolist()))
