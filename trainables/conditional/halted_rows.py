"""Updates of a state from which each row leaves as soon as it is told to, so that the work follows the mean of N."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from trainables.conditional.finite import check_finite

State = tuple[Tensor, ...]
"""Tensors (R ...), with as many rows in each."""

RowUpdate = Callable[[State, Int[Tensor, " r"], int], State]
"""From the state of the rows that are left, their places among all R rows, and n, the number of the update counted from
1, to the next state of these rows. Inputs are looked up by the places: `inputs[rows]`."""

Stops = Callable[[State, Int[Tensor, " r"], int], Bool[Tensor, " r"]]
"""From the same, behind update n, to which of these rows halt now."""


def check_max_updates(number: int) -> None:
    """Raises ValueError for less than one update, which would leave no state to give back."""
    if number < 1:
        raise ValueError(f"`max_updates` must be at least 1, but got {number}.")


def update_until(update: RowUpdate, state: State, stops: Stops, max_updates: int) -> tuple[State, Int[Tensor, " R"]]:
    """The state at which each of R rows halts, and its number of updates N.

    A row that halts leaves the batch: neither `update` nor `stops` sees it again. All halt at `max_updates`. The parts
    of the state may have other shapes behind an update than before the first. ::

        inputs, weight = torch.randn(8, 4), torch.randn(4, 4)
        (found,), num_updates = update_until(
            lambda state, rows, n: (torch.tanh(inputs[rows] + state[0] @ weight),),
            (torch.zeros(8, 4),),
            lambda state, rows, n: state[0].norm(dim=1) > 1,
            max_updates=10,
        )

    Raises:
        ValueError: if the state is not finite, or `max_updates` less than 1.
    """
    check_max_updates(max_updates)
    check_finite(True, **{f"state[{number}]": part for number, part in enumerate(state)})
    rows = torch.arange(state[0].shape[0], device=state[0].device)
    num_updates = torch.zeros_like(rows)
    places: list[Tensor] = []
    states: list[State] = []
    for n in range(1, max_updates + 1):
        state = update(state, rows, n)
        halts = stops(state, rows, n) if n < max_updates else torch.ones_like(rows, dtype=torch.bool)
        at, left = halts.nonzero().squeeze(1), halts.logical_not().nonzero().squeeze(1)
        num_updates[rows] = n
        places.append(rows[at])
        states.append(tuple(part.index_select(0, at) for part in state))
        rows, state = rows[left], tuple(part.index_select(0, left) for part in state)
        if not rows.shape[0]:
            break
    back = torch.cat(places).argsort()
    return tuple(torch.cat(parts).index_select(0, back) for parts in zip(*states, strict=True)), num_updates
