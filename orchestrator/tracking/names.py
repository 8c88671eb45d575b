"""How metrics are named in MLflow: those of replicates, a condition's summary and curves, and a machine's load.

A condition's run has `METRIC`, the mean over its complete replicates, and beside it `METRIC.std`, `.n`, `.low` and
`.high`, all at step n. Its learning curves are other metrics, with n in their names: MLflow deletes nothing, so a curve
over three seeds would otherwise be mixed with the one over five.
"""

import re
from typing import Final

MAX_LENGTH: Final = 250
"""Of a metric's name in MLflow."""

LOAD_PREFIX: Final = "system/"
"""MLflow shows metrics of this prefix on the tab "System metrics"."""

_MEAN_CURVE: Final = re.compile(r"mean of (\d+)/(.+)")


def stored_name(metric: str) -> str:
    """`metric` in MLflow, which allows no @ in names; its interface groups by slashes."""
    return metric.replace("@", "/")


def mean_curve(metric: str, n: int) -> str:
    """The name of the mean over n replicates by step: `mean of 5/valid_per/stochastic`."""
    return f"mean of {n}/{stored_name(metric)}"


def std_curve(metric: str, n: int) -> str:
    """The name of the standard deviation over n replicates by step."""
    return f"std of {n}/{stored_name(metric)}"


def read_mean_curve(name: str) -> tuple[int, str] | None:
    """n and the metric, as stored, of the curve called `name`; None where it is no mean."""
    found = _MEAN_CURVE.fullmatch(name)
    return (int(found[1]), found[2]) if found else None
