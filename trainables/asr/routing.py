"""Real conditional execution: each network runs on its own frames and on no others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

Layer = Callable[[Any], Tensor]


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


def route(
    frames: Tensor | Windows, choose_big: Bool[Tensor, " N"], small: Layer | None, big: Layer | None
) -> Float[Tensor, "N H"]:
    """Each frame through the network chosen for it, and through that one only.

    The frames of each network are gathered, computed in one call and put back in their places. A network that gets
    no frame is still called, on none, so that its gradients are zeros. None: a network that does not exist.
    """
    if small is None or big is None:
        only = small or big
        assert only is not None
        return only(frames)
    order = torch.cat([(~choose_big).nonzero()[:, 0], choose_big.nonzero()[:, 0]])
    back, num_small = torch.argsort(order), len(order) - int(choose_big.sum())
    ordered = frames[order] if isinstance(frames, Windows) else _permute(frames, order, back)
    return _permute(torch.cat([small(ordered[:num_small]), big(ordered[num_small:])]), back, order)


class _Permutation(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, rows: Tensor, order: Tensor, back: Tensor) -> Tensor:
        context.save_for_backward(back)
        return rows.index_select(0, order)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0].index_select(0, context.saved_tensors[0]), None, None


def _permute(rows: Float[Tensor, "N H"], order: Int[Tensor, " N"], back: Int[Tensor, " N"]) -> Float[Tensor, "N H"]:
    """`rows[order]`, whose gradient is put back in order by another gather; that of indexing adds row by row."""
    permuted: Tensor = _Permutation.apply(rows, order, back)  # type: ignore[no-untyped-call]
    return permuted


def mix(frames: Tensor | Windows, used_big: Float[Tensor, " N"], small: Layer, big: Layer) -> Float[Tensor, "N H"]:
    """Both networks on all frames, mixed by `used_big` (0 or 1), whose gradient is the difference of their outputs."""
    return used_big[:, None] * big(frames) + (1 - used_big[:, None]) * small(frames)
