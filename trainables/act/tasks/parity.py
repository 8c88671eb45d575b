"""Parity: is the number of ones odd? (Graves 2016, section 3.1)."""

import numpy as np

from trainables.act.config import Parity
from trainables.act.tasks.batch import Batch, batch

NUM_CLASSES = 2


def make(config: Parity, count: int, random: np.random.Generator) -> Batch:
    """`count` vectors, each with a uniformly drawn number of entries, at random places, +1 or -1 with equal chance.

    The number is from `min_active` to `max_active`: with fewer in training than in testing it asks for extrapolation
    (Banino et al. 2021, arXiv:2107.05407: of 96 entries 1 to 48, then 49 to 96).

    Difficulty is the number of these entries.
    """
    num_active = random.integers(config.min_active, config.most_active, size=(count, 1), endpoint=True)
    places = random.random((count, config.num_bits)).argsort(1)
    signs = random.choice((-1.0, 1.0), size=places.shape)
    vectors = np.where(places < num_active, signs, 0.0)
    odd = (vectors == 1).sum(1) % 2
    return batch(vectors[:, None, :], np.ones(count, np.int64), odd[:, None, None], num_active)
