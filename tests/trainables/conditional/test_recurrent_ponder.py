"""Adaptive Computation Time of a recurrent cell in closed form against autograd on all rows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from benchmarks.act_step import run_all_rows
from trainables.conditional.adaptive_computation_time import Limits
from trainables.conditional.recurrent_cells import CELLS
from trainables.conditional.recurrent_ponder import PRODUCT_ROWS, ponder

KINDS = ("rnn", "gru", "lstm")
HIDDEN = 5


def by_autograd(cell, projected, sizes, flag, state, halting, limits):
    """As `ponder`, by autograd: every row is updated until the last one of its step halts."""
    update, found = cell.begin(), []
    for rows in projected.split(sizes):
        state = tuple(part[: len(rows)] for part in state)
        found.append(run_all_rows(update, rows, flag, state, halting, limits))
        state = found[-1].states
    states = tuple(torch.cat(parts) for parts in zip(*(done.states for done in found), strict=True))
    return states, *(torch.cat([getattr(one, name) for one in found]) for name in ("num_updates", "remainder"))


def in_closed_form(*arguments):
    done = ponder(*arguments)
    return done.states, done.num_updates, done.remainder


def outcomes(ways, kind: str, seed: int, sizes: list[int], limits: Limits, device: str = "cpu", dtype=torch.float64):
    """Of each way: the states, the numbers of updates and the remainders, and the gradients of all that it reads."""
    torch.manual_seed(seed)
    cell = CELLS[kind](HIDDEN).to(device, dtype)
    halting = nn.Linear(HIDDEN, 1).to(device, dtype)
    nn.init.constant_(halting.bias, -1.0)
    nn.init.normal_(halting.weight, std=2.0)
    shapes = [(sum(sizes), cell.num_gates * HIDDEN), (cell.num_gates * HIDDEN,)]
    shapes += [(sizes[0], HIDDEN)] * cell.num_states
    leaves = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for shape in shapes]
    weights = [torch.randn(sum(sizes), HIDDEN, device=device, dtype=dtype) for _ in range(cell.num_states)]
    found = []
    for way in ways:
        states, num_updates, remainder = way(cell, leaves[0], sizes, leaves[1], tuple(leaves[2:]), halting, limits)
        loss = sum((part * weight).sum() for part, weight in zip(states, weights, strict=True))
        loss = loss + (remainder * weights[0][:, 0]).sum()
        gradients = torch.autograd.grad(loss, [*leaves, *cell.parameters(), *halting.parameters()])
        found.append((num_updates, remainder, states, gradients))
    return found


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    epsilon=st.sampled_from((0.01, 0.1, 0.3)),
    max_updates=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
def test_closed_form_agrees_with_autograd_on_all_rows_in_values_and_gradients(kind, seed, epsilon, max_updates, sizes):
    limits = Limits(epsilon, max_updates)
    found, expected = outcomes((in_closed_form, by_autograd), kind, seed, sorted(sizes, reverse=True), limits)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_closed_form_agrees_with_autograd_where_rows_leave_at_many_updates_and_products_are_made_in_parts(kind):
    sizes = [90, 90, 70, 1]
    found, expected = outcomes((in_closed_form, by_autograd), kind, 4, sizes, Limits(0.01, 8))
    assert len(found[0].unique()) > 3 and found[0].sum() > 2 * PRODUCT_ROWS
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_in_single_precision_the_numbers_of_updates_are_those_of_autograd(kind):
    found, expected = outcomes(
        (in_closed_form, by_autograd), kind, 5, [60, 40, 20], Limits(0.01, 8), dtype=torch.float32
    )
    assert torch.equal(found[0], expected[0])
    torch.testing.assert_close(found[1:], expected[1:], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_of_no_step_there_is_nothing(kind):
    """No rows come back, and all gradients are zeros."""
    cell, halting = CELLS[kind](HIDDEN), nn.Linear(HIDDEN, 1)
    width = cell.num_gates * HIDDEN
    state = tuple(torch.randn(3, HIDDEN, requires_grad=True) for _ in range(cell.num_states))
    projected, flag = torch.randn(0, width, requires_grad=True), torch.randn(width, requires_grad=True)
    done = ponder(cell, projected, [], flag, state, halting, Limits(0.01, 5))
    assert [part.shape for part in done.states] == [(0, HIDDEN)] * cell.num_states
    assert (done.num_updates.shape, done.remainder.shape) == ((0,), (0,))
    (sum(part.sum() for part in done.states) + done.remainder.sum()).backward()
    for leaf in (*state, flag, *cell.parameters(), *halting.parameters()):
        assert leaf.grad is None or not leaf.grad.any()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_the_same_and_always_the_same(kind):
    ways = (in_closed_form, in_closed_form, by_autograd)
    found, again, expected = outcomes(ways, kind, 4, [40, 30, 30, 1], Limits(0.01, 8), device="cuda")
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found, again, rtol=0, atol=0)
