"""What halting runs is what its updates say, by the counter; the gradients of exits are those of a mask."""

import pytest
import torch
from torch import nn

from trainables.conditional.adaptive_computation_time import Limits, adaptive_computation_time
from trainables.conditional.early_exit import difference, exit_early
from trainables.conditional.halted_rows import update_until
from trainables.conditional.macs import count_macs
from trainables.conditional.ponder_net import halt
from trainables.conditional.recurrent_cells import CELLS
from trainables.conditional.recurrent_ponder import ponder

ROWS, WIDTH, CLASSES, MOST = 60, 4, 3, 6


class Parts:
    """An update of 16 multiply-accumulates a row, a halting unit of 4 and an output of 12."""

    def __init__(self):
        torch.manual_seed(1)
        self.layer, self.unit, self.readout = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1), nn.Linear(WIDTH, CLASSES)
        nn.init.normal_(self.readout.weight, std=1.5)
        nn.init.normal_(self.unit.weight, std=2.0)
        self.start = (torch.randn(ROWS, WIDTH) * 2,)

    def update(self, state, rows, n):
        return (torch.tanh(self.layer(state[0])) * 2,)

    def logits(self, state):
        return self.unit(state[0]).squeeze(1)

    def log_probs(self, state):
        return self.readout(state[0]).log_softmax(-1)


def by_act(parts):
    done = adaptive_computation_time(parts.update, parts.start, parts.logits, Limits(0.01, MOST))
    return done.num_updates, 16 + 4  # the unit is asked behind every update


def by_ponder_net(parts):
    return halt(parts.update, parts.start, parts.logits, torch.rand(ROWS), MOST)[1], 16 + 4


def by_exit(parts):
    done = exit_early(parts.update, parts.start, parts.log_probs, lambda log_p: difference(log_p) > 0.5, MOST)
    return done.num_updates, 16 + 12


def by_norm(parts):
    stops = lambda state, rows, n: state[0].norm(dim=1) > 2.5  # noqa: E731
    return update_until(parts.update, parts.start, stops, MOST)[1], 16


@pytest.mark.parametrize("way", [by_act, by_ponder_net, by_exit, by_norm])
def test_the_products_that_run_are_those_of_the_updates_that_rows_have(way):
    """PonderNet's unit is not asked behind the last update there may be."""
    parts = Parts()
    with torch.no_grad(), count_macs() as macs:
        num_updates, per_update = way(parts)
    assert len(num_updates.unique()) > 2 and num_updates.sum() < ROWS * MOST
    not_asked = int((num_updates == MOST).sum()) * WIDTH if way is by_ponder_net else 0
    assert macs.total == int(num_updates.sum()) * per_update - not_asked


@pytest.mark.parametrize("kind", CELLS)
def test_a_cell_in_closed_form_runs_the_updates_that_rows_have_and_one_halting_unit_for_each(kind):
    torch.manual_seed(2)
    cell, halting = CELLS[kind](WIDTH), nn.Linear(WIDTH, 1)
    nn.init.normal_(halting.weight, std=2.0)
    projected = torch.randn(ROWS, cell.num_gates * WIDTH)
    state = tuple(torch.zeros(ROWS, WIDTH) for _ in range(cell.num_states))
    with torch.no_grad(), count_macs() as macs:
        done = ponder(cell, projected, [ROWS], torch.zeros(cell.num_gates * WIDTH), state, halting, Limits(0.01, MOST))
    assert len(done.num_updates.unique()) > 1
    assert macs.total == int(done.num_updates.sum()) * (cell.num_gates * WIDTH * WIDTH + WIDTH)


def test_gradients_of_rows_that_leave_are_those_of_all_exits_under_a_mask():
    parts = Parts()
    start = parts.start[0].requires_grad_()
    leaves = [start, *parts.layer.parameters(), *parts.readout.parameters()]
    done = exit_early(parts.update, (start,), parts.log_probs, lambda log_p: difference(log_p) > 0.5, MOST)
    state, exits = (start,), []
    for n in range(1, MOST + 1):
        state = parts.update(state, None, n)
        exits.append(parts.log_probs(state))
    weights = torch.randn(ROWS, CLASSES)
    masked = torch.stack(exits, 1)[torch.arange(ROWS), done.num_updates - 1]
    assert len(done.num_updates.unique()) > 2
    found = [torch.autograd.grad((output * weights).sum(), leaves) for output in (done.output, masked)]
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
