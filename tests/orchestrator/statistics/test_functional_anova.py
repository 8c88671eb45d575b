"""Shares of variance, against those of Optuna's evaluator, which takes the same forest apart another way."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator
from optuna.trial import create_trial

from orchestrator.statistics import functional_anova

SPACE = {
    "choice": CategoricalDistribution(("a", "b", "c")),
    "depth": IntDistribution(1, 9),
    "rate": FloatDistribution(-2.0, 3.0),
}


def test_shares_are_those_of_optunas_evaluator():
    random = np.random.default_rng(0)
    study, rows, values = optuna.create_study(), [], []
    for _ in range(30):
        choice, depth, rate = int(random.integers(3)), int(random.integers(1, 10)), random.uniform(-2, 3)
        values.append(depth * rate + 4.0 * (choice == 1) + random.normal())
        rows.append([*np.eye(3)[choice], depth, rate])
        params = {"choice": "abc"[choice], "depth": depth, "rate": rate}
        study.add_trial(create_trial(params=params, distributions=SPACE, value=values[-1]))
    expected = FanovaImportanceEvaluator(n_trees=8, seed=0).evaluate(study)
    bounds = np.array([(0, 1), (0, 1), (0, 1), (1, 9), (-2, 3)], np.float64).T
    groups = [range(3), [3], [4]]
    found = functional_anova.shares(np.array(rows), np.array(values), bounds, groups, num_trees=8, seed=0)
    assert found == pytest.approx([expected[name] for name in SPACE], rel=1e-9)
    assert 0.1 < found.sum() < 0.9, "what depth and rate explain only together is in none"


def test_what_does_not_vary_has_no_shares():
    found = functional_anova.shares(np.eye(4), np.ones(4), np.array([[0.0] * 4, [1.0] * 4]), [[0], [1, 2]], 2, seed=0)
    assert found.tolist() == [0.0, 0.0]
