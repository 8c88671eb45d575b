"""How much each parameter of a search matters, from what a bundle has: configs as logged, and metrics."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial, create_trial

from orchestrator.report.importance_table import importance_table
from orchestrator.report.table import Table
from orchestrator.results.importance import Importance
from orchestrator.results.study import Study
from orchestrator.scheduler.importance import importance_in
from orchestrator.scheduler.optuna_search import to_optuna
from search_spaces.distributions import Choice, Distribution, Exponential, Integer
from search_spaces.find import find_sweep
from trainables.errors import InputError

Configs = Mapping[str, Mapping[str, str]]
"""Values as text, by condition and path."""


def importance_of_bundle(study: Study, metrics: Sequence[str], configs: Configs) -> Table:
    """The same as `ponderay report` takes from Optuna's database, of each metric's mean over a condition's seeds.

    A pruned condition has the seeds that it got. One with a replicate that is not complete does not count.

    Raises:
        InputError: if the study is of no search, or its space has what cannot be read back.
    """
    search = find_sweep(study.sweep).search
    if search is None:
        raise InputError(f"{study.sweep} must be a search, but its conditions are listed.")
    complete = [name for name in study.conditions if all(one.state == "complete" for one in study.of(name))]
    means = {name: [_mean(study, name, metric) for metric in metrics] for name in complete}
    trials = [_trial(search.space, configs[name], values) for name, values in means.items()]
    return importance_table(importance_in(trials, Importance(study.sweep, tuple(metrics))))


def _trial(space: Mapping[str, Distribution], config: Mapping[str, str], values: Sequence[float]) -> FrozenTrial:
    params = {path: _drawn(path, distribution, config[path]) for path, distribution in space.items()}
    return create_trial(params=params, distributions=to_optuna(space), values=values)


def _drawn(path: str, distribution: Distribution, text: str) -> Any:
    match distribution:
        case Exponential():
            raise InputError(f"{path} is drawn from Exponential, whose values cannot be read back.")
        case Choice():
            return next(value for value in distribution.values if str(value) == text)
        case Integer():
            return int(text)
        case _:
            return float(text)


def _mean(study: Study, condition: str, metric: str) -> float:
    values = [one.metrics[metric] for one in study.of(condition)]
    return math.fsum(values) / len(values)
