"""Text: the next byte of any file (Graves 2016, section 3.5)."""

import numpy as np

from trainables.act.config import Text
from trainables.act.tasks.batch import NO_TARGET, Batch, batch
from trainables.act.tasks.text_file import Bytes

NUM_BYTES = 256


def excerpts(config: Text, part: Bytes, count: int, random: np.random.Generator) -> Batch:
    """`count` sequences that start anywhere in `part`."""
    starts = random.integers(0, len(part) - config.num_steps, size=count)
    windows = part[starts[:, None] + np.arange(config.num_steps + 1)].astype(np.int64)
    lengths = np.full(count, config.num_steps)
    return batch(windows[:, :-1], lengths, windows[:, 1:, None], np.zeros((count, config.num_steps), np.int64))


def consecutive(config: Text, part: Bytes, count: int) -> Batch:
    """The first `count` sequences of `part`, one behind the other; the last of a part may be shorter."""
    num_predicted = min(len(part) - 1, count * config.num_steps)
    num_sequences = -(-num_predicted // config.num_steps)
    inputs = np.zeros(num_sequences * config.num_steps, np.int64)
    targets = np.full_like(inputs, NO_TARGET)
    inputs[:num_predicted], targets[:num_predicted] = part[:num_predicted], part[1 : num_predicted + 1]
    shape = (num_sequences, config.num_steps)
    lengths = np.minimum(num_predicted - config.num_steps * np.arange(num_sequences), config.num_steps)
    return batch(inputs.reshape(shape), lengths, targets.reshape(*shape, 1), np.zeros(shape, np.int64))
