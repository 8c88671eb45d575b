"""Exit by confidence against a scalar loop and a batch that no row leaves."""

import math

import pytest
import torch
from torch import nn

from trainables.conditional.early_exit import difference, entropy, exit_early, exit_weights, exits_loss

MOST = 6


def scalar_exit(rows: list[list[float]], is_sure) -> int:
    """The first of the exits, each a list of logits, that is sure, counted from 1; else the last."""
    for n, logits in enumerate(rows, start=1):
        total = sum(math.exp(logit) for logit in logits)
        if is_sure([math.exp(logit) / total for logit in logits]):
            return n
    return len(rows)


def low_entropy(probs: list[float]) -> bool:
    return -sum(p * math.log(p) for p in probs if p > 0) < 0.6


def far_ahead(probs: list[float]) -> bool:
    first, second = sorted(probs, reverse=True)[:2]
    return first - second > 0.5


RULES = {
    "entropy": (low_entropy, lambda log_probs: entropy(log_probs) < 0.6),
    "difference": (far_ahead, lambda log_probs: difference(log_probs) > 0.5),
}


def setting():
    """Layers with a readout, all exits of all rows, and how many rows each update saw."""
    torch.manual_seed(1)
    layers, readout = nn.ModuleList(nn.Linear(4, 4) for _ in range(MOST)).double(), nn.Linear(4, 3).double()
    nn.init.normal_(readout.weight, std=1.0)
    inputs, seen = torch.randn(200, 4, dtype=torch.float64) * 2, []

    def update(state, rows, n):
        seen.append(len(rows))
        return (torch.tanh(layers[n - 1](state[0])) * 2,)

    state, exits = (inputs,), []
    for n in range(1, MOST + 1):
        state = update(state, torch.arange(200), n)
        exits.append(readout(state[0]))
    seen.clear()
    return update, inputs, readout, torch.stack(exits, 1).detach(), seen


@pytest.mark.parametrize("name", RULES)
def test_rows_exit_where_a_scalar_loop_over_all_exits_does_and_leave(name):
    update, inputs, readout, exits, seen = setting()
    scalar_rule, rule = RULES[name]
    done = exit_early(update, (inputs,), lambda state: readout(state[0]).log_softmax(-1), rule, MOST)
    expected = [scalar_exit(rows, scalar_rule) for rows in exits.tolist()]
    assert done.num_updates.tolist() == expected and len(set(expected)) > 3
    at = exits[torch.arange(200), done.num_updates - 1].log_softmax(-1)
    torch.testing.assert_close(done.output.detach(), at)
    torch.testing.assert_close(readout(done.state[0]).log_softmax(-1), done.output)
    assert sum(seen) == sum(expected) < 200 * MOST


def test_the_decision_uses_nothing_behind_its_exit():
    update, inputs, readout, *_ = setting()
    rule = RULES["difference"][1]

    def exits(later):
        """With other updates behind the third."""
        return exit_early(
            lambda state, rows, n: update(state, rows, n) if n <= 3 else (state[0] * later,),
            (inputs,),
            lambda state: readout(state[0]).log_softmax(-1),
            rule,
            MOST,
        )

    one, other = exits(5.0), exits(-3.0)
    is_early = one.num_updates <= 3
    assert is_early.any() and torch.equal(is_early, other.num_updates <= 3)
    assert torch.equal(one.num_updates[is_early], other.num_updates[is_early])
    assert torch.equal(one.output[is_early], other.output[is_early])


def test_measures_of_known_distributions():
    log_probs = torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64).log()
    assert entropy(log_probs).tolist() == pytest.approx([1.5 * math.log(2), 0.0, math.log(3)], abs=1e-12)
    assert difference(log_probs).tolist() == pytest.approx([0.25, 1.0, 0.0], abs=1e-12)


def test_the_loss_of_exit_i_weighs_i():
    losses = torch.tensor([[6.0, 3.0, 2.0]], dtype=torch.float64, requires_grad=True)
    found = exits_loss(losses)
    assert found.item() == pytest.approx((6 + 2 * 3 + 3 * 2) / 6)
    assert exit_weights(3, losses).tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert torch.autograd.gradcheck(exits_loss, losses)
