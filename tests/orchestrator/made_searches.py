"""Searches in Optuna's database as drivers would leave them, without their runs."""

import math
import random
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution

from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.optuna_search import to_optuna
from orchestrator.scheduler.search_store import drawn_values


def make_search(objectives, num_trials, space, name, number=0):
    """Trials at random in Optuna's database, each told what `objectives` gives for its values; None: it failed.

    There are two objectives.
    """
    Path("runs").mkdir(exist_ok=True)
    storage = read_settings().search_store
    study = optuna.create_study(
        study_name=f"{name}-{number:016x}", storage=storage, directions=["minimize", "maximize"]
    )
    numbers, spaces = random.Random(0), {path: to_optuna(values) for path, values in space.items()}
    for _ in range(num_trials):
        drawn = {path: _draw(distribution, numbers) for path, distribution in spaces.items()}
        values = objectives(drawn_values(drawn, space))
        state = optuna.trial.TrialState.COMPLETE if values else optuna.trial.TrialState.FAIL
        study.add_trial(optuna.trial.create_trial(state=state, params=drawn, distributions=spaces, values=values))


def _draw(distribution, numbers):
    if isinstance(distribution, CategoricalDistribution):
        return numbers.choice(distribution.choices)
    if distribution.log:
        return math.exp(numbers.uniform(math.log(distribution.low), math.log(distribution.high)))
    return numbers.uniform(distribution.low, distribution.high)
