"""The linear map with a deferred weight gradient beside torch's own, however it is used."""

import copy

import pytest
import torch
from torch import nn

from trainables.conditional.deferred_weight_gradient import defer_weight_gradient


def both(seed: int = 0) -> tuple[nn.Linear, nn.Linear, torch.Tensor]:
    torch.manual_seed(seed)
    linear = nn.Linear(3, 4).double()
    return linear, copy.deepcopy(linear), torch.randn(5, 3, dtype=torch.float64)


def recur(use, inputs: torch.Tensor, num_rows: int) -> torch.Tensor:
    """Three uses, one on what came out of another, one on fewer rows."""
    first = use(inputs)
    return first.square().sum() + use(torch.tanh(first[:, :3])).sum() + use(inputs[:num_rows]).square().sum()


@pytest.mark.parametrize("num_rows", [0, 2])
def test_values_and_gradients_are_those_of_torchs_linear_map(num_rows):
    ours, torchs, inputs = both()
    found, expected = recur(defer_weight_gradient(ours), inputs, num_rows), recur(torchs, inputs, num_rows)
    torch.testing.assert_close(found, expected)
    found.backward(), expected.backward()
    torch.testing.assert_close([p.grad for p in ours.parameters()], [p.grad for p in torchs.parameters()])


def test_a_second_backward_pass_adds_the_same_again():
    ours, torchs, inputs = both()
    for use in (defer_weight_gradient(ours), torchs):
        loss = recur(use, inputs, 2)
        loss.backward(retain_graph=True)
        loss.backward()
    torch.testing.assert_close(ours.weight.grad, torchs.weight.grad)


def test_two_results_may_be_differentiated_one_after_the_other():
    ours, torchs, inputs = both()
    for use in (defer_weight_gradient(ours), torchs):
        outputs = [use(inputs).sum(), use(inputs).square().sum()]
        outputs[0].backward()
        outputs[1].backward()
    torch.testing.assert_close(ours.weight.grad, torchs.weight.grad)


def test_a_frozen_map_passes_gradients_on_and_keeps_nothing():
    ours, torchs, inputs = both()
    inputs.requires_grad_()
    gradients = []
    for linear in (ours, torchs):
        linear.requires_grad_(False)
        use = defer_weight_gradient(linear) if linear is ours else linear
        gradients.append(torch.autograd.grad(recur(use, inputs, 2), inputs)[0])
    torch.testing.assert_close(*gradients)


def test_without_gradients_it_is_the_map():
    ours, torchs, inputs = both()
    with torch.no_grad():
        torch.testing.assert_close(defer_weight_gradient(ours)(inputs), torchs(inputs))
