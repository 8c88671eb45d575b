"""Adaptive Computation Time of any update against a scalar loop, and against the closed form of recurrent cells."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from trainables.conditional.adaptive_computation_time import Limits, adaptive_computation_time
from trainables.conditional.recurrent_cells import CELLS
from trainables.conditional.recurrent_ponder import ponder

HIDDEN = 5
KINDS = ("rnn", "gru", "lstm")


def scalar(state: float, drift: float, limits: Limits) -> tuple[float, int, float]:
    """One row with the update s' = s + drift and h = sigmoid(s'): its mixture, N and R."""
    spent, mixture = 0.0, 0.0
    for n in range(1, limits.max_updates + 1):
        state += drift
        h = 1 / (1 + math.exp(-state))
        if spent + h >= 1 - limits.epsilon or n == limits.max_updates:
            return mixture + (1 - spent) * state, n, 1 - spent
        mixture, spent = mixture + h * state, spent + h
    raise AssertionError


@settings(max_examples=50, deadline=None)
@given(
    drifts=st.lists(st.floats(-2, 2), min_size=1, max_size=8),
    epsilon=st.sampled_from((0.01, 0.1, 0.3)),
    max_updates=st.integers(1, 9),
)
def test_mixture_updates_and_remainder_are_those_of_a_scalar_loop(drifts, epsilon, max_updates):
    limits = Limits(epsilon, max_updates)
    drift = torch.tensor(drifts, dtype=torch.float64)
    done = adaptive_computation_time(
        lambda state, rows, n: (state[0] + drift[rows],), (torch.full_like(drift, -1.0),), lambda s: s[0], limits
    )
    expected = [scalar(-1.0, one, limits) for one in drifts]
    assert done.num_updates.tolist() == [n for _, n, _ in expected]
    assert done.states[0].tolist() == pytest.approx([mixture for mixture, _, _ in expected], abs=1e-12)
    assert done.remainder.tolist() == pytest.approx([remainder for _, _, remainder in expected], abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_updates", [1, 8])
def test_any_update_by_autograd_and_the_closed_form_of_cells_agree_in_values_and_gradients(kind, max_updates):
    torch.manual_seed(3)
    cell, halting = CELLS[kind](HIDDEN).double(), nn.Linear(HIDDEN, 1).double()
    nn.init.constant_(halting.bias, -1.0)
    nn.init.normal_(halting.weight, std=2.0)
    projected = torch.randn(40, cell.num_gates * HIDDEN, dtype=torch.float64, requires_grad=True)
    flag = torch.randn(cell.num_gates * HIDDEN, dtype=torch.float64, requires_grad=True)
    state = tuple(torch.randn(40, HIDDEN, dtype=torch.float64, requires_grad=True) for _ in range(cell.num_states))
    limits, advance = Limits(0.01, max_updates), cell.begin()
    general = adaptive_computation_time(
        lambda state, rows, n: advance(projected[rows] + flag * (n == 1), state),
        state,
        lambda state: halting(state[0]).squeeze(1),
        limits,
    )
    closed = ponder(cell, projected, [40], flag, state, halting, limits)
    leaves = [projected, flag, *state, *cell.parameters(), *halting.parameters()]
    found = [
        torch.autograd.grad(
            sum((part.square() * (i + 1)).sum() for i, part in enumerate(one.states)) + one.remainder.sum(), leaves
        )
        for one in (general, closed)
    ]
    assert max_updates == 1 or len(closed.num_updates.unique()) > 3
    assert torch.equal(general.num_updates, closed.num_updates)
    torch.testing.assert_close(general.states, closed.states, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(general.remainder, closed.remainder, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-11)


def test_a_state_may_have_any_shape_and_rows_that_have_halted_are_not_updated():
    seen = []
    logits = torch.tensor([[9.0, 0.0, 0.0], [-9.0, -9.0, 9.0], [0.0, 9.0, 0.0]])

    def update(state, rows, n):
        seen.append(rows.tolist())
        return (state[0] + 1, logits[rows, n - 1])

    state = (torch.zeros(3, 2, 4), torch.zeros(3))
    done = adaptive_computation_time(update, state, lambda state: state[1], Limits(0.01, 3))
    assert seen == [[0, 1, 2], [1, 2], [1]]
    assert done.num_updates.tolist() == [1, 3, 2]
    assert done.states[0].shape == (3, 2, 4)
    mean = (done.states[0][:, 0, 0]).tolist()
    low = 1 / (1 + math.exp(9))
    assert mean == pytest.approx([1.0, low + 2 * low + 3 * (1 - 2 * low), 0.5 + 2 * 0.5], abs=1e-6)


def test_gradcheck_passes_away_from_the_switches():
    torch.manual_seed(0)
    weight, bias = torch.randn(3, 3, dtype=torch.float64), torch.tensor(-1.0, dtype=torch.float64)
    start = torch.randn(4, 3, dtype=torch.float64)

    def outputs(weight, bias, start):
        done = adaptive_computation_time(
            lambda state, rows, n: (torch.tanh(start[rows] + state[0] @ weight),),
            (start,),
            lambda state: state[0].sum(1) + bias,
            Limits(0.01, 5),
        )
        return done.states[0], done.remainder

    arguments = tuple(one.requires_grad_() for one in (weight, bias, start))
    assert torch.autograd.gradcheck(outputs, arguments)
