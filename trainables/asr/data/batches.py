"""Examples of about equal lengths, padded to batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.asr.data.examples import Example


def valid_frames(num_frames: Int[Tensor, " B"], length: int) -> Bool[Tensor, "B T"]:
    """True where frame t of an utterance is below its number of frames; `length` is T."""
    return torch.arange(length) < num_frames[:, None]


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples padded with zeros at the end."""

    identities: tuple[str, ...]
    frames: Float[Tensor, "B T F"]
    num_frames: Tensor
    labels: tuple[tuple[int, ...], ...]

    @property
    def valid(self) -> Tensor:
        """Which frames are no padding, on the CPU: shape (B, T)."""
        return valid_frames(self.num_frames, self.frames.shape[1])


def collate(examples: Sequence[Example], device: torch.device | None = None) -> Batch:
    """A batch on `device`; `num_frames` stays on the CPU, where packing wants it."""
    frames = torch.nn.utils.rnn.pad_sequence([e.frames for e in examples], batch_first=True)
    return Batch(
        identities=tuple(e.identity for e in examples),
        frames=frames.to(device) if device else frames,
        num_frames=torch.tensor([len(e.frames) for e in examples]),
        labels=tuple(e.labels for e in examples),
    )


def bucketed(
    examples: Sequence[Example], batch_size: int, order: torch.Generator | None = None
) -> list[tuple[Example, ...]]:
    """Batches of about equal lengths, covering every example once.

    With `order`, equal lengths are mixed by a small jitter and the batches come in random order; without it,
    from long to short, so that a batch too large for the memory fails first.
    """
    jitter = torch.rand(len(examples), generator=order) * 0.1 if order else torch.zeros(len(examples))
    lengths = torch.tensor([len(e.frames) for e in examples]) * (1 + jitter)
    ranked = torch.argsort(lengths, descending=True, stable=True).tolist()
    batches = [tuple(examples[i] for i in ranked[k : k + batch_size]) for k in range(0, len(ranked), batch_size)]
    return [batches[i] for i in torch.randperm(len(batches), generator=order)] if order else batches
