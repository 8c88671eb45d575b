"""What of a sequence is told beside the ponder of its steps (Graves 2016, figures 15 and 20)."""

import numpy as np
from numpy.typing import NDArray

from trainables.act.tasks.addition import END
from trainables.act.tasks.batch import Batch


def digits_summed(sequences: Batch) -> NDArray[np.int64]:
    """The digits of a step's number and of the sum before it in addition, as they are written (B T)."""
    digits = sequences.difficulty.numpy()
    written = (sequences.targets != END).sum(-1).numpy()
    before = np.zeros_like(digits)
    before[:, 1:2], before[:, 2:] = digits[:, :1], written[:, 1:-1]
    return np.where(digits > 0, digits + before, 0)


def is_end_of_input(sequences: Batch) -> NDArray[np.bool_]:
    """Whether a step of sort has the last item or stands beside it (B T)."""
    last = sequences.num_steps.numpy()[:, None] // 2 - 1
    steps = np.arange(sequences.targets.shape[1])
    is_end: NDArray[np.bool_] = np.abs(steps - last) <= 1
    return is_end
