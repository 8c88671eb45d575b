"""Adaptive Computation Time: one step of a sequence, of as many updates as each row asks for.

Graves 2016 (arXiv:1603.08983), section 2. Rows that have halted leave the batch, so that the work follows the mean
number of updates and not the largest.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables.act.cells import State, Update


@dataclass(frozen=True, eq=False)
class Ponder:
    """One step of R rows.

    Attributes:
        state: the mean-field mixture of the states between: s_t = sum_n p_t^n s_t^n.
        num_updates: N(t), of each row.
        remainder: R(t), of each row; it carries the gradient of the ponder cost N(t) + R(t), in which N is a constant.
    """

    state: State
    num_updates: Int[Tensor, " R"]
    remainder: Float[Tensor, " R"]


def ponder(
    update: Update,
    projected: Float[Tensor, "R P"],
    first_flag: Float[Tensor, " P"],
    state: State,
    halting: nn.Module,
    epsilon: float,
    max_updates: int,
) -> Ponder:
    """Updates `state` until each row's halting probabilities h sum to 1 - `epsilon`, or `max_updates` times.

    N = min{M, min{n: sum_{i<=n} h^i >= 1 - epsilon}}; R = 1 - sum_{n<N} h^n; p^n is h^n before N, and R at N.

    Args:
        projected: the input of the step, projected.
        first_flag: what the first update has in addition: the weights of the flag that tells it from the others.
        halting: h^n = sigmoid(halting(visible part of s^n)).
    """
    num_rows = len(projected)
    rows = torch.arange(num_rows, device=projected.device)
    mixture = tuple(torch.zeros_like(part) for part in state)
    remainder = projected.new_zeros(num_rows)
    num_updates = torch.zeros_like(rows)
    spent = projected.new_zeros(num_rows)
    inputs = projected + first_flag
    for n in range(1, max_updates + 1):
        state = update(inputs, state)
        h = torch.sigmoid(halting(state[0])).squeeze(1)
        halts = spent.detach() + h.detach() >= 1 - epsilon
        if n == max_updates:
            halts = torch.ones_like(halts)
        left = 1 - spent
        p = torch.where(halts, left, h)
        mixture = tuple(m.index_add_(0, rows, p[:, None] * part) for m, part in zip(mixture, state, strict=True))
        remainder.index_add_(0, rows, left * halts)
        num_updates.index_fill_(0, rows, n)
        go_on = (~halts).nonzero().squeeze(1)
        if not len(go_on):
            break
        if n == 1:
            inputs = projected
        if len(go_on) < len(rows):
            rows, inputs, spent, h = rows[go_on], inputs[go_on], spent[go_on], h[go_on]
            state = tuple(part[go_on] for part in state)
        spent = spent + h
    return Ponder(mixture, num_updates, remainder)
