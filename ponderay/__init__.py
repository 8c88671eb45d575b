"""Ponderay's public names: declare a sweep of your own model, run it, and ask what came out.

A trainable is a module with `train(config, trial)`; everything else has a plain default:

    import dataclasses
    import ponderay

    @dataclasses.dataclass(frozen=True)
    class Toy:
        width: int = 8
        seed: int = 1

    def train(config, trial):
        trial.report({"loss": 1 / config.width, "macs": config.width**2}, step=1)

    toy = ponderay.Sweep(
        name="toy",
        description="A loss that falls with the width.",
        trainable=__name__,
        base=Toy(),
        conditions=ponderay.grid({"width": [4, 8, 16]}),
        objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")),
        reference="width=8",
    )

In `toy.py` it is run by `ponderay run toy.py:toy`, and `ponderay pareto toy.py:toy` draws its front. Importing this
package loads neither torch nor Ray nor MLflow.
"""

import importlib
from typing import TYPE_CHECKING, Any

import orchestrator  # noqa: F401  finds our own packages, whatever folders of the same names the user has
from search_spaces.distributions import Choice, Exponential, Integer, Real
from search_spaces.halving import Halving
from search_spaces.resources import Resources
from search_spaces.sweep import (
    Condition,
    Constraint,
    Objective,
    Prerequisite,
    Search,
    Sequential,
    Sweep,
    grid,
)
from trainables.analysis import Analysis
from trainables.config import NOT_IN_KEY, Config
from trainables.errors import InputError
from trainables.metric import Best, Metric
from trainables.prediction import Example, Prediction, Promises
from trainables.secret import SECRET
from trainables.trial import Trial

if TYPE_CHECKING:
    from orchestrator.results.study import Study as Study
    from ponderay.notebook import checkpoint as checkpoint
    from ponderay.notebook import compare as compare
    from ponderay.notebook import curves as curves
    from ponderay.notebook import from_mlflow as from_mlflow
    from ponderay.notebook import importance as importance
    from ponderay.notebook import load as load
    from ponderay.notebook import pareto as pareto
    from ponderay.notebook import report as report
    from ponderay.notebook import run as run
    from ponderay.notebook import save_report as save_report

__all__ = [
    "NOT_IN_KEY",
    "SECRET",
    "Analysis",
    "Best",
    "Choice",
    "Condition",
    "Config",
    "Constraint",
    "Example",
    "Exponential",
    "Halving",
    "InputError",
    "Integer",
    "Metric",
    "Objective",
    "Prediction",
    "Prerequisite",
    "Promises",
    "Real",
    "Resources",
    "Search",
    "Sequential",
    "Sweep",
    "Trial",
    "grid",
]


NOTEBOOK = (
    "run", "load", "pareto", "compare", "report", "importance", "curves", "checkpoint", "from_mlflow", "save_report",
)  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*globals(), *NOTEBOOK, "Study"})


def __getattr__(name: str) -> Any:
    """What needs more than declarations is imported when it is asked for."""
    if name in NOTEBOOK:
        return getattr(importlib.import_module("ponderay.notebook"), name)
    if name == "Study":
        from orchestrator.results.study import Study

        return Study
    raise AttributeError(f"module 'ponderay' has no attribute {name!r}")
