"""Counted multiply-accumulates against torch's own counter, and parameters against a count by hand."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from trainables.act import evaluation
from trainables.act.config import ActConfig, Adaptive, Addition, Fixed, Optimisation, Parity, Sort, Text
from trainables.act.network import Network
from trainables.act.tasks import data

TASKS = [(Parity(num_bits=7), "rnn"), (Addition(num_numbers=2), "gru"), (Sort(num_items=3), "lstm")]


@pytest.mark.parametrize(("task", "cell"), TASKS)
@pytest.mark.parametrize("halting", [Adaptive(max_updates=4, halting_bias=-0.5), Fixed(num_updates=3), Fixed()])
def test_multiply_accumulates_are_those_that_torch_counts_in_batches_of_all_lengths(task, cell, halting):
    config = ActConfig(data=task, cell=cell, hidden_size=9, halting=halting, num_validation_sequences=40)
    sequences = data.validation_set(config)
    with FlopCounterMode(display=False) as counter:
        results = evaluation.score(Network(config), sequences)
    assert evaluation.macs_per_sequence(config, results) == counter.get_total_flops() / 2 / 40


def test_a_text_pays_nothing_for_its_input():
    config = ActConfig(data=Text(num_steps=5), cell="rnn", hidden_size=8, halting=Fixed(num_updates=2))
    results = evaluation.Results(
        num_steps=np.array([5, 3]),
        num_updates=np.array([[2] * 5, [2, 2, 2, 0, 0]]),
        remainders=np.zeros((2, 5)),
        has_target=np.array([[True] * 5, [True] * 3 + [False] * 2]),
        is_right=np.zeros((2, 5), bool),
        nats=np.zeros((2, 5)),
        entropies=np.zeros((2, 5)),
        difficulty=np.zeros((2, 5), int),
        duration_s=np.ones(1),
    )
    assert evaluation.macs_per_sequence(config, results) == (8 * (2 * 64) + 8 * (8 * 256)) / 2


def test_parameters_by_hand():
    """Graves' parity network: 64 + 1 inputs, 128 units, two biases, a halting unit, one logit."""
    network = Network(ActConfig())
    expected = 65 * 128 + 128 * 128 + 2 * 128 + (128 + 1) + (128 + 1)
    assert sum(parameter.numel() for parameter in network.parameters()) == expected
    plain = Network(ActConfig(halting=Fixed()))
    assert sum(parameter.numel() for parameter in plain.parameters()) == expected - 128 - 129
    assert network.halting.bias.item() == 1.0
    assert Optimisation().learning_rate == 1e-4
    assert torch.stack([p.abs().max() for n, p in network.named_parameters() if n != "halting.bias"]).max() <= 128**-0.5
