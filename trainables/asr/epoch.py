"""One epoch of a recogniser's training."""

import math
import time

import torch
from jaxtyping import Float
from torch import Tensor, nn

from trainables import distributed
from trainables.asr import controller as controllers
from trainables.asr import frozen
from trainables.asr.config import AsrConfig, Learned
from trainables.asr.controller import Control
from trainables.asr.cost import training_macs
from trainables.asr.ctc_loss import ctc_losses
from trainables.asr.data.batches import Batch, bucketed, collate
from trainables.asr.data.examples import Examples
from trainables.asr.frozen import Kept
from trainables.asr.macs import part_macs
from trainables.asr.recogniser import Output
from trainables.errors import DivergedError


def train_epoch(
    config: AsrConfig,
    model: nn.Module,
    working: Control,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    kept: Kept | None,
    order: torch.Generator,
    routing: torch.Generator,
    epoch: int,
) -> dict[str, float]:
    """One pass over the training set in an order drawn from `order`; returns the metrics of the epoch.

    Each process takes every n-th utterance of a batch.

    Args:
        kept: what the frozen autoregressive model says of each utterance; None: it runs.
        routing: this process's stream for the draws of stochastic routing.

    Raises:
        DivergedError: when the loss is no finite number.
    """
    model.train()
    started, num_processes = time.perf_counter(), distributed.world_size()
    loss_sum = norm_sum = num_frames = num_big = 0.0
    batches = bucketed(examples.train, config.training.batch_size, order)
    for number, whole in enumerate(batches, start=1):
        mine = whole[distributed.share()]
        # Without an utterance left for it, a process runs one with weight 0: all must reach the gradients' exchange.
        batch = collate(mine or whole[:1], distributed.device())
        uniform = torch.rand(batch.frames.shape[:2], generator=routing).to(batch.frames.device)
        output = model(batch.frames, batch.num_frames, working, uniform, frozen.pad(kept, batch))
        nats = ctc_losses(output.log_probs, batch.num_frames, batch.labels).sum()
        total = nats + added_losses(config, output, batch, len(whole))
        loss = total * (bool(mine) * num_processes / len(whole))
        if not math.isfinite(loss.item()):
            raise DivergedError(f"The loss is {loss.item()} at epoch {epoch}, batch {number}.")
        optimizer.zero_grad()
        loss.backward()
        norm_sum += float(nn.utils.clip_grad_norm_(model.parameters(), config.training.max_gradient_norm))
        optimizer.step()
        if mine:
            loss_sum, num_frames = loss_sum + nats.item(), num_frames + float(batch.num_frames.sum())
            num_big += float(output.used_big.detach().sum())
    loss_sum, num_frames, num_big = distributed.sum_over_processes(loss_sum, num_frames, num_big)
    lengths = [len(example.frames) for example in examples.train]
    macs = training_macs(config, part_macs(config, len(examples.labels)), lengths, int(num_big))
    return {
        "train_loss_nats": loss_sum / len(examples.train),
        "train_routing_rate": num_big / num_frames,
        "train_macs_per_frame": macs / num_frames,
        "train_frames_per_s": num_frames / (time.perf_counter() - started),
        "gradient_norm": norm_sum / len(batches),
    }


def added_losses(config: AsrConfig, output: Output, batch: Batch, batch_size: int) -> Float[Tensor, ""]:
    """The learned controller's penalty and the weighted loss of the autoregressive model, summed over a batch."""
    total = output.log_probs.new_zeros(())
    if isinstance(config.controller, Learned):
        total = total + controllers.penalty(config.controller, output.used_big, batch.num_frames, batch_size)
    if config.ar_loss_weight is not None:
        total = total + config.ar_loss_weight * output.surprisals[batch.valid.to(output.surprisals.device)].sum()
    return total
