"""The sweeps of Adaptive Computation Time hold what the paper says."""

import pytest

from search_spaces import act, act_sizes
from search_spaces.find import find_sweep
from trainables.act.config import Adaptive


def test_graves_grid_has_37_values():
    assert len(act.GRID) == 37
    assert (min(act.GRID), max(act.GRID)) == (1e-4, 1.0)
    assert {3e-4, 2e-3, 5e-2, 0.1, 0.7} <= set(act.GRID)


@pytest.mark.parametrize(
    ("task", "cell", "hidden_size", "batch_size", "max_updates"),
    [
        (act_sizes.PARITY, "rnn", 128, 128, 100),
        (act_sizes.LOGIC, "lstm", 128, 16, 100),
        (act_sizes.ADDITION, "lstm", 512, 32, 20),
        (act_sizes.SORT, "lstm", 512, 16, 100),
        (act_sizes.TEXT, "lstm", 1500, 16, 100),
    ],
)
def test_graves_sizes(task, cell, hidden_size, batch_size, max_updates):
    config = task.graves
    assert (config.cell, config.hidden_size, config.training.batch_size) == (cell, hidden_size, batch_size)
    assert (config.training.learning_rate, config.training.num_iterations) == (1e-4, 1_000_000)
    assert isinstance(config.halting, Adaptive)
    assert (config.halting.max_updates, config.halting.epsilon, config.halting.halting_bias) == (max_updates, 0.01, 1.0)
    assert config.evaluations[0].num_sequences == 10_000


def test_every_sweep_at_full_size_has_five_seeds_and_a_reference():
    for kind in ("tau", "fixed_updates", "search"):
        for task in ("parity", "logic", "addition", "sort", "text"):
            sweep = find_sweep(f"act.{kind}_{task}")
            assert sweep.seeds == (1, 2, 3, 4, 5)
            assert sweep.reference == {"tau": "no_act", "fixed_updates": "updates=1", "search": None}[kind]
            error = "bits_per_character" if task == "text" else "sequence_error"
            assert [objective.metric for objective in sweep.objectives[:2]] == [error, "mean_updates"]
