"""Curves of validation for studies of tests."""

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.results.study import Study
from orchestrator.results.validations import SeedCurve, Validations
from trainables.metric import Best

STEPS = tuple(range(21))


def with_slopes(study: Study, slopes: Mapping[str, float], metric: str = "valid_per", evaluation: str = "") -> Study:
    """The study with a straight curve of each complete replicate, from .9 on, whose seeds differ a little.

    Args:
        slopes: by condition, a step; conditions that are not in it have no curve.
    """
    complete = [one for one in study.replicates if one.state == "complete" and one.condition in slopes]
    curves = []
    for one in complete:
        slope = slopes[one.condition] * (1 + one.seed / 100)
        curves.append(SeedCurve(one.condition, one.seed, metric, STEPS, tuple(0.9 + slope * x for x in STEPS)))
    selected = {name: {evaluation or "best": Best(metric)} for name in slopes}
    return replace(study, validations=Validations(selected, tuple(curves)))
