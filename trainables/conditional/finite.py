"""Refusal of NaN and infinity, which a comparison takes for small in silence."""

import math

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainables.errors import NotFiniteError


def check_finite(waits: bool = False, **values: Tensor | NDArray[np.floating] | float) -> None:
    """Looks at values, by the names of the arguments that they are.

    Args:
        waits: whether the caller waits for a GPU in any case. Else what lies on one is not looked at, which would hold
            up a training step: its NaN goes on to the loss.

    Raises:
        NotFiniteError: a ValueError, if one is NaN or infinite.
    """
    for name, value in values.items():
        if isinstance(value, Tensor):
            if not value.is_floating_point() or not (waits or value.device.type == "cpu"):
                continue
            value = value.detach()
            if math.isfinite(value.sum().item()) or bool(value.isfinite().all()):  # large ones may have no finite sum
                continue
            wrong = value[~value.isfinite()][0].item()
        else:
            array = np.asarray(value)
            if np.isfinite(array).all():
                continue
            wrong = array[~np.isfinite(array)][0]
        raise NotFiniteError(f"`{name}` must be finite, but has {wrong}; what gave it has diverged, or is broken.")
