"""Adaptive Computation Time of any update function, by autograd (Graves 2016, arXiv:1603.08983, section 2).

For recurrent cells over whole sequences `recurrent_ponder` computes the same in closed form, and faster.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from trainables.conditional.finite import check_finite
from trainables.conditional.halted_rows import RowUpdate, State, check_max_updates

HaltingUnit = Callable[[State], Float[Tensor, " r"]]
"""A function from the state of r rows to the logits of their halting probabilities."""


@dataclass(frozen=True, eq=False)
class Limits:
    """h sums to 1 - `epsilon`, in [0, 1), in at most `max_updates`, at least 1; else a ValueError."""

    epsilon: float
    max_updates: int

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise ValueError(f"`epsilon` must be in [0, 1), but got {self.epsilon}.")
        check_max_updates(self.max_updates)


@dataclass(frozen=True, eq=False)
class Ponder:
    """What became of R rows; of a sequence those of all steps, one step behind the other.

    Attributes:
        states: the mean-field mixture of the states between: s = sum_n p^n s^n.
        num_updates: N of each row.
        remainder: R of each row; it carries the gradient of the ponder cost N + R, in which N is a constant.
    """

    states: State
    num_updates: Int[Tensor, " R"]
    remainder: Float[Tensor, " R"]


def adaptive_computation_time(update: RowUpdate, state: State, halting_unit: HaltingUnit, limits: Limits) -> Ponder:
    """Updates each of R rows until its halting probabilities h sum to 1 - epsilon, or `max_updates` times.

    N = min{M, min{n: sum_{i<=n} h^i >= 1 - epsilon}}; R = 1 - sum_{n<N} h^n; p^n is h^n before N, and R at N. Rows that
    have halted leave the batch. The loss is that of the task plus tau * (N + R). ::

        inputs, cell, halting = torch.randn(8, 4), nn.GRUCell(4, 16), nn.Linear(16, 1)
        done = adaptive_computation_time(
            lambda state, rows, n: (cell(inputs[rows], state[0]),),
            (torch.zeros(8, 16),),
            lambda state: halting(state[0]).squeeze(1),
            Limits(epsilon=0.01, max_updates=20),
        )
        loss = done.states[0].square().mean() + 1e-3 * (done.num_updates + done.remainder).mean()
        loss.backward()

    Args:
        state: before the first update; every update keeps its shapes.

    Raises:
        NotFiniteError: a ValueError, if the state is not finite.
    """
    check_finite(True, **{f"state[{number}]": part for number, part in enumerate(state)})
    size = state[0].shape[0]
    rows = torch.arange(size, device=state[0].device)
    num_updates, spent = torch.zeros_like(rows), state[0].new_zeros(size)
    mixture, remainder = tuple(torch.zeros_like(part) for part in state), state[0].new_zeros(size)
    for n in range(1, limits.max_updates + 1):
        state = update(state, rows, n)
        h = halting_unit(state).sigmoid()
        halts = (spent + h >= 1 - limits.epsilon) | (n == limits.max_updates)
        p = torch.where(halts, 1 - spent, h)
        mixture = tuple(m.index_add(0, rows, _times(p, part)) for m, part in zip(mixture, state, strict=True))
        remainder = remainder.index_add(0, rows, p * halts)
        num_updates[rows] = n
        left = halts.logical_not().nonzero().squeeze(1)
        if not left.shape[0]:
            break
        rows, spent = rows[left], (spent + h).index_select(0, left)
        state = tuple(part.index_select(0, left) for part in state)
    return Ponder(mixture, num_updates, remainder)


def _times(weights: Float[Tensor, " r"], part: Tensor) -> Tensor:
    """Each row of `part` (r ...) times its weight."""
    return weights.view(-1, *[1] * (part.dim() - 1)) * part
