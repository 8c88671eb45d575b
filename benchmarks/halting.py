"""Step time of Adaptive Computation Time with real halting, beside a batch in which no row ever leaves.

python benchmarks/halting.py [--repeats 15]
"""

import torch
from torch import Tensor, nn

from trainables.act.cells import State, Update
from trainables.act.halting import Ponder


def run_all_rows(
    update: Update,
    projected: Tensor,
    first_flag: Tensor,
    state: State,
    halting: nn.Module,
    epsilon: float,
    max_updates: int,
) -> Ponder:
    """As `ponder`, with every row updated until the last one halts, and masks for what counts."""
    total = projected.new_zeros(len(projected))
    running = torch.ones_like(total, dtype=torch.bool)
    remainder, num_updates = torch.ones_like(total), torch.zeros_like(total, dtype=torch.long)
    mixture = tuple(torch.zeros_like(part) for part in state)
    for n in range(1, max_updates + 1):
        state = update(projected + first_flag * (n == 1), state)
        h = torch.sigmoid(halting(state[0])).squeeze(1)
        halts = running & ((total + h >= 1 - epsilon) if n < max_updates else running)
        p = torch.where(halts, remainder, h) * running
        mixture = tuple(m + p[:, None] * part for m, part in zip(mixture, state, strict=True))
        num_updates = num_updates + running
        running = running & ~halts
        remainder = torch.where(running, remainder - h, remainder)
        total = total + h.detach()
        if not running.any():
            break
    return Ponder(mixture, num_updates, remainder)
