"""What a network sees at once: padded sequences with their targets and how hard each step is."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

NO_TARGET = -1


@dataclass(frozen=True, eq=False)
class Batch:
    """B sequences of up to T steps.

    Attributes:
        inputs: vectors (B T I), or symbols (B T); steps behind the end of a sequence are zero.
        num_steps: of each sequence.
        targets: of the K classifications at each step; `NO_TARGET` in all K where nothing is asked.
        difficulty: of each step, in the task's own measure; 0 behind the end, and where there is none.
    """

    inputs: Tensor
    num_steps: Int[Tensor, " B"]
    targets: Int[Tensor, "B T K"]
    difficulty: Int[Tensor, "B T"]

    @property
    def has_target(self) -> Tensor:
        """Whether anything is asked at a step: bool (B T)."""
        return self.targets[:, :, 0] != NO_TARGET

    def __len__(self) -> int:
        return len(self.num_steps)

    def rows(self, chosen: slice) -> "Batch":
        """The `chosen` sequences."""
        return Batch(self.inputs[chosen], self.num_steps[chosen], self.targets[chosen], self.difficulty[chosen])

    def to(self, device: torch.device) -> "Batch":
        """The same on `device`."""
        parts = (self.inputs, self.num_steps, self.targets, self.difficulty)
        return Batch(*(part.to(device) for part in parts))


def batch(
    inputs: NDArray[Any], num_steps: NDArray[np.integer], targets: NDArray[np.integer], difficulty: NDArray[np.integer]
) -> Batch:
    """A `Batch` of arrays; real inputs in float32."""
    is_real = np.issubdtype(inputs.dtype, np.floating)
    return Batch(
        torch.from_numpy(inputs.astype(np.float32 if is_real else np.int64)),
        torch.from_numpy(num_steps.astype(np.int64)),
        torch.from_numpy(targets.astype(np.int64)),
        torch.from_numpy(difficulty.astype(np.int64)),
    )
