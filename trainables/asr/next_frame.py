"""The error of predicting the next frame: an epoch of its descent, and its validation."""

import math
import time
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables import distributed
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import Pretraining
from trainables.asr.data.batches import bucketed, collate, valid_frames
from trainables.asr.data.examples import AudioExamples, Example
from trainables.errors import DivergedError


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: Sequence[Example],
    config: Pretraining,
    order: torch.Generator,
    epoch: int,
) -> dict[str, float]:
    """One pass over `examples` in an order drawn from `order`; returns the metrics of the epoch.

    Each process takes every n-th utterance of a batch.

    Raises:
        DivergedError: when the loss is no finite number.
    """
    model.train()
    started, num_processes = time.perf_counter(), distributed.world_size()
    error_sum = num_frames = norm_sum = 0.0
    batches = bucketed(examples, config.training.batch_size, order)
    for number, whole in enumerate(batches, start=1):
        mine = whole[distributed.share()]
        # Without an utterance left for it, a process runs one with weight 0: all must reach the gradients' exchange.
        batch = collate(mine or whole[:1], distributed.device())
        error = squared_error(model(batch.frames)[1], batch.frames, batch.num_frames)
        whole_frames = sum(len(example.frames) for example in whole)
        loss = error * (bool(mine) * num_processes / whole_frames / config.features.num_mel_bins)
        if not math.isfinite(loss.item()):
            raise DivergedError(f"The loss is {loss.item()} at epoch {epoch}, batch {number}.")
        optimizer.zero_grad()
        loss.backward()
        norm_sum += float(nn.utils.clip_grad_norm_(model.parameters(), config.training.max_gradient_norm))
        optimizer.step()
        error_sum += bool(mine) * error.item()
        num_frames += sum(len(example.frames) for example in mine)
    error_sum, num_frames = distributed.sum_over_processes(error_sum, num_frames)
    return {
        "train_mse": error_sum / num_frames / config.features.num_mel_bins,
        "gradient_norm": norm_sum / len(batches),
        "train_frames_per_s": num_frames / (time.perf_counter() - started),
    }


def validate(model: AutoregressiveModel, examples: AudioExamples) -> dict[str, float]:
    """The error per bin on the validation audio, and the same per frame as surprisal counts it."""
    error = mean_squared_error(model, examples.validation)
    return {"valid_mse": error, "valid_surprisal_nats": 0.5 * error * examples.validation[0].frames.shape[1]}


def squared_error(
    predictions: Float[Tensor, "B T F"], frames: Float[Tensor, "B T F"], num_frames: Int[Tensor, " B"]
) -> Float[Tensor, ""]:
    """The squared error of predictions, summed over bins and valid frames."""
    valid = valid_frames(num_frames, frames.shape[1]).to(frames.device)
    return (predictions - frames).square().sum(-1)[valid].sum()


@torch.no_grad()
def mean_squared_error(model: AutoregressiveModel, examples: Sequence[Example]) -> float:
    """The error per bin on the valid frames of `examples`, without dropout; the processes share the work."""
    model.eval()
    error = num_frames = 0.0
    for batch in bucketed(examples[distributed.share()], batch_size=32):
        padded = collate(batch, distributed.device())
        error += float(squared_error(model(padded.frames)[1], padded.frames, padded.num_frames))
        num_frames += float(padded.num_frames.sum())
    error, num_frames = distributed.sum_over_processes(error, num_frames)
    return error / num_frames / examples[0].frames.shape[1]
