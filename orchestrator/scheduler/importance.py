"""How much each parameter of a search matters, by functional ANOVA of what Optuna was told.

A random forest predicts an objective from the parameters. A parameter's share is the variance of its marginal
prediction among those of all parameters (Hutter, Hoos & Leyton-Brown 2014, "An Efficient Approach for Assessing
Hyperparameter Importance"), over the space as the search draws from it: evenly in the logarithm where the search does
so. Optuna's default, PED-ANOVA, asks what leads to the best tenth, and of 20 trials that would be two.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution, json_to_distribution
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import create_trial

from orchestrator.results.importance import Importance
from orchestrator.results.trials import Trial, Trials
from orchestrator.statistics.subsample import subsample

LEAST_TRIALS: Final = 20
"""With 20, one parameter of four that alone matters gets 0.97 or more; with 10 it may get 0.7."""

MOST_TRIALS: Final = 500
"""The time grows with the square; 500 take seconds."""

NUM_TREES: Final = 64
SEED: Final = 0


def importance(found: Trials) -> Importance:
    """What the trials of a search say, for each of its objectives; the same trials give the same.

    Where they are too few, the notes say so.
    """
    trials, notes = found.trials, list(found.notes)
    if len(trials) < LEAST_TRIALS:
        if trials or not notes:
            notes.append(f"Importance needs {LEAST_TRIALS} complete trials, but there are {len(trials)}.")
        return Importance(found.sweep, found.objectives, notes=tuple(notes))
    used = [trials[i] for i in subsample(len(trials), MOST_TRIALS)]
    if len(used) < len(trials):
        notes.append(f"{len(used)} of {len(trials):,} trials were used.")
    spaces = {path: json_to_distribution(text) for path, text in found.distributions.items()}
    columns = [_shares(used, spaces, i) for i in range(len(found.objectives))]
    constant = [name for name, column in zip(found.objectives, columns, strict=True) if not column]
    notes += [f"{name} does not vary, so nothing matters for it." for name in constant]
    shares = tuple(tuple(column.get(path) for column in columns) for path in spaces)
    return Importance(found.sweep, found.objectives, tuple(spaces), shares, len(used), tuple(notes))


def _shares(trials: Sequence[Trial], spaces: Mapping[str, BaseDistribution], objective: int) -> dict[str, float]:
    """Each parameter's share; none where the objective does not vary."""
    values = [trial.values[objective] for trial in trials]
    if min(values) == max(values):
        return {}
    even = {path: _even(space) for path, space in spaces.items()}
    study = optuna.create_study()
    for trial, value in zip(trials, values, strict=True):
        params = {path: _even_value(space, trial.drawn[path]) for path, space in spaces.items()}
        study.add_trial(create_trial(params=params, distributions=even, value=value))
    forest = FanovaImportanceEvaluator(n_trees=NUM_TREES, seed=SEED)
    return get_param_importances(study, evaluator=forest)


def _even(distribution: BaseDistribution) -> BaseDistribution:
    """Where the search draws evenly: Optuna's evaluator would take a logarithmic range as an even one."""
    if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log:
        return FloatDistribution(math.log(distribution.low), math.log(distribution.high))
    return distribution


def _even_value(distribution: BaseDistribution, drawn: Any) -> Any:
    is_log = isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log
    return math.log(drawn) if is_log else drawn
