"""How much each parameter of a search matters, by functional ANOVA of what Optuna was told.

A random forest predicts an objective from the parameters. A parameter's share is the variance of its marginal
prediction among those of all parameters (Hutter, Hoos & Leyton-Brown 2014, "An Efficient Approach for Assessing
Hyperparameter Importance"), over the space as the search draws from it: evenly in the logarithm where the search does
so. Optuna's default, PED-ANOVA, asks what leads to the best tenth, and of 20 trials that would be two.
"""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, get_param_importances
from optuna.trial import FrozenTrial, TrialState, create_trial

from orchestrator.environment.redaction import redacted_uri
from orchestrator.environment.settings import Settings
from orchestrator.results.importance import Importance
from orchestrator.scheduler.search_store import UNREADABLE, studies
from orchestrator.tracking.store import reason_of

LEAST_TRIALS: Final = 20
"""With 20, one parameter of four that alone matters gets 0.97 or more; with 10 it may get 0.7."""

MOST_TRIALS: Final = 500
"""The time grows with the square; 500 take seconds."""

NUM_TREES: Final = 64
SEED: Final = 0


def importance(sweep: str, objectives: Sequence[str], settings: Settings) -> Importance:
    """What the trials of the search called `sweep` say, for each of its objectives; the same trials give the same.

    Where Optuna's database is away or holds too little, the notes say so.
    """
    nothing = Importance(sweep, tuple(objectives))
    store = settings.search_store
    try:
        complete = [_complete(study) for study in studies(sweep, settings)]
    except UNREADABLE as error:
        reason = reason_of(error.__cause__ or error, store)
        return _with_notes(nothing, f"Optuna's database {redacted_uri(store)} cannot be read: {reason}")
    if not complete:
        return _with_notes(nothing, f"Optuna's database {redacted_uri(store)} holds no search of {sweep}.")
    trials = max(complete, key=len)
    notes = [f"{len(complete)} searches have this name; this is the one of most trials."] if len(complete) > 1 else []
    if len(trials) < LEAST_TRIALS:
        few = f"Importance needs {LEAST_TRIALS} complete trials, but there are {len(trials)}."
        return _with_notes(nothing, *notes, few)
    return _importance(nothing, trials, notes)


def _importance(nothing: Importance, trials: Sequence[FrozenTrial], notes: list[str]) -> Importance:
    used = [trials[i] for i in np.unique(np.linspace(0, len(trials) - 1, MOST_TRIALS).round().astype(int))]
    if len(used) < len(trials):
        notes.append(f"{len(used)} of {len(trials):,} trials were used.")
    parameters = tuple(used[0].params)
    columns = [_shares(used, i) for i in range(len(nothing.objectives))]
    constant = [name for name, column in zip(nothing.objectives, columns, strict=True) if not column]
    notes += [f"{name} does not vary, so nothing matters for it." for name in constant]
    shares = tuple(tuple(column.get(path) for column in columns) for path in parameters)
    return Importance(nothing.sweep, nothing.objectives, parameters, shares, len(used), tuple(notes))


def _shares(trials: Sequence[FrozenTrial], objective: int) -> dict[str, float]:
    """Each parameter's share; none where the objective does not vary."""
    values = [trial.values[objective] for trial in trials]
    if min(values) == max(values):
        return {}
    even = optuna.create_study()
    for trial, value in zip(trials, values, strict=True):
        params = {path: _even_value(trial.distributions[path], drawn) for path, drawn in trial.params.items()}
        spaces = {path: _even(distribution) for path, distribution in trial.distributions.items()}
        even.add_trial(create_trial(params=params, distributions=spaces, value=value))
    forest = FanovaImportanceEvaluator(n_trees=NUM_TREES, seed=SEED)
    return get_param_importances(even, evaluator=forest)


def _even(distribution: BaseDistribution) -> BaseDistribution:
    """Where the search draws evenly: Optuna's evaluator would take a logarithmic range as an even one."""
    if isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log:
        return FloatDistribution(math.log(distribution.low), math.log(distribution.high))
    return distribution


def _even_value(distribution: BaseDistribution, drawn: Any) -> Any:
    is_log = isinstance(distribution, FloatDistribution | IntDistribution) and distribution.log
    return math.log(drawn) if is_log else drawn


def _complete(study: optuna.Study) -> list[FrozenTrial]:
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [trial for trial in trials if all(map(math.isfinite, trial.values))]


def _with_notes(nothing: Importance, *notes: str) -> Importance:
    return Importance(nothing.sweep, nothing.objectives, notes=notes)
