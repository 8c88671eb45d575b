"""Each network sees only its frames; the masked form, which runs both on all frames, is the oracle."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from trainables import rng
from trainables.asr.config import AlwaysBig, AlwaysSmall, AsrConfig, Features, Network, Pretraining, Random
from trainables.asr.network import Recogniser, big_network, route, small_network

CONFIG = AsrConfig(
    ar=Pretraining(hidden_size=6, features=Features(num_mel_bins=8)),
    network=Network(pre_hidden_size=4, big_hidden_size=16, post_hidden_size=4, dropout=0.0),
    controller=Random(),
)


def masked(frames, choose_big, small, big):
    mask = choose_big[:, None].to(frames.dtype)
    return mask * big(frames) + (1 - mask) * small(frames)


def run(router, frames, choose_big, small, big):
    """Outputs, and gradients of a fixed weighting of them, for the input and all weights."""
    inputs = frames.clone().requires_grad_()
    outputs = router(inputs, choose_big, small, big)
    weights = torch.linspace(-1, 1, outputs.numel()).reshape(outputs.shape)
    leaves = [inputs, *small.parameters(), *big.parameters()]
    return [outputs, *torch.autograd.grad((outputs * weights).sum(), leaves)]


@settings(max_examples=40, deadline=None)
@given(num_frames=st.integers(1, 60), p_big=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), seed=st.integers(0, 2**20))
def test_routed_and_masked_execution_agree_in_outputs_and_gradients(num_frames: int, p_big: float, seed: int):
    torch.manual_seed(seed)
    small, big, frames = small_network(8), big_network(8, 24), torch.randn(num_frames, 8)
    choose_big = torch.rand(num_frames) < p_big
    both = zip(run(route, frames, choose_big, small, big), run(masked, frames, choose_big, small, big), strict=True)
    for routed_value, masked_value in both:
        torch.testing.assert_close(
            routed_value, masked_value, rtol=1e-5, atol=1e-5 * float(masked_value.detach().abs().max())
        )


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
    small, big = small_network(4), big_network(4, 8)
    route(torch.randn(5, 4), torch.zeros(5, dtype=torch.bool), small, big).sum().backward()
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in big.parameters())


def test_networks_that_are_never_used_do_not_exist():
    assert Recogniser(CONFIG.with_value("controller", AlwaysSmall()), 5).big is None
    assert Recogniser(CONFIG.with_value("controller", AlwaysBig()), 5).small is None


def test_padding_and_company_change_no_output():
    torch.manual_seed(0)
    model = Recogniser(CONFIG, 5).double().eval()
    lengths = torch.tensor([9, 4, 7])
    features = torch.randn(3, 9, 6, dtype=torch.float64)
    choose_big = torch.from_numpy(rng.keyed_uniform(27, 1)).reshape(3, 9) < 0.5
    together = model(features, lengths, choose_big)
    for row, length in enumerate(lengths.tolist()):
        alone = model(features[row : row + 1, :length], lengths[row : row + 1], choose_big[row : row + 1, :length])
        torch.testing.assert_close(together[row, :length], alone[0], rtol=1e-12, atol=1e-12)
        assert torch.allclose(together[row, :length].exp().sum(-1), torch.ones(length, dtype=torch.float64))


def test_leaky_relu_has_the_papers_slope():
    assert [m.negative_slope for m in big_network(2, 3) if isinstance(m, nn.LeakyReLU)] == [0.125, 0.125]
