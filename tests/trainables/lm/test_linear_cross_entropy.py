"""-log p from top states, against torch's own two functions."""

import pytest
import torch
from torch.nn import functional as F

from trainables.lm.linear_cross_entropy import linear_cross_entropy
from trainables.lm.streams import NO_TARGET


@pytest.fixture
def tensors() -> list[torch.Tensor]:
    """States of five steps of three streams, weight and bias of eleven words, in double precision."""
    shapes = ((5, 3, 4), (11, 4), (11,))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.fixture
def targets() -> torch.Tensor:
    found = torch.randint(11, (5, 3))
    found[1, 2] = found[4] = NO_TARGET
    return found


def test_it_is_torchs_cross_entropy_of_torchs_linear_map(tensors, targets):
    """The same value to the bit, each gradient to rounding, under any weights of the losses."""
    ours = linear_cross_entropy(*tensors, targets)
    logits = F.linear(*tensors).flatten(0, 1)
    theirs = F.cross_entropy(logits, targets.flatten(), ignore_index=NO_TARGET, reduction="none").view(5, 3)
    assert torch.equal(ours, theirs) and (ours[targets == NO_TARGET] == 0).all() and (ours > 0).sum() == 11
    weights = torch.rand(5, 3, dtype=torch.float64)
    gradients = [torch.autograd.grad(losses, tensors, weights) for losses in (ours, theirs)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_a_weight_that_is_no_number_at_a_token_without_target_does_no_harm(tensors, targets):
    weights = torch.where(targets == NO_TARGET, torch.nan, 1.0)
    gradients = torch.autograd.grad(linear_cross_entropy(*tensors, targets), tensors, weights)
    assert all(one.isfinite().all() for one in gradients)


def test_a_second_backward_pass_is_refused(tensors, targets):
    losses = linear_cross_entropy(*tensors, targets).sum()
    losses.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        losses.backward()


def test_without_gradients_the_value_is_the_same(tensors, targets):
    with torch.no_grad():
        assert torch.equal(linear_cross_entropy(*tensors, targets), linear_cross_entropy(*tensors, targets))


def test_lower_precision_is_left_to_torch(tensors, targets):
    with torch.autocast("cpu", torch.bfloat16):
        losses = linear_cross_entropy(*(one.float() for one in tensors), targets)
    exact = linear_cross_entropy(*tensors, targets)
    torch.testing.assert_close(losses.double(), exact, rtol=0.05, atol=0.05)
    assert not torch.equal(losses.double(), exact)
