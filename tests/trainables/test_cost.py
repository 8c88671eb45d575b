"""Analytic counts against torch's own counter on cells that are unrolled into matrix products, and published counts."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from trainables.asr import cost, macs
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Budget,
    CausalConvolution,
    Convolutional,
    Gru,
    Learned,
    MaskedSelfAttention,
    Pretraining,
    Random,
    Recurrent,
    Surprisal,
)
from trainables.asr.data.config import Features
from trainables.asr.network import RoutedNetwork
from trainables.cost import causal_attention_macs, masked_attention_macs
from trainables.errors import InputError

SMALL = AsrConfig(
    ar=Pretraining(hidden_size=12, features=Features(num_mel_bins=10)),
    network=Recurrent(pre_hidden_size=7, big_hidden_size=31, post_hidden_size=5),
)
CONVOLUTIONAL = [Convolutional(kind=f"model{n}", width=6, kernel_frames=3, big_hidden_size=9) for n in (1, 2, 3)]


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


def rows(width: int) -> Tensor:
    return torch.randn(1, 4, width)


def test_macs_of_each_part_equal_those_that_torch_counts():
    learned = SMALL.with_value("controller", Learned(gate_input="pre_net", hidden_size=3))
    parts, model, ar = macs.part_macs(learned, 9), RoutedNetwork(learned, 9), AutoregressiveModel(SMALL.ar)
    assert parts.regressor * 4 == macs_of(ar.regressor, rows(12))
    assert parts.pre * 4 == macs_of(model.pre.gru, rows(12))
    assert parts.gate * 4 == macs_of(model.gate, rows(14))
    assert parts.small * 4 == macs_of(model.small, rows(14))
    assert parts.big * 4 == macs_of(model.big, rows(14))
    assert parts.post * 4 == macs_of(model.post.gru, rows(14)) + macs_of(model.post.output, rows(10))
    assert macs.part_macs(SMALL, 9).gate == 0


@pytest.mark.parametrize("network", CONVOLUTIONAL, ids=lambda network: network.kind)
@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
def test_macs_of_convolutional_networks_equal_those_of_whole_runs_of_them(network, inputs):
    """Small-only and big-only recognisers from end to end."""
    config = SMALL.with_value("network", network).with_value("inputs", inputs)
    width = 12 if inputs == "ar_features" else 10
    for controller in (AlwaysSmall(), AlwaysBig()):
        only = config.with_value("controller", controller)
        parts, model = macs.part_macs(only, 9), RoutedNetwork(only, 9).eval()
        routed = parts.small if isinstance(controller, AlwaysSmall) else parts.big
        with FlopCounterMode(display=False) as counter:
            model(torch.randn(1, 6, width), torch.tensor([6]), torch.ones(1, 6, dtype=torch.bool))
        assert (parts.pre + routed + parts.post) * 6 == counter.get_total_flops() // 2


@pytest.mark.parametrize(
    "encoder",
    [CausalConvolution(kernel_frames=3), MaskedSelfAttention(num_heads=2, context_frames=4)],
    ids=lambda encoder: encoder.kind,
)
@pytest.mark.parametrize("num_frames", [1, 3, 9])
def test_encoder_macs_equal_those_of_a_stream_which_computes_nothing_in_vain(encoder, num_frames):
    config = SMALL.ar.with_value("encoder", encoder)
    ar = AutoregressiveModel(config).eval()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        stream = ar.begin(1)
        for _ in range(num_frames):
            stream = ar.step(torch.randn(1, 10), stream)
    assert macs.encoder_macs(config, num_frames + 1) == counter.get_total_flops() // 2


def test_gru_encoder_macs_equal_those_of_its_unrolled_layers():
    ar = AutoregressiveModel(SMALL.ar)
    per_frame = sum(
        macs_of(block.mixer.gru, rows(width)) + macs_of(block.linear, rows(12))
        for block, width in zip(ar.blocks, (10, 12), strict=True)
    )
    assert isinstance(SMALL.ar.encoder, Gru)
    assert macs.encoder_macs(SMALL.ar, 4) == per_frame


def test_utterance_macs_by_hand():
    parts = macs.PartCosts(regressor=100, pre=10, gate=5, small=3, big=7, post=20)
    encoder = 6 * (3 * (10 * 12 + 12 * 12) + 3 * (12 * 12 + 12 * 12) + 2 * 12 * 12)
    routed = 3 * 3 + 2 * 7

    def counted(controller, config=SMALL):
        return cost.utterance_macs(config, controller, parts, num_frames=5, num_big=2)

    assert counted(Surprisal()) == encoder + 5 * 130 + routed
    assert counted(Random()) == encoder + 5 * 30 + routed
    assert counted(Learned()) == encoder + 5 * 35 + routed
    frames = SMALL.with_value("inputs", "frames")
    assert counted(Random(), frames) == 5 * 30 + routed
    assert counted(Surprisal(), frames) == encoder * 5 // 6 + 5 * 130 + routed


def test_parameter_counts_are_the_published_ones():
    paper = AsrConfig(controller=Random())
    assert num_parameters(AutoregressiveModel(paper.ar)) == 3_054_832
    model = RoutedNetwork(paper, 39)
    assert num_parameters(model.pre) == 1_182_720
    assert num_parameters(RoutedNetwork(paper.with_value("inputs", "frames"), 39).pre) == 519_168
    assert num_parameters(model.small) == 262_656
    assert num_parameters(model.big) == 2_099_712
    assert num_parameters(model.post) == 1_203_240
    assert num_parameters(RoutedNetwork(paper, 41).post) == 1_204_266
    gate = RoutedNetwork(paper.with_value("controller", Learned()), 39).gate
    assert num_parameters(gate) == 41_121


def network(kind: str) -> Recurrent | Convolutional:
    return Recurrent() if kind == "recurrent" else Convolutional(kind=kind)


@pytest.mark.parametrize(
    ("kind", "small", "big"),
    [
        ("recurrent", 5_703_448, 7_540_504),
        ("model1", 5_959_448, 7_071_512),
        ("model2", 5_959_448, 7_071_512),
        ("model3", 3_280_152, 5_959_448),
    ],
)
def test_fixed_models_have_the_published_totals(kind, small, big):
    for controller, total in ((AlwaysSmall(), small), (AlwaysBig(), big)):
        config = AsrConfig(network=network(kind), controller=controller)
        assert num_parameters(AutoregressiveModel(config.ar)) + num_parameters(RoutedNetwork(config, 39)) == total
        assert cost.paper_flops_per_frame(config, controller, 39, routing_rate=0.3) == total


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (AsrConfig(controller=Random()), 6_621_976),
        (AsrConfig(controller=Learned()), 6_622_057),
        (AsrConfig(controller=Random(), inputs="frames"), 2_903_592),
    ],
)
def test_paper_flops_at_one_half_are_the_counts_of_the_specification(config, total):
    assert cost.paper_flops_per_frame(config, config.controller, 39, routing_rate=0.5) == total


def test_without_ar_features_only_a_surprisal_test_runs_the_autoregressive_model():
    config = AsrConfig(controller=Surprisal(), inputs="frames")
    tested_at_random, tested_by_surprisal = (
        cost.paper_flops_per_frame(config, controller, 39, 0.5) for controller in (Random(), Surprisal())
    )
    assert tested_by_surprisal - tested_at_random == 3_054_832


def test_part_parameters_of_a_small_learned_model_by_hand():
    """Weights and biases of each layer, counted on paper."""
    parts = cost.part_parameters(SMALL.with_value("controller", Learned(hidden_size=3)), 9)
    gru = lambda inputs, hidden: 3 * (inputs * hidden + hidden * hidden + 2 * hidden)  # noqa: E731
    assert parts["ar_encoder"] == 2 * 10 + gru(10, 12) + gru(12, 12) + 2 * (12 * 12 + 12)
    assert parts["regressor"] == 12 * 10 + 10
    assert (parts["pre"], parts["post"]) == (2 * gru(12, 7), 2 * gru(14, 5) + 10 * 10 + 10)
    assert (parts["small"], parts["big"]) == (14 * 14 + 14, 14 * 31 + 31 + 31 * 14 + 14)
    assert parts["gate"] == 12 * 3 + 3 + 3 + 1


def test_a_budget_is_met_by_its_mean_on_average():
    """The expected cost at the mean that a budget asks for, summed frame by frame."""
    lengths = [3, 7, 12]
    parts = macs.part_macs(SMALL, 9)
    middle = sum(cost.utterance_macs(SMALL, Surprisal(), parts, n, 0) for n in lengths) / 22 + parts.big * 0.3
    mu = cost.budget_mu(SMALL, Budget(macs_per_frame=middle), 9, lengths)
    expected = sum(
        macs.encoder_macs(SMALL.ar, n + 1)
        + n * (parts.regressor + parts.pre + parts.post + mu * parts.big + (1 - mu) * parts.small)
        for n in lengths
    )
    assert expected / 22 == pytest.approx(middle)
    with pytest.raises(InputError, match=r"`controller.macs_per_frame` must be between \d+ and \d+"):
        cost.budget_mu(SMALL, Budget(macs_per_frame=10.0), 9, lengths)
    with pytest.raises(InputError, match="big network that costs more than the small one, but they cost 196 and 196 "):
        cost.budget_mu(SMALL.with_value("network.big_hidden_size", 7), Budget(macs_per_frame=middle), 9, lengths)


@pytest.mark.parametrize(("num_frames", "context"), [(1, 4), (5, 8), (9, 4), (16, 1)])
def test_seen_and_masked_pairs_of_an_attention_are_its_full_square(num_frames, context):
    seen = sum(1 for t in range(num_frames) for s in range(num_frames) if 0 <= t - s < context)
    assert causal_attention_macs(3, 8, num_frames, context) == num_frames * (3 * 3 * 8 + 8 * 8) + 2 * 8 * seen
    assert masked_attention_macs(8, num_frames, context) == 2 * 8 * (num_frames**2 - seen)
