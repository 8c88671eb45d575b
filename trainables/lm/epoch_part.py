"""A part of an epoch: the windows between two reports, and the state of all streams between two parts."""

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from trainables import distributed, rng
from trainables.errors import DivergedError
from trainables.lm import noise
from trainables.lm.config import LmConfig
from trainables.lm.cuda_graph import CudaGraph, Work
from trainables.lm.evaluation import mine, num_mine
from trainables.lm.meters import Meters
from trainables.lm.network import AttachedRecoder, Network, Run
from trainables.lm.noise import Noise
from trainables.lm.optimisation import learning_rate
from trainables.lm.streams import NO_TARGET, Streams, Window


def train_part(
    config: LmConfig, network: Network, streams: Streams, losses: list[float], state: Tensor
) -> tuple[dict[str, float], Tensor]:
    """The windows up to the next report; returns what to report of them, and the state behind them.

    Raises:
        DivergedError: when the gradient is no finite number.
    """
    training, done = config.training, len(losses) - 1
    epoch, part = divmod(done, training.reports_per_epoch)
    attached = network.own if epoch >= training.num_plain_epochs else None
    recoder = attached.recoder if attached else None
    rate = learning_rate(training, losses)
    steps = list(network.steps.parameters()) if network.steps else []
    others = [parameter for parameter in network.parameters() if all(parameter is not step for step in steps)]
    decaying: dict[str, Any] = {"params": others, "weight_decay": training.weight_decay}
    optimizer = torch.optim.SGD([decaying, {"params": steps}], lr=rate)
    if part == 0:
        state = network.zeros(num_mine(training.batch_size), recoder)
    first, last = (streams.num_windows * i // training.reports_per_epoch for i in (part, part + 1))
    device, meters, started = distributed.device(), Meters(), time.perf_counter()
    num_targets = torch.ones((), device=device)
    is_fixed = not (recoder and recoder.skips_shut_rows)
    learn = CudaGraph(_learning(config, network, attached, streams, num_targets), list(network.parameters()), is_fixed)
    network.train()
    for index in range(first, last):
        whole = streams.window(index)
        num_tokens = int((whole.targets != NO_TARGET).sum())
        num_targets.fill_(num_tokens)
        generator = torch.Generator(device).manual_seed(rng.derive(config.seed, "train", epoch, index))
        shape = (whole.inputs.shape[0], whole.inputs.shape[1])
        drawn = noise.draw(config, recoder, shape, network.vocabulary_size, generator, is_training=True)
        window, drawn = mine(whole.to(device), drawn)
        run = learn(window, state, drawn)
        distributed.sum_gradients(network.parameters())
        norm = float(nn.utils.clip_grad_norm_(network.parameters(), training.max_gradient_norm))
        if not math.isfinite(norm):
            raise DivergedError(
                f"The loss's gradient is {norm} at window {index} of epoch {epoch + 1}; lower the learning rate."
            )
        optimizer.step()
        state = run.state
        meters.add(run, window.targets != NO_TARGET, num_tokens, norm)
    metrics = meters.metrics()
    metrics["train_tokens_per_s"] = meters.num_tokens / (time.perf_counter() - started)
    metrics["learning_rate"] = rate
    return metrics, state


def _learning(
    config: LmConfig, network: Network, attached: AttachedRecoder | None, streams: Streams, num_targets: Tensor
) -> Work:
    """The work of a window: gradients of the mean loss over `num_targets` tokens, those of all processes.

    A captured graph repeats it on other numbers in the same memory, so the number of tokens is a tensor.
    """
    is_half = config.training.precision == "bfloat16" and num_targets.is_cuda
    num_tokens, num_processes = streams.num_tokens, distributed.world_size()

    def learn(window: Window, state: Tensor, drawn: Noise) -> Run:
        with torch.autocast(num_targets.device.type, torch.bfloat16, enabled=is_half):
            run: Run = network(window, state, drawn, attached)
            total = run.loss.sum() / num_targets + network.anchor_penalty(num_tokens) / num_processes
        total.backward()
        return run

    return learn


def all_streams(state: Tensor, batch_size: int) -> Tensor:
    """The state of the streams of all processes in their order (A, copies, streams, H)."""
    parts = distributed.gather(state.cpu())
    num_copies = parts[0].shape[1] // len(range(0, batch_size, len(parts)))
    whole = state.new_empty((len(state), num_copies, batch_size, state.shape[-1]), device="cpu")
    for rank, part in enumerate(parts):
        rows = whole[:, :, rank :: len(parts)]
        rows.copy_(part.view_as(rows))
    return whole


def my_streams(whole: Tensor) -> Tensor:
    """This process's share of what `all_streams` gives (A R H), on its device."""
    return whole[:, :, distributed.share()].flatten(1, 2).to(distributed.device())
