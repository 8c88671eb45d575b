"""Pretraining of the autoregressive model, read from top to bottom."""

import math
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from trainables import checkpoint, distributed, rng
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import Pretraining
from trainables.asr.data.batches import bucketed, collate, valid_frames
from trainables.asr.data.examples import AudioExamples, Example, load_audio
from trainables.asr.floors import floors, mean_frame
from trainables.asr.pretrain import SELECTION, data_of
from trainables.errors import DivergedError
from trainables.patience import is_exhausted
from trainables.trial import Trial


def train(config: Pretraining, trial: Trial) -> None:
    """Adam on the mean squared error of the next frame; one step is one epoch, reported with a checkpoint.

    Step 0 is the untrained model, reported with the floors; it does not count for `patience`.

    Raises:
        DivergedError: when the loss is no finite number.
        InputError: when the audio cannot be read.
    """
    examples, device = load_audio(data_of(config), config.features, config.spared), distributed.device()
    rng.seed_everything(config.seed)
    model = AutoregressiveModel(config).to(device)
    if config.start == "data_mean":
        model.start_from(mean_frame(examples.train).to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=config.training.learning_rate)
    rng.seed_everything(rng.derive(config.seed, "dropout", distributed.rank()))
    order = rng.generator(config.seed, "order")
    first, validated = 1, list[dict[str, float]]()
    if restored := trial.restore():
        state = checkpoint.load(restored)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rng.put_back_process(state["rng"], distributed.rank(), shared={"order": order})
        first, validated = state["epoch"] + 1, state.get("validated", [])
    else:
        trial.report(_validated(model, examples) | floors(examples), step=0)

    wrapped = distributed.wrap(model)
    for epoch in range(first, config.training.num_epochs + 1):
        if is_exhausted(config.training.patience, validated):
            break
        for group in optimizer.param_groups:
            group["lr"] = config.training.learning_rate * config.training.decay ** (epoch - 1)
        metrics = _train_epoch(wrapped, optimizer, examples.train, config, order, epoch)
        if config.training.is_validated(epoch):
            metrics |= _validated(model, examples)
            validated.append({SELECTION: metrics[SELECTION]})
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epoch": epoch,
            "validated": validated,
            "rng": distributed.gather(rng.capture(order=order)),
        }
        checkpoint.report(trial, metrics, epoch, state)


def evaluate(config: Pretraining, checkpoint_path: Path, trial: Trial) -> None:
    """Reports the error of a checkpoint on the validation audio, beside the floors."""
    examples = load_audio(data_of(config), config.features, config.spared)
    state, model = checkpoint.load(checkpoint_path), AutoregressiveModel(config).to(distributed.device())
    model.load_state_dict(state["model"])
    trial.report(_validated(model, examples) | floors(examples), step=state["epoch"])


def _validated(model: AutoregressiveModel, examples: AudioExamples) -> dict[str, float]:
    """The error per bin, and the same per frame as surprisal counts it."""
    error = mean_squared_error(model, examples.validation)
    return {SELECTION: error, "valid_surprisal_nats": 0.5 * error * examples.validation[0].frames.shape[1]}


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    examples: Sequence[Example],
    config: Pretraining,
    order: torch.Generator,
    epoch: int,
) -> dict[str, float]:
    model.train()
    started, num_processes = time.perf_counter(), distributed.world_size()
    error_sum = num_frames = norm_sum = 0.0
    batches = bucketed(examples, config.training.batch_size, order)
    for number, whole in enumerate(batches, start=1):
        mine = whole[distributed.share()]
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


def squared_error(
    predictions: Float[Tensor, "B T F"], frames: Float[Tensor, "B T F"], num_frames: Int[Tensor, " B"]
) -> Float[Tensor, ""]:
    """Summed over bins and valid frames."""
    valid = valid_frames(num_frames, frames.shape[1]).to(frames.device)
    return (predictions - frames).square().sum(-1)[valid].sum()


@torch.no_grad()
def mean_squared_error(model: AutoregressiveModel, examples: Sequence[Example]) -> float:
    """Per bin, on the valid frames of `examples`, without dropout; the processes share the work."""
    model.eval()
    error = num_frames = 0.0
    for batch in bucketed(examples[distributed.share()], batch_size=32):
        padded = collate(batch, distributed.device())
        error += float(squared_error(model(padded.frames)[1], padded.frames, padded.num_frames))
        num_frames += float(padded.num_frames.sum())
    error, num_frames = distributed.sum_over_processes(error, num_frames)
    return error / num_frames / examples[0].frames.shape[1]
