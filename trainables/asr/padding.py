"""Which frames of a padded batch are real."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def valid_frames(num_frames: Int[Tensor, " B"], length: int) -> Bool[Tensor, "B T"]:
    """True where frame t of an utterance is below its number of frames; `length` is T."""
    return torch.arange(length) < num_frames[:, None]
