"""Every kind of recogniser: what padding, routing and the gate may and may not change."""

import pytest
import torch
from torch import nn

from trainables import rng
from trainables.asr.config import (
    AlwaysBig,
    AlwaysSmall,
    AsrConfig,
    Convolutional,
    Learned,
    Pretraining,
    Random,
    Recurrent,
)
from trainables.asr.data.config import Features
from trainables.asr.network import RoutedNetwork, make_parts
from trainables.conditional.route import mix

CONFIG = AsrConfig(
    ar=Pretraining(hidden_size=6, features=Features(num_mel_bins=8)),
    network=Recurrent(pre_hidden_size=4, big_hidden_size=16, post_hidden_size=4, dropout=0.0),
    controller=Random(),
)
NETWORKS = [
    CONFIG.network,
    *(Convolutional(kind=f"model{n}", width=5, kernel_frames=3, big_hidden_size=7) for n in (1, 2, 3)),
    *(Convolutional(kind=f"model{n}", width=5, kernel_frames=1, big_hidden_size=7) for n in (1, 3)),
]
KINDS = pytest.mark.parametrize(
    "network", NETWORKS, ids=lambda network: f"{network.kind}-{getattr(network, 'kernel_frames', '')}"
)
LENGTHS = torch.tensor([9, 4, 7])


def features() -> torch.Tensor:
    return torch.randn(3, 9, 6, dtype=torch.float64)


def choices() -> torch.Tensor:
    return torch.from_numpy(rng.keyed_uniform(27, 1)).reshape(3, 9) < 0.5


@KINDS
def test_padding_and_company_change_no_output(network):
    model = RoutedNetwork(CONFIG.with_value("network", network), 5).double().eval()
    inputs, chosen = features(), choices()
    together, used = model(inputs, LENGTHS, chosen)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, _ = model(inputs[row : row + 1, :length], LENGTHS[row : row + 1], chosen[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0], rtol=1e-12, atol=1e-12)
        assert torch.allclose(together[row, :length].exp().sum(-1), torch.ones(length, dtype=torch.float64))
        assert torch.equal(used[row, :length] > 0, chosen[row, :length])
        assert not together[row, length:].any() and not used[row, length:].any()


@KINDS
def test_each_kind_routes_as_its_masked_form(network, monkeypatch):
    """In outputs and in the gradients of all weights."""
    model = RoutedNetwork(CONFIG.with_value("network", network), 5).double().eval()
    inputs, chosen, found = features(), choices(), []
    for _ in range(2):
        model.zero_grad()
        log_probs, _ = model(inputs, LENGTHS, chosen)
        log_probs[..., 2].sum().backward()
        found.append([log_probs, *(parameter.grad.clone() for parameter in model.parameters())])
        masked = lambda frames, choice, small, big: mix(frames, choice.double(), small, big)  # noqa: E731
        monkeypatch.setattr("trainables.asr.network.route", masked)
    for routed, mixed in zip(*found, strict=True):
        torch.testing.assert_close(routed, mixed, rtol=1e-9, atol=1e-12)


@KINDS
@pytest.mark.parametrize("gate_input", ["features", "pre_net"])
def test_a_gate_chooses_by_the_sign_of_its_logit_and_is_trained_through_it(network, gate_input):
    controller = Learned(gate_input=gate_input, hidden_size=3)
    model = RoutedNetwork(CONFIG.with_value("network", network).with_value("controller", controller), 5).double()
    inputs = features()
    log_probs, used = model(inputs, LENGTHS, None)
    assert set(used.unique().tolist()) <= {0.0, 1.0}
    log_probs[..., 1].sum().backward()
    assert all(parameter.grad is not None for parameter in model.gate.parameters())
    assert model.gate[0].weight.grad.abs().sum() > 0
    if gate_input == "features":
        logits = model.gate(inputs)[..., 0]
        valid = torch.arange(9) < LENGTHS[:, None]
        assert torch.equal(used[valid] > 0, logits[valid] > 0)


@torch.no_grad()
def test_a_trained_gate_routes_in_testing_as_a_given_choice_does():
    model = RoutedNetwork(CONFIG.with_value("controller", Learned(hidden_size=3)), 5).double().eval()
    inputs = features()
    log_probs, used = model(inputs, LENGTHS, None)
    given, same = model(inputs, LENGTHS, used > 0)
    torch.testing.assert_close(log_probs, given)
    assert torch.equal(used, same)


def test_networks_that_are_never_used_do_not_exist():
    assert RoutedNetwork(CONFIG.with_value("controller", AlwaysSmall()), 5).big is None
    assert RoutedNetwork(CONFIG.with_value("controller", AlwaysBig()), 5).small is None
    assert RoutedNetwork(CONFIG, 5).gate is None


def test_leaky_relus_have_the_papers_slope():
    slopes = [
        module.negative_slope
        for network in NETWORKS
        for part in vars(make_parts(network, 4, 3)).values()
        for module in (part.modules() if isinstance(part, nn.Module) else ())
        if isinstance(module, nn.LeakyReLU)
    ]
    assert slopes == [0.125] * (3 + 2 + 2 + 1 + 2 + 1)
