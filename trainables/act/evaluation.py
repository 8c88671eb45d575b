"""Testing a network: what it made of every step, from which all metrics follow."""

import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from trainables import distributed
from trainables.act.network import Network
from trainables.act.tasks.batch import Batch

MAX_SEQUENCES, MAX_STEPS = 500, 20_000
"""Tested at once: so many sequences, but no more steps than that, and one sequence at least."""


@dataclass(frozen=True, eq=False)
class Results:
    """Arrays (B T) over all sequences and steps; 0 or False behind the end of a sequence.

    Attributes:
        num_steps: of each sequence (B).
        num_updates: N(t).
        remainders: R(t).
        has_target: whether anything is asked.
        is_right: whether all classifications of a step are.
        nats: cross-entropy of a step's target, summed over its classifications: the surprisal of what came.
        entropies: of the predictions, in nats, summed likewise.
        difficulty: of each step.
        duration_s: from inputs to predictions (1).
    """

    num_steps: NDArray[np.int64]
    num_updates: NDArray[np.int64]
    remainders: NDArray[np.float64]
    has_target: NDArray[np.bool_]
    is_right: NDArray[np.bool_]
    nats: NDArray[np.float64]
    entropies: NDArray[np.float64]
    difficulty: NDArray[np.int64]
    duration_s: NDArray[np.float64]

    @property
    def is_step(self) -> NDArray[np.bool_]:
        """Whether a step is there (B T)."""
        found: NDArray[np.bool_] = np.arange(self.num_updates.shape[1]) < self.num_steps[:, None]
        return found

    @property
    def loss_nats(self) -> float:
        """Mean over sequences of their summed cross-entropy."""
        return float(self.nats.sum() / len(self.num_steps))

    @property
    def ponder(self) -> float:
        """Mean over sequences of their summed N + R."""
        return float((self.num_updates + self.remainders).sum() / len(self.num_steps))

    @property
    def mean_updates(self) -> float:
        """Per step."""
        return float(self.num_updates.sum() / self.num_steps.sum())

    @property
    def step_error(self) -> float:
        """Share of the steps with a target that have not all of it right."""
        return float(1 - self.is_right.sum() / self.has_target.sum())

    @property
    def sequence_error(self) -> float:
        """Share of the sequences with a target that have not all of their steps right."""
        is_asked = np.any(self.has_target, axis=1)
        is_right = np.all(self.is_right | ~self.has_target, axis=1)
        return float(1 - is_right[is_asked].mean())


def _joined(parts: list[Results]) -> Results:
    """All sequences, one after another."""
    names = [field.name for field in fields(Results)]
    return Results(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


@torch.no_grad()
def score(network: Network, sequences: Batch) -> Results:
    """Runs all `sequences`, the processes sharing the work; their order is kept."""
    network.eval()
    count = distributed.world_size()
    size = min(MAX_SEQUENCES, max(1, MAX_STEPS // sequences.targets.shape[1]), -(-len(sequences) // count))
    starts = range(0, len(sequences), size)
    mine = [_test_batch(network, sequences.rows(slice(start, start + size))) for start in starts[distributed.share()]]
    everyones = distributed.gather(mine)
    return _joined([everyones[i % count][i // count] for i in range(len(starts))])


def _test_batch(network: Network, whole: Batch) -> Results:
    started = time.perf_counter()
    batch = whole.to(distributed.device())
    run = network(batch.inputs, batch.num_steps, batch.has_target)
    log_probs = run.log_probs.cpu()
    duration_s = time.perf_counter() - started
    targets = whole.targets[whole.has_target]

    def spread(values: Tensor) -> NDArray[Any]:
        """Values of the wanted steps, at their places (B T)."""
        found = values.new_zeros(whole.has_target.shape)
        found[whole.has_target] = values
        return found.numpy()

    return Results(
        num_steps=whole.num_steps.numpy(),
        num_updates=run.num_updates.cpu().numpy(),
        remainders=run.remainder.double().cpu().numpy(),
        has_target=whole.has_target.numpy(),
        is_right=spread((log_probs.argmax(-1) == targets).all(-1)),
        nats=spread(cross_entropies(log_probs, targets).double()),
        entropies=spread(-(log_probs.double() * log_probs.double().exp()).sum((1, 2))),
        difficulty=whole.difficulty.numpy(),
        duration_s=np.array([duration_s]),
    )


def cross_entropies(log_probs: Float[Tensor, "W K C"], targets: Int[Tensor, "W K"]) -> Float[Tensor, " W"]:
    """In nats, of each step, summed over its K classifications."""
    return -log_probs.gather(-1, targets[:, :, None]).sum((1, 2))
