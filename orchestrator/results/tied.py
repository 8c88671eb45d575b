"""Metrics whose values repeat under different seeds, so that a condition without spread need not be without noise."""

import math
from collections.abc import Iterable

from orchestrator.results.study import Study
from orchestrator.statistics.shape import may_hide_noise


def tied_metrics(study: Study) -> tuple[str, ...]:
    """Names, without evaluation, of metrics whose values repeat.

    A metric is judged by the values of all its evaluations; without any, by the replicate's own.
    """
    columns: dict[str, list[str]] = {}
    for name in study.metrics():
        columns.setdefault(name.partition("@")[0], []).append(name)
    tested = {metric: [name for name in names if "@" in name] or names for metric, names in columns.items()}
    return tuple(metric for metric, names in tested.items() if hides_noise(study, names))


def hides_noise(study: Study, columns: Iterable[str]) -> bool:
    """Whether values repeat in conditions that vary, in these columns together."""
    wanted = tuple(columns)
    found: dict[tuple[str, str], list[float]] = {}
    for one in study.replicates:
        for column in wanted if one.state == "complete" else ():
            if math.isfinite(value := one.metrics.get(column, math.nan)):
                found.setdefault((one.condition, column), []).append(value)
    return may_hide_noise(found.values())
