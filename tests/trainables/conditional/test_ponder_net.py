"""PonderNet against a scalar loop, closed forms, and a batch in which no row leaves."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainables.conditional.ponder_net import (
    divergence,
    drawn_update,
    expected,
    halt,
    log_geometric,
    log_halting_probabilities,
    ponder_loss,
)

LOGITS = st.lists(st.floats(-6, 6), min_size=1, max_size=9)


def scalar_probabilities(logits: list[float]) -> list[float]:
    """p_n = lambda_n prod_{j<n} (1 - lambda_j), and what is left at the last."""
    left, found = 1.0, []
    for logit in logits[:-1]:
        chance = 1 / (1 + math.exp(-logit))
        found.append(left * chance)
        left *= 1 - chance
    return [*found, left]


def scalar_loss(losses: list[float], logits: list[float], lambda_p: float, beta: float) -> float:
    """sum p L + beta sum p log(p / prior)."""
    p = scalar_probabilities(logits)
    prior = [lambda_p * (1 - lambda_p) ** n for n in range(len(p))]
    prior = [one / sum(prior) for one in prior]
    return sum(
        one * loss + beta * one * math.log(one / other) for one, loss, other in zip(p, losses, prior, strict=True)
    )


@settings(max_examples=60, deadline=None)
@given(logits=LOGITS, lambda_p=st.floats(0.05, 0.9), beta=st.floats(0, 2))
def test_probabilities_sum_to_one_and_the_loss_is_that_of_a_scalar_loop(logits, lambda_p, beta):
    given, losses = torch.tensor([logits], dtype=torch.float64), [1.5 - 0.3 * n for n in range(len(logits))]
    log_p = log_halting_probabilities(given)
    assert log_p.exp()[0].tolist() == pytest.approx(scalar_probabilities(logits), abs=1e-12)
    assert log_p.exp().sum().item() == pytest.approx(1, abs=1e-12)
    found = ponder_loss(torch.tensor([losses], dtype=torch.float64), log_p, lambda_p, beta)
    assert found.item() == pytest.approx(scalar_loss(losses, logits, lambda_p, beta), abs=1e-9)


def test_the_divergence_between_geometric_distributions_has_its_closed_form():
    """KL(Geo(a) || Geo(b)) = log(a / b) + (1 - a) / a log((1 - a) / (1 - b)); cut off so late that nothing is left."""
    a, b = 0.3, 0.2
    logits = torch.full((200,), math.log(a / (1 - a)), dtype=torch.float64)
    expected_nats = math.log(a / b) + (1 - a) / a * math.log((1 - a) / (1 - b))
    assert divergence(log_halting_probabilities(logits), b).item() == pytest.approx(expected_nats, abs=1e-12)


@pytest.mark.parametrize("lambda_p", [0.1, 0.5, 0.9])
def test_the_prior_is_the_geometric_distribution_given_that_it_ends_and_its_divergence_from_itself_is_zero(lambda_p):
    found = log_geometric(lambda_p, 7, torch.zeros((), dtype=torch.float64))
    total = 1 - (1 - lambda_p) ** 7
    assert found.exp().tolist() == pytest.approx([lambda_p * (1 - lambda_p) ** n / total for n in range(7)])
    assert divergence(found, lambda_p).item() == pytest.approx(0, abs=1e-14)


def test_gradcheck_passes():
    losses, logits = (torch.randn(3, 6, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda losses, logits: ponder_loss(losses, log_halting_probabilities(logits), 0.2, 0.5), (losses, logits)
    )


def test_large_logits_give_finite_gradients():
    logits = torch.tensor([[200.0, -200.0, 200.0], [-200.0, -200.0, -200.0]], requires_grad=True)
    log_p = log_halting_probabilities(logits)
    assert log_p.exp().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    ponder_loss(torch.ones(2, 3), log_p, 0.2, 0.01).sum().backward()
    assert logits.grad.isfinite().all()


def setting(num_rows: int):
    """An update, its start, its halting unit, and the states and logits of all updates of all rows."""
    torch.manual_seed(2)
    inputs, weight = torch.randn(num_rows, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    seen: list[int] = []

    def update(state, rows, n):
        seen.append(len(rows))
        return (torch.tanh(inputs[rows] + state[0] @ weight),)

    states, every = (torch.zeros_like(inputs),), []
    for n in range(1, 9):
        states = update(states, torch.arange(num_rows), n)
        every.append(states[0])
    seen.clear()
    start = (torch.zeros_like(inputs),)
    return update, start, lambda state: state[0].sum(1) - 1, torch.stack(every, 1), seen


def test_rows_that_leave_are_where_a_batch_that_no_row_leaves_has_them():
    update, start, unit, every, seen = setting(300)
    draws = torch.rand(300, dtype=torch.float64)
    log_p = log_halting_probabilities(every.sum(-1) - 1)
    at = drawn_update(log_p, draws)
    (state,), num_updates = halt(update, start, unit, draws, 8)
    assert torch.equal(num_updates, at + 1) and len(num_updates.unique()) == 8
    torch.testing.assert_close(state, every[torch.arange(300), at])
    assert sum(seen) == num_updates.sum() < 300 * 8


def test_updates_are_drawn_as_often_as_their_probabilities_say():
    """One row's p, drawn 100,000 times: within five standard deviations of each count."""
    log_p = log_halting_probabilities(torch.tensor([[-1.0, 0.3, -2.0, 1.0, 0.0]], dtype=torch.float64))
    count = 100_000
    drawn = drawn_update(log_p.expand(count, -1), torch.rand(count, dtype=torch.float64))
    p = log_p.exp()[0]
    spread = (count * p * (1 - p)).sqrt()
    assert ((drawn.bincount(minlength=5) - count * p).abs() < 5 * spread).all()


def test_the_decision_at_an_update_uses_nothing_behind_it():
    logits, draws = torch.randn(50, 6), torch.rand(50)
    first = drawn_update(log_halting_probabilities(logits), draws)
    changed = logits.clone()
    for row, at in enumerate(first.tolist()):
        changed[row, at + 1 :] = -7.0
    again = drawn_update(log_halting_probabilities(changed), draws)
    assert torch.equal(first, again)


def test_with_a_draw_of_a_half_each_row_halts_at_the_median():
    log_p = log_halting_probabilities(torch.tensor([[-1.0, 0.0, 1.0, 2.0], [3.0, 0.0, 0.0, 0.0]]))
    assert drawn_update(log_p, torch.full((2,), 0.5)).tolist() == [1, 0]


def test_the_expected_loss_of_a_draw_is_the_one_that_is_trained():
    log_p = log_halting_probabilities(torch.tensor([0.0, 0.0, 0.0]))
    assert expected(torch.tensor([4.0, 8.0, 12.0]), log_p).item() == pytest.approx(0.5 * 4 + 0.25 * 8 + 0.25 * 12)
