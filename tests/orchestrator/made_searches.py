"""Searches in Optuna's database as drivers would leave them, without their runs."""

import math
import random
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution, distribution_to_json

from orchestrator.environment.settings import read_settings
from orchestrator.results.trials import Trial, Trials
from orchestrator.scheduler.optuna_search import to_optuna
from orchestrator.scheduler.search_store import drawn_values


def make_search(objectives, num_trials, space, name, number=0):
    """Trials at random in Optuna's database, each told what `objectives` gives for its values; None: it failed.

    There are two objectives.
    """
    Path("runs").mkdir(exist_ok=True)
    storage = read_settings().search_store
    study = optuna.create_study(
        study_name=f"{name}-{number:016x}", storage=storage, directions=["minimize", "minimize"]
    )
    spaces = _spaces(space)
    for drawn, values in _draws(objectives, num_trials, space):
        state = optuna.trial.TrialState.COMPLETE if values else optuna.trial.TrialState.FAIL
        study.add_trial(optuna.trial.create_trial(state=state, params=drawn, distributions=spaces, values=values))


def made_trials(objectives, num_trials, space, name):
    """The same trials without a database, which takes longer to write than all else."""
    distributions = {path: distribution_to_json(distribution) for path, distribution in _spaces(space).items()}
    draws = _draws(objectives, num_trials, space)
    trials = tuple(Trial(f"{number:04}", drawn, values) for number, (drawn, values) in enumerate(draws))
    return Trials(name, ("error", "cost"), distributions, trials)


def _spaces(space):
    return {path: to_optuna(values) for path, values in space.items()}


def _draws(objectives, num_trials, space):
    numbers = random.Random(0)
    for _ in range(num_trials):
        drawn = {path: _draw(distribution, numbers) for path, distribution in _spaces(space).items()}
        yield drawn, objectives(drawn_values(drawn, space))


def _draw(distribution, numbers):
    if isinstance(distribution, CategoricalDistribution):
        return numbers.choice(distribution.choices)
    if distribution.log:
        return math.exp(numbers.uniform(math.log(distribution.low), math.log(distribution.high)))
    return numbers.uniform(distribution.low, distribution.high)
