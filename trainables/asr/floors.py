"""What predicts the next frame without a network: errors below which an autoregressive model should come."""

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from trainables import distributed
from trainables.asr.autoregressive import surprisal
from trainables.asr.data.examples import AudioExamples, Example

LINEAR: Final = (2, 4)
"""How many frames the linear predictions read."""


def mean_frame(examples: Sequence[Example]) -> Float[Tensor, " F"]:
    """The mean of all valid frames, each bin by itself."""
    total = torch.stack([example.frames.double().sum(0) for example in examples]).sum(0)
    return (total / sum(len(example.frames) for example in examples)).float()


def floors(examples: AudioExamples) -> dict[str, float]:
    """Mean nats a frame on the validation audio, as `valid_surprisal_nats`, of predictors without a network.

    The one repeats the last frame. The others are affine in the last two or four frames, with the least squared error
    on the training audio. Before its beginning an utterance is taken to have the training audio's mean frame. The
    processes share the work.
    """
    device, num_bins = distributed.device(), examples.train[0].frames.shape[1]
    mean = mean_frame(examples.train).double().to(device)
    width = 1 + max(LINEAR) * num_bins
    products, targets = mean.new_zeros(width, width), mean.new_zeros(width, num_bins)
    for example in examples.train[distributed.share()]:
        frames = example.frames.to(device).double() - mean
        rows = _rows_before(frames)
        products += rows.t() @ rows
        targets += rows.t() @ frames
    products, targets = (sum(parts) for parts in zip(*distributed.gather((products.cpu(), targets.cpu())), strict=True))
    weights = {"repeated_frame_nats": torch.eye(width, num_bins, dtype=mean.dtype).roll(1, 0)}
    for number in LINEAR:
        part = 1 + number * num_bins  # gelsd takes bins that never vary
        solved = torch.linalg.lstsq(products[:part, :part], targets[:part], driver="gelsd").solution
        weights[f"linear_{number}_frames_nats"] = F.pad(solved, (0, 0, 0, width - part))

    nats, num_frames = dict.fromkeys(weights, 0.0), 0
    for example in examples.validation[distributed.share()]:
        frames = example.frames.to(device).double() - mean
        rows, num_frames = _rows_before(frames), num_frames + len(frames)
        for name, weight in weights.items():
            nats[name] += float(surprisal(frames, rows @ weight.to(device)).sum())
    *totals, whole = distributed.sum_over_processes(*nats.values(), num_frames)
    return {name: total / whole for name, total in zip(nats, totals, strict=True)}


def _rows_before(frames: Float[Tensor, "T F"]) -> Float[Tensor, "T N"]:
    """For each frame a 1 and the frames before it, the last one first; zeros before the beginning."""
    before = [F.pad(frames, (0, 0, lag, 0))[: len(frames)] for lag in range(1, max(LINEAR) + 1)]
    return torch.cat([frames.new_ones(len(frames), 1), *before], dim=1)
