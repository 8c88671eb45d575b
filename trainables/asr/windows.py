"""Frames with their neighbours, computed only where they are asked for."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True, eq=False)
class Windows:
    """Frames with their neighbours: window n holds rows `index[n]` of `frames`, zeros where that is out of range."""

    frames: Float[Tensor, "N H"]
    index: Int[Tensor, "M K"]

    def __getitem__(self, places: Int[Tensor, " P"] | slice) -> "Windows":
        return Windows(self.frames, self.index[places])

    def gather(self, frames: Float[Tensor, "N H"]) -> Float[Tensor, "M KH"]:
        """The windows of `frames`, which stand in these frames' places, each as one row."""
        with_zeros = torch.cat([frames, frames.new_zeros(1, frames.shape[1])])
        return with_zeros[self.index].flatten(1)


def windows(packed: PackedSequence, num_frames: int) -> Windows:
    """Each packed frame with as many neighbours of its own utterance before as after it, `num_frames` (odd) in all."""
    sizes, device = packed.batch_sizes, packed.data.device
    starts = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    # frame n of the packed data is step[n] of the utterance in row[n], rows being sorted from long to short
    step = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    row = torch.arange(len(step)) - starts[step]
    neighbours = step[:, None] + torch.arange(num_frames) - num_frames // 2
    inside = (neighbours >= 0) & (neighbours < len(sizes))
    neighbours = neighbours.clamp(0, len(sizes) - 1)
    inside &= row[:, None] < sizes[neighbours]
    index = torch.where(inside, starts[neighbours] + row[:, None], len(step))
    return Windows(packed.data, index.to(device))
