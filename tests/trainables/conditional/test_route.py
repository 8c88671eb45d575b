"""Each network sees only its frames; the masked form, which runs both on all frames, is the oracle."""

import inspect
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from trainables.conditional.route import mix, route


def two_layers(num_inputs, hidden_size, num_outputs):
    return nn.Sequential(nn.Linear(num_inputs, hidden_size), nn.LeakyReLU(), nn.Linear(hidden_size, num_outputs))


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


@pytest.mark.parametrize("shape", [(7,), (7, 3), (7, 2, 5), (7, 2, 3, 3)])
def test_rows_may_have_any_shape(shape):
    """Where y = 2 x, or -x of the big network."""
    rows, chosen = torch.randn(shape), torch.rand(7) < 0.5
    signs = torch.where(chosen, -1.0, 2.0).reshape(-1, *[1] * (len(shape) - 1))
    networks = (lambda x: 2 * x, lambda x: -x)
    torch.testing.assert_close(route(rows, chosen, *networks), signs * rows)
    torch.testing.assert_close(mix(rows, chosen.float(), *networks), signs * rows)


@dataclass
class Looked:
    """No tensor: rows of a table, looked up where they are asked for."""

    table: Tensor
    index: Tensor

    def __getitem__(self, places):
        return Looked(self.table, self.index[places])


def test_rows_may_be_what_can_be_indexed():
    rows, chosen = Looked(torch.randn(5, 3), torch.tensor([4, 4, 0, 2])), torch.tensor([True, False, True, True])
    networks = (lambda looked: looked.table[looked.index], lambda looked: -looked.table[looked.index])
    signs = torch.where(chosen, -1.0, 1.0)[:, None]
    torch.testing.assert_close(route(rows, chosen, *networks), signs * rows.table[rows.index])


@pytest.mark.parametrize("chosen", [[True, False, True, False], [True] * 4, [False] * 4])
def test_gradients_are_those_of_finite_differences(chosen):
    small, big = nn.Linear(3, 2).double(), nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    rows, used = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 3), (4,)))
    assert torch.autograd.gradcheck(lambda rows: route(rows, torch.tensor(chosen), small, big), rows)
    assert torch.autograd.gradcheck(lambda rows, used: mix(rows, used, small, big), (rows, used))


def test_one_network_alone_takes_all_rows_and_none_is_refused():
    rows, chosen = torch.randn(4, 3), torch.tensor([True, False, False, True])
    assert torch.equal(route(rows, chosen, None, torch.neg), -rows)
    assert torch.equal(route(rows, chosen, torch.neg, None), -rows)
    with pytest.raises(ValueError, match="`small` or `big` must be a network, but both are None"):
        route(rows, chosen, None, None)


def test_a_gates_gradient_repeats_to_the_last_digit():
    """Beside a penalty of the gate, against the formula as it is written: sums of three depend on their order."""
    small, big, rows = nn.Linear(8, 8), two_layers(8, 24, 8), torch.randn(500, 8)
    found = []
    for mixed in (mix, lambda rows, u, small, big: u[:, None] * big(rows) + (1 - u[:, None]) * small(rows)):
        used = (torch.arange(500) % 3 == 0).float().requires_grad_()
        (mixed(rows, used, small, big).square().sum() + 0.1 * (used - 0.3).square().sum()).backward()
        found.append(used.grad)
    assert torch.equal(*found)


def test_a_network_without_layers_is_one_too():
    """An empty Sequential is the identity, and false."""
    rows, chosen = torch.randn(4, 3), torch.tensor([True, False, True, False])
    assert torch.equal(route(rows, chosen, nn.Sequential(), None), rows)
    assert torch.equal(route(rows, chosen, None, nn.Sequential()), rows)


@pytest.mark.parametrize(
    "choice",
    [
        torch.ones(4, 6, dtype=torch.bool),
        torch.ones(10, dtype=torch.bool),
        torch.ones(24, dtype=torch.uint8),
        torch.ones(24, dtype=torch.int64),
    ],
    ids=["of sequences", "shorter", "bytes", "numbers"],
)
def test_a_choice_that_is_not_one_truth_value_a_row_is_refused(choice: Tensor):
    with pytest.raises(ValueError, match=r"`choose_big` must have one truth value for each of 24 rows"):
        inspect.unwrap(route)(torch.randn(24, 8), choice, nn.Linear(8, 8), nn.Linear(8, 8))


def test_a_mixture_takes_one_number_a_row_in_any_shape_and_no_fewer():
    rows, small, big, used = torch.randn(24, 8), nn.Linear(8, 8), nn.Linear(8, 8), torch.rand(4, 6)
    unchecked = inspect.unwrap(mix)  # of annotations
    assert torch.equal(unchecked(rows, used, small, big), mix(rows, used.flatten(), small, big))
    with pytest.raises(ValueError, match=r"`used_big` must have one number for each of 24 rows, but has shape \(1,\)"):
        unchecked(rows, torch.ones(1), small, big)
