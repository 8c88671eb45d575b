"""Analytic counts against torch's own counter on cells that are unrolled into matrix products, and published counts."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from trainables.asr import cost
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig, Features, Network, Pretraining, Random, Surprisal
from trainables.asr.network import Recogniser

NUM_TIMIT_PHONES = 39
SMALL = AsrConfig(
    ar=Pretraining(hidden_size=12, features=Features(num_mel_bins=10)),
    network=Network(pre_hidden_size=7, big_hidden_size=31, post_hidden_size=5),
)


def num_parameters(module: nn.Module) -> int:
    """Trainable or frozen, biases included."""
    return sum(parameter.numel() for parameter in module.parameters())


def unrolled_gru(gru: nn.GRU, inputs: Tensor) -> Tensor:
    """One direction after the other, each gate a matrix product; the equations of torch's documentation."""
    outputs = []
    for suffix in ("", "_reverse")[: 2 if gru.bidirectional else 1]:
        weights = [getattr(gru, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        steps = inputs.flip(1) if suffix else inputs
        state, states = inputs.new_zeros(len(inputs), gru.hidden_size), []
        for t in range(inputs.shape[1]):
            from_input = F.linear(steps[:, t], weights[0], weights[2]).chunk(3, -1)
            from_state = F.linear(state, weights[1], weights[3]).chunk(3, -1)
            reset, update = (torch.sigmoid(a + b) for a, b in zip(from_input[:2], from_state[:2], strict=True))
            state = (1 - update) * torch.tanh(from_input[2] + reset * from_state[2]) + update * state
            states.append(state)
        stacked = torch.stack(states, 1)
        outputs.append(stacked.flip(1) if suffix else stacked)
    return torch.cat(outputs, -1)


def macs_of(module: nn.Module, inputs: Tensor) -> int:
    """Counted by torch, with every GRU unrolled."""
    with FlopCounterMode(display=False) as counter:
        unrolled_gru(module, inputs) if isinstance(module, nn.GRU) else module(inputs)
    return counter.get_total_flops() // 2


def test_unrolled_gru_is_torchs_gru():
    gru = nn.GRU(5, 7, bidirectional=True, batch_first=True)
    inputs = torch.randn(3, 6, 5)
    torch.testing.assert_close(unrolled_gru(gru, inputs), gru(inputs)[0])


def test_macs_of_each_part_equal_those_that_torch_counts():
    parts, model, ar = cost.part_macs(SMALL, 9), Recogniser(SMALL, 9), AutoregressiveModel(SMALL.ar)
    frames = 4

    def rows(width: int) -> Tensor:
        return torch.randn(1, frames, width)

    encoder = sum(
        macs_of(block.gru, rows(n)) + macs_of(block.linear, rows(12))
        for block, n in zip(ar.blocks, (10, 12), strict=True)
    )
    assert parts.ar_encoder * frames == encoder
    assert parts.regressor * frames == macs_of(ar.regressor, rows(12))
    assert parts.pre * frames == macs_of(model.pre, rows(12))
    assert parts.small * frames == macs_of(model.small, rows(14))
    assert parts.big * frames == macs_of(model.big, rows(14))
    assert parts.post * frames == macs_of(model.post, rows(14)) + macs_of(model.output, rows(10))


def test_utterance_macs_by_hand():
    parts = cost.PartCosts(ar_encoder=1000, regressor=100, pre=10, small=3, big=7, post=20)
    surprisal, random = (SMALL.with_value("controller", kind) for kind in (Surprisal(), Random()))
    assert cost.utterance_macs(surprisal, parts, num_frames=5, num_big=2) == 6 * 1000 + 5 * 130 + 3 * 3 + 2 * 7
    assert cost.utterance_macs(random, parts, num_frames=5, num_big=2) == 6 * 1000 + 5 * 30 + 3 * 3 + 2 * 7


def test_parameter_counts_are_the_published_ones():
    paper = AsrConfig()
    assert num_parameters(AutoregressiveModel(paper.ar)) == 3_054_832
    model = Recogniser(paper, NUM_TIMIT_PHONES)
    assert num_parameters(model.pre) == 1_182_720
    assert num_parameters(model.small) == 262_656
    assert num_parameters(model.big) == 2_099_712
    assert num_parameters(model.post) + num_parameters(model.output) == 1_203_240
    assert num_parameters(Recogniser(paper, 41).post) + num_parameters(Recogniser(paper, 41).output) == 1_204_266


@pytest.mark.parametrize(("controller", "total"), [(AlwaysSmall(), 5_703_448), (AlwaysBig(), 7_540_504)])
def test_fixed_models_have_the_published_totals(controller, total):
    config = AsrConfig(controller=controller)
    assert num_parameters(AutoregressiveModel(config.ar)) + num_parameters(Recogniser(config, 39)) == total
    assert cost.paper_flops_per_frame(config, 39, routing_rate=0.3) == total


def test_paper_flops_of_random_half_are_the_published_ones():
    assert cost.paper_flops_per_frame(AsrConfig(controller=Random()), 39, routing_rate=0.5) == 6_621_976


def test_analytic_parameter_counts_equal_those_of_the_modules():
    parts, model, ar = cost.part_parameters(SMALL, 9), Recogniser(SMALL, 9), AutoregressiveModel(SMALL.ar)
    assert parts.ar_encoder + parts.regressor == num_parameters(ar)
    assert parts.pre + parts.small + parts.big + parts.post == num_parameters(model)
