"""The sweeps of Adaptive Computation Time hold what the paper says."""

import pytest

from search_spaces import act_sizes
from search_spaces.find import find_sweep
from trainables.act.config import Adaptive


def test_graves_grid_has_37_values_and_28_of_text():
    """Section 3: i x 10^-j with i from 1 to 10 and j from 1 to 4; of the language model j from 1 to 3."""
    for task in (act_sizes.PARITY, act_sizes.LOGIC, act_sizes.ADDITION, act_sizes.SORT):
        assert len(task.grid) == 37
        assert (min(task.grid), max(task.grid)) == (1e-4, 1.0)
        assert {3e-4, 2e-3, 5e-2, 0.1, 0.7} <= set(task.grid)
        assert task.short_grid == (1e-4, 1e-3, 1e-2, 1e-1)
    assert len(act_sizes.TEXT.grid) == 28
    assert (min(act_sizes.TEXT.grid), max(act_sizes.TEXT.grid)) == (1e-3, 1.0)
    assert act_sizes.TEXT.short_grid == (1e-3, 1e-2, 1e-1, 1.0)


@pytest.mark.parametrize(("name", "count"), [("tau_sort", 37), ("tau_text", 28), ("tau_text_laptop", 4)])
def test_a_sweep_has_each_penalty_of_its_task_and_no_act(name, count):
    sweep = find_sweep(f"act.{name}")
    assert len(sweep.conditions) == count + 1 and f"{count} time penalties" in sweep.description
    assert "tau=0.0001" in {one.name for one in sweep.conditions} or "text" in name


@pytest.mark.parametrize(
    ("task", "cell", "hidden_size", "batch_size", "max_updates", "num_iterations"),
    [
        (act_sizes.PARITY, "rnn", 128, 128, 100, 1_000_000),
        (act_sizes.LOGIC, "lstm", 128, 16, 100, 1_000_000),
        (act_sizes.ADDITION, "lstm", 512, 32, 20, 1_000_000),
        (act_sizes.SORT, "lstm", 512, 16, 100, 1_000_000),
        (act_sizes.TEXT, "lstm", 1500, 16, 100, 10_000),
    ],
)
def test_graves_sizes(task, cell, hidden_size, batch_size, max_updates, num_iterations):
    config = task.graves
    assert (config.cell, config.hidden_size, config.training.batch_size) == (cell, hidden_size, batch_size)
    assert (config.training.learning_rate, config.training.num_iterations) == (1e-4, num_iterations)
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
