"""The gate's gradient by definition, the penalties and theirs by hand."""

import pytest
import torch

from trainables.conditional.route import mix
from trainables.conditional.straight_through import squared_deviation, squared_excess, threshold


def test_threshold_passes_its_gradient_straight_through():
    """By definition d threshold(z) / dz := 1, whatever the sign of z."""
    logits = torch.tensor([-2.0, -0.1, 0.0, 0.1, 3.0], requires_grad=True)
    weights = torch.tensor([1.0, -2.0, 3.0, 5.0, -7.0])
    chosen = threshold(logits)
    (chosen * weights).sum().backward()
    assert chosen.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert torch.equal(logits.grad, weights)


def test_penalties_by_hand_count_no_padding():
    """Usages of 3/4 and 1/2, of sequences of 4 and 2 frames; padding is filled with nines."""
    used = torch.tensor([[1.0, 1.0, 0.0, 1.0], [0.0, 1.0, 9.0, 9.0]], requires_grad=True)
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    excess, deviation = squared_excess(used, valid, target=0.4), squared_deviation(used, valid)
    assert excess.item() == pytest.approx((3 / 4 - 0.4) ** 2 + (1 / 2 - 0.4) ** 2)
    assert deviation.item() == pytest.approx(6 * 0.25)
    (of_excess,) = torch.autograd.grad(excess, used, retain_graph=True)
    torch.testing.assert_close(of_excess, torch.tensor([[2 * 0.35 / 4] * 4, [2 * 0.1 / 2] * 2 + [0.0] * 2]))
    (of_deviation,) = torch.autograd.grad(deviation, used)
    torch.testing.assert_close(of_deviation, torch.tensor([[1.0, 1, -1, 1], [-1, 1, 0, 0]]))


def test_only_the_squared_excess_knows_the_usage():
    """At 90 % and at 10 % usage: the deviation's gradient of a frame is the same, that of the excess changes sign."""
    gradients = {}
    for usage in (9, 1):
        used = torch.tensor([[1.0] * usage + [0.0] * (10 - usage)], requires_grad=True)
        valid = torch.ones(1, 10)
        for name, penalty in (
            ("deviation", squared_deviation(used, valid)),
            ("excess", squared_excess(used, valid, 0.5)),
        ):
            gradients[name, usage] = float(torch.autograd.grad(penalty, used)[0][0, 0])
    assert gradients["deviation", 9] == gradients["deviation", 1] > 0
    assert gradients["excess", 9] == pytest.approx(-gradients["excess", 1])
    assert gradients["excess", 9] > 0


def test_penalties_gradients_are_those_of_finite_differences():
    used = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    valid = torch.arange(5) < torch.tensor([[5], [2], [4]])
    assert torch.autograd.gradcheck(lambda one: squared_excess(one, valid, 0.3), used)
    assert torch.autograd.gradcheck(lambda one: squared_deviation(one, valid), used)


def test_a_trained_gate_learns_what_the_difference_of_the_networks_says():
    """dL/dlogit_n = dL/dy_n . (big(x_n) - small(x_n)), the surrogate's chain rule on paper."""
    rows, logits = torch.randn(5, 3), torch.tensor([-1.0, 2.0, 0.5, -0.3, 1.0], requires_grad=True)
    mix(rows, threshold(logits), lambda x: 2 * x, lambda x: 5 * x).square().sum().backward()
    used = (logits > 0).float().detach()
    outputs = (2 + 3 * used)[:, None] * rows
    torch.testing.assert_close(logits.grad, (2 * outputs * 3 * rows).sum(1))
