"""Each network sees only its frames; the masked form, which runs both on all frames, is the oracle."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from trainables.asr.network import WindowLinear, two_layers
from trainables.asr.routing import mix, route, windows


def run(router, frames, choice, small, big):
    """Outputs, and gradients of a fixed weighting of them, for the input and all weights."""
    inputs = frames.clone().requires_grad_()
    outputs = router(inputs, choice, small, big)
    weights = torch.linspace(-1, 1, outputs.numel()).reshape(outputs.shape)
    leaves = [inputs, *small.parameters(), *big.parameters()]
    return [outputs, *torch.autograd.grad((outputs * weights).sum(), leaves)]


@settings(max_examples=40, deadline=None)
@given(num_frames=st.integers(1, 60), p_big=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=st.integers(0, 2**20))
def test_routed_and_masked_execution_agree_in_outputs_and_gradients(num_frames: int, p_big: float, seed: int):
    torch.manual_seed(seed)
    small, big, frames = nn.Linear(8, 8), two_layers(8, 24, 8), torch.randn(num_frames, 8)
    chosen = torch.rand(num_frames) < p_big
    both = zip(run(route, frames, chosen, small, big), run(mix, frames, chosen.float(), small, big), strict=True)
    for routed, masked in both:
        torch.testing.assert_close(routed, masked, rtol=1e-5, atol=1e-5 * float(masked.detach().abs().max()))


def test_each_network_gets_its_own_frames_and_no_other():
    seen = {}

    def spy(name):
        def layer(frames):
            seen[name] = frames.clone()
            return frames

        return layer

    frames, choose_big = torch.arange(12.0).reshape(6, 2), torch.tensor([True, False, False, True, True, False])
    assert torch.equal(route(frames, choose_big, spy("small"), spy("big")), frames)
    assert torch.equal(seen["big"], frames[[0, 3, 4]])
    assert torch.equal(seen["small"], frames[[1, 2, 5]])


def test_a_network_without_frames_gets_zero_gradients_not_none():
    small, big = nn.Linear(4, 4), two_layers(4, 8, 4)
    route(torch.randn(5, 4), torch.zeros(5, dtype=torch.bool), small, big).sum().backward()
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in big.parameters())


def test_a_mixed_frames_choice_has_the_difference_of_the_networks_as_gradient():
    small, big, frames = nn.Linear(4, 3), two_layers(4, 8, 3), torch.randn(5, 4)
    used = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0], requires_grad=True)
    mix(frames, used, small, big).sum().backward()
    torch.testing.assert_close(used.grad, (big(frames) - small(frames)).sum(1).detach())


@pytest.mark.parametrize("kernel_frames", [1, 3, 11])
def test_windows_of_packed_frames_are_what_a_padded_convolution_sees(kernel_frames: int):
    lengths = torch.tensor([5, 9, 1, 7])
    padded = torch.randn(4, 9, 6) * (torch.arange(9) < lengths[:, None])[..., None]
    packed = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    layer = WindowLinear(6, 4, kernel_frames, dropout=0.0)
    convolution = nn.Conv1d(6, 4, kernel_frames, padding=kernel_frames // 2)
    with torch.no_grad():
        convolution.weight.copy_(layer.linear.weight.unflatten(1, (kernel_frames, 6)).transpose(1, 2))
        convolution.bias.copy_(layer.linear.bias)
    outputs = pad_packed_sequence(packed._replace(data=layer(windows(packed, kernel_frames))), batch_first=True)[0]
    expected = convolution(padded.transpose(1, 2)).transpose(1, 2)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(outputs[row, :length], expected[row, :length], rtol=1e-5, atol=1e-6)
