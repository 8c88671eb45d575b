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
        valid = "valid_" if kind == "search" else ""
        for task in ("parity", "logic", "addition", "sort", "text"):
            sweep = find_sweep(f"act.{kind}_{task}")
            assert sweep.seeds == (1, 2, 3, 4, 5)
            assert sweep.reference == {"tau": "no_act", "fixed_updates": "updates=1", "search": None}[kind]
            error = "bits_per_character" if task == "text" else "sequence_error"
            error = "valid_loss_nats" if valid and task == "text" else valid + error
            assert [objective.metric for objective in sweep.objectives[:2]] == [error, f"{valid}mean_updates"]


@pytest.mark.parametrize(("name", "num_bits"), [("halting_parity", 96), ("halting_parity_laptop", 16)])
def test_halting_of_parity_is_trained_with_half_of_the_bits_and_tested_with_more(name, num_bits):
    """Banino et al. 2021: of 96 entries 1 to 48 are active in training, 49 to 96 in testing."""
    sweep = find_sweep(f"act.{name}")
    assert sweep.seeds == (1, 2, 3, 4, 5) and sweep.reference == "act,tau=0.001"
    for condition in sweep.conditions:
        config = sweep.config(condition, 1)
        assert (config.data.num_bits, config.data.min_active, config.data.most_active) == (num_bits, 1, num_bits // 2)
        trained, harder = config.evaluations[:2]
        assert all(one.data == (harder.data if one.name.startswith("harder") else None) for one in config.evaluations)
        assert (trained.name, trained.data, harder.name) == ("test", None, "harder")
        assert (harder.data.num_bits, harder.data.min_active, harder.data.most_active) == (
            num_bits,
            num_bits // 2 + 1,
            num_bits,
        )


@pytest.mark.parametrize("task", ["parity", "logic", "addition", "sort", "text"])
@pytest.mark.parametrize("scale", ["", "_laptop"])
def test_halting_has_act_its_rivals_and_a_threshold_is_an_evaluation(task, scale):
    sweep = find_sweep(f"act.halting_{task}{scale}")
    configs = {one.name: sweep.config(one, 1) for one in sweep.conditions}
    assert list(configs) == [
        "act,tau=0.001", "act,tau=0.01", "ponder_net,lambda_p=0.2", "ponder_net,lambda_p=0.4",
        "updates=1", "updates=2", "updates=5", "updates=10", "early_exit",
    ]  # fmt: skip
    assert len({(one.cell, one.hidden_size, one.training) for one in configs.values()}) == 1
    assert [one.metric for one in sweep.objectives][1:] == ["macs_per_sequence", "mean_updates"]
    sure = [one for one in configs["early_exit"].evaluations if one.halts]
    assert {one.halts.above for one in sure} == {0.5, 0.9}
    assert {one.name for one in configs["ponder_net,lambda_p=0.2"].evaluations} >= {"test", "test_median"}
    smoke = find_sweep(f"act.halting_{task}{scale}", smoke=True)
    assert {smoke.config(one, 1).halting.kind for one in smoke.conditions} == {
        "adaptive", "ponder_net", "fixed", "early_exit",
    }  # fmt: skip
