"""The error signal over the test text, batch by batch (thesis figures 5.3 and 5.4b), and the steps that it led to."""

from typing import Any

import numpy as np

from trainables.errors import InputError
from trainables.lm.analysis.running_text import recoded
from trainables.lm.analysis.trained_model import Trained


def by_batch(trained: Trained, first: int, count: int) -> dict[tuple[Any, ...], float]:
    """Cells by batch and measure: means over tokens of delta before and after recoding, of loss and step sizes.

    A batch is one window of all parallel streams. Of `count` batches from the number `first` on, those that are there.

    Raises:
        InputError: if the text has no batch of that number.
    """
    record, before, after = recoded(trained)
    assert record.step_sizes is not None
    num_batches = int(record.window.max()) + 1
    if first > num_batches:
        raise InputError(f"The option `first` must be at most {num_batches}, the batches of the test, but got {first}.")
    cells: dict[tuple[Any, ...], float] = {}
    for batch in range(first, min(first + count, num_batches + 1)):
        is_in = record.window == batch - 1
        measures = {
            "delta_before": before,
            "delta_after": after,
            "loss": record.nats,
            "step_size": record.step_sizes,
        }
        cells |= {(batch, name): float(np.mean(values[is_in])) for name, values in measures.items()}
    return cells
