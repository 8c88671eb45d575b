"""Sort: numbers first, then their indices in ascending order (Graves 2016, section 3.4)."""

import numpy as np

from trainables.act.config import Sort
from trainables.act.tasks.batch import NO_TARGET, Batch, batch

NUM_INPUTS = 2
"""The number, and a flag that is 1 at the last one."""


def make(config: Sort, count: int, random: np.random.Generator) -> Batch:
    """`count` sequences of 2 to `num_items` standard normal numbers, then as many steps of zeros with the targets.

    Target i is the place of the i-th smallest number, counted from 0. Difficulty is how many numbers there are.
    """
    num_items = random.integers(2, config.num_items, size=count, endpoint=True)
    numbers = random.standard_normal((count, config.num_items)).astype(np.float32)
    items = np.arange(config.num_items)
    order = np.where(items < num_items[:, None], numbers, np.inf).argsort(1)
    steps = np.arange(2 * config.num_items)
    inputs = np.zeros((count, len(steps), NUM_INPUTS), np.float32)
    inputs[:, : config.num_items, 0] = np.where(items < num_items[:, None], numbers, 0)
    inputs[np.arange(count), num_items - 1, 1] = 1
    rank = steps - num_items[:, None]
    is_target = (rank >= 0) & (rank < num_items[:, None])
    targets = np.where(is_target, np.take_along_axis(order, rank.clip(0, config.num_items - 1), 1), NO_TARGET)
    difficulty = np.where(rank < num_items[:, None], num_items[:, None], 0)
    return batch(inputs, 2 * num_items, targets[:, :, None], difficulty)
