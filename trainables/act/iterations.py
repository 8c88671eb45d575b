"""The iterations between two reports."""

import math
import time
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from trainables import distributed
from trainables.act import cost
from trainables.act.config import ActConfig, PonderNet
from trainables.act.evaluation import cross_entropies, draws_of
from trainables.act.network import Run, Unrolled
from trainables.act.tasks import data
from trainables.act.tasks.batch import Batch
from trainables.act.time_penalty import next_tau
from trainables.conditional.early_exit import exits_loss
from trainables.conditional.ponder_net import divergence, expected
from trainables.errors import DivergedError


def train_until(
    config: ActConfig, model: nn.Module, optimizer: torch.optim.Optimizer, tau: float, done: int, last: int
) -> tuple[dict[str, float], float]:
    """Iterations `done` + 1 to `last`; returns what to report of them, and tau behind them.

    Raises:
        DivergedError: when the loss or its gradient is no finite number.
    """
    model.train()
    started, size, num_processes = time.perf_counter(), config.training.batch_size, distributed.world_size()
    loss_sum = norm_sum = updates_sum = steps_sum = macs_sum = 0.0
    iterations = range(done + 1, last + 1)
    for iteration, whole in zip(iterations, data.training_batches(config, iterations), strict=True):
        batch = whole.rows(distributed.share()).to(distributed.device())
        draws = draws_of(config, whole, None, iteration)[distributed.share()].to(distributed.device())
        optimizer.zero_grad()
        nats, num_updates, run_state = 0.0, 0, None
        for steps, window in _windows(batch, config.training.truncate_steps):
            run = model(window.inputs, window.num_steps, window.has_target, run_state, draws[:, steps])
            losses, total = losses_of(config, run, window.targets[window.has_target], tau)
            (total * (num_processes / size)).backward()
            nats, num_updates = nats + losses.sum().item(), num_updates + int(run.num_updates.sum())
            run_state = tuple(part.detach() for part in run.state)
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.training.max_gradient_norm or math.inf))
        if not (math.isfinite(nats) and math.isfinite(norm)):
            raise DivergedError(f"The loss is {nats / size} and its gradient {norm} at iteration {iteration}.")
        optimizer.step()
        sums = distributed.sum_over_processes(
            nats, num_updates, float(batch.num_steps.sum()), float(batch.has_target.sum())
        )
        tau = next_tau(config.halting, tau, sums[1] / sums[2])
        loss_sum, updates_sum, steps_sum = loss_sum + sums[0], updates_sum + sums[1], steps_sum + sums[2]
        macs_sum += cost.training_macs(config, int(sums[2]), int(sums[1]), int(sums[3]))
        norm_sum += norm
    num_iterations = last - done
    metrics = {
        "train_loss_nats": loss_sum / (num_iterations * size),
        "train_mean_updates": updates_sum / steps_sum,
        "train_macs_per_sequence": macs_sum / (num_iterations * size),
        "train_sequences_per_s": num_iterations * size / (time.perf_counter() - started),
        "gradient_norm": norm_sum / num_iterations,
        "tau": tau,
    }
    return metrics, tau


def losses_of(config: ActConfig, run: Run | Unrolled, targets: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """The cross-entropy of every wanted step, and the sum that is minimised."""
    if isinstance(run, Run):
        losses = cross_entropies(run.log_probs, targets)
        return losses, losses.sum() + tau * (run.num_updates + run.remainder).sum()
    every = cross_entropies(run.log_probs.flatten(0, 1), targets.repeat_interleave(run.log_probs.shape[1], 0))
    every, halting = every.view_as(run.log_p_wanted), config.halting
    if not isinstance(halting, PonderNet):
        losses = exits_loss(every)
        return losses, losses.sum()
    losses = expected(every, run.log_p_wanted)
    return losses, losses.sum() + halting.beta * divergence(run.log_p, halting.lambda_p).sum()


def _windows(batch: Batch, num_steps: int | None) -> Iterator[tuple[slice, Batch]]:
    """The batch cut every `num_steps` steps, and which these are; not cut at all without that number."""
    length = batch.targets.shape[1]
    size = num_steps or length
    for start in range(0, length, size):
        steps = slice(start, start + size)
        window = Batch(
            batch.inputs[:, steps],
            (batch.num_steps - start).clamp(0, size),
            batch.targets[:, steps],
            batch.difficulty[:, steps],
        )
        yield steps, window
