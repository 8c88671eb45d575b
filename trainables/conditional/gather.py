"""Rows behind a gate: those whose gate is open are taken, computed and put back; the others cost nothing.

Where shut rows take another network, `route` does all of it. Here they stay as they are, or have a value of their own.

>>> import torch
>>> from torch import nn
>>> from trainables.conditional.gather import put_back, take
>>> states, update = torch.randn(6, 4), nn.Linear(4, 4)
>>> opened = (states.norm(dim=1) > 2).nonzero()[:, 0]
>>> step = put_back(update(take(states, 0, opened)), 0, opened, len(states))  # 0 where the gate is shut
>>> moved = states + step
>>> (step.abs().sum(1) > 0).nonzero()[:, 0].equal(opened)
True
"""

from jaxtyping import Float, Int
from torch import Tensor


def take(values: Tensor, dim: int, rows: Int[Tensor, " N"] | None) -> Tensor:
    """The slices of a tensor at `rows`, by number and in their order, along `dim`; all where it is None."""
    return values if rows is None else values.index_select(dim, rows)


def put_back(
    part: Float[Tensor, "..."], dim: int, rows: Int[Tensor, " N"], num_rows: int, fill: float = 0.0
) -> Float[Tensor, "..."]:
    """`part` (N along `dim`) at its `rows` of `num_rows`, and `fill` in all others.

    Gradients go to `part` alone: `take` of them.

    Args:
        rows: from 0 to `num_rows` - 1, each once; of one that is there twice the last counts.

    Raises:
        IndexError: if a row is out of range, on a CPU.
    """
    shape = list(part.shape)
    shape[dim] = num_rows
    return part.new_full(shape, fill).index_copy(dim, rows, part)
