"""Searches in Optuna's database as drivers would leave them, without their runs."""

import math
import random
from pathlib import Path

import optuna
from optuna.distributions import CategoricalDistribution

from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.optuna_search import _to_optuna
from orchestrator.scheduler.search_store import _value


def make_search(objectives, num_trials, space, name, number=0):
    """Trials at random in Optuna's database, each told what `objectives` gives for its values; None: it failed.

    There are two objectives.
    """
    Path("runs").mkdir(exist_ok=True)
    storage = read_settings().search_store
    study = optuna.create_study(
        study_name=f"{name}-{number:016x}", storage=storage, directions=["minimize", "maximize"]
    )
    numbers, spaces = random.Random(0), _to_optuna(space)
    for _ in range(num_trials):
        drawn = {path: _draw(one, numbers) for path, one in spaces.items()}
        found = objectives({path: _value(space[path], value) for path, value in drawn.items()})
        state = optuna.trial.TrialState.COMPLETE if found else optuna.trial.TrialState.FAIL
        study.add_trial(optuna.trial.create_trial(state=state, params=drawn, distributions=spaces, values=found))


def _draw(distribution, numbers):
    if isinstance(distribution, CategoricalDistribution):
        return numbers.choice(distribution.choices)
    if distribution.log:
        return math.exp(numbers.uniform(math.log(distribution.low), math.log(distribution.high)))
    return numbers.uniform(distribution.low, distribution.high)
