"""Testing a network: what it made of every step, and the metrics that follow from it."""

import math
import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from trainables import distributed, rng
from trainables.act import cost
from trainables.act.byte_kinds import kinds_of
from trainables.act.config import (
    ActConfig,
    Adaptive,
    Addition,
    EarlyExit,
    Fixed,
    Halts,
    LearntTau,
    Mass,
    PonderNet,
    Sort,
    Text,
)
from trainables.act.metrics import MAX_DIFFICULTY
from trainables.act.network import Network
from trainables.act.tasks import places
from trainables.act.tasks.batch import Batch

MAX_SEQUENCES, MAX_STEPS = 500, 20_000
"""Tested at once: so many sequences, but no more steps than that, and one sequence at least."""

EXCESS_NATS = 1000.0
TOLERANCE = 1.02
"""A checkpoint whose mean updates exceed its budget by no more than this is as good as one that meets it."""


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
        is_step: NDArray[np.bool_] = np.arange(self.num_updates.shape[1]) < self.num_steps[:, None]
        return is_step

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
        """Mean number of updates per step."""
        return float(self.num_updates.sum() / self.num_steps.sum())

    @property
    def step_error(self) -> float:
        """Share of the steps with a target that have not all of it right."""
        return float(1 - self.is_right.sum() / self.has_target.sum())

    @property
    def sequence_error(self) -> float:
        """Share of the sequences with a target that have not all of their steps right."""
        has_any_target = np.any(self.has_target, axis=1)
        is_right = np.all(self.is_right | ~self.has_target, axis=1)
        return float(1 - is_right[has_any_target].mean())


@torch.no_grad()
def score(network: Network, sequences: Batch, halts: Halts | None = None) -> Results:
    """Runs all `sequences`, the processes sharing the work; their order is kept."""
    network.eval()
    draws = draws_of(network.config, sequences, halts)
    count = distributed.world_size()
    size = min(MAX_SEQUENCES, max(1, MAX_STEPS // sequences.targets.shape[1]), -(-len(sequences) // count))
    starts = range(0, len(sequences), size)
    parts = [slice(start, start + size) for start in starts[distributed.share()]]
    mine = [_test_batch(network, sequences.rows(part), draws[part], halts) for part in parts]
    everyones = distributed.gather(mine)
    in_order = [everyones[i % count][i // count] for i in range(len(starts))]
    names = [field.name for field in fields(Results)]
    return Results(**{name: np.concatenate([getattr(part, name) for part in in_order]) for name in names})


def draws_of(config: ActConfig, sequences: Batch, halts: Halts | None, *stream: object) -> Float[Tensor, "B T"]:
    """What decides where PonderNet halts, or which update of an early exit goes on in training.

    Drawn from the config's seed, the same whatever else runs; without chance where an evaluation says how steps end.
    """
    shape = sequences.targets.shape[:2]
    if isinstance(halts, Mass):
        return torch.full(shape, halts.reached)
    if isinstance(config.halting, PonderNet) or (stream and isinstance(config.halting, EarlyExit)):
        random = rng.numpy_generator(config.seed, "halting", *stream)
        return torch.from_numpy(random.random(shape, dtype=np.float32))
    return torch.zeros(shape)


def _test_batch(network: Network, whole: Batch, draws: Float[Tensor, "B T"], halts: Halts | None) -> Results:
    started = time.perf_counter()
    device = distributed.device()
    batch = whole.to(device)
    run = network(batch.inputs, batch.num_steps, batch.has_target, None, draws.to(device), halts)
    log_probs = run.log_probs.cpu()
    duration_s = time.perf_counter() - started
    targets = whole.targets[whole.has_target]

    def spread(values: Tensor) -> NDArray[Any]:
        """Values of the wanted steps, at their places (B T)."""
        placed = values.new_zeros(whole.has_target.shape)
        placed[whole.has_target] = values
        return placed.numpy()

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
    """The cross-entropy of each step in nats, summed over its K classifications."""
    return -log_probs.gather(-1, targets[:, :, None]).sum((1, 2))


def validate(config: ActConfig, network: Network, validation: Batch) -> dict[str, float]:
    """The metrics of the validation set, also under the rule of halting of each evaluation that has its own.

    Those choose the checkpoint of that evaluation.
    """
    metrics = valid_metrics(config, score(network, validation))
    for evaluation in config.evaluations:
        if halts := evaluation.halts:
            values = valid_metrics(config, score(network, validation, halts), halts)
            metrics |= {f"{name}@{evaluation.name}": value for name, value in values.items()}
    return metrics


def valid_metrics(config: ActConfig, results: Results, halts: Halts | None = None) -> dict[str, float]:
    """The metrics of the validation set, halted by `halts` where it is given."""
    metrics = {
        "valid_loss_nats": results.loss_nats,
        "valid_step_error": results.step_error,
        "valid_mean_updates": results.mean_updates,
        "valid_objective": objective(config, results),
        "valid_macs_per_sequence": macs_per_sequence(config, results, halts),
    }
    if not isinstance(config.data, Text):
        metrics["valid_sequence_error"] = results.sequence_error
    return metrics


def objective(config: ActConfig, results: Results) -> float:
    """What chooses a checkpoint; less is better.

    Of ACT and fixed updates what training minimises, with the budget, if there is one, as a limit. Of PonderNet and
    early exit the loss where the steps ended, under the rule they are tested by: training minimises the mean over all
    updates, and PonderNet's divergence from its prior.
    """
    if not isinstance(config.halting, Adaptive):
        return results.loss_nats
    if isinstance(config.halting.tau, LearntTau):
        excess = results.mean_updates - TOLERANCE * config.halting.tau.mean_updates
        return results.loss_nats + EXCESS_NATS * max(0.0, excess)
    return results.loss_nats + config.halting.tau * results.ponder


def test_metrics(config: ActConfig, results: Results, sequences: Batch, halts: Halts | None = None) -> dict[str, float]:
    """The metrics of the test set."""
    metrics = {
        "test_loss_nats": results.loss_nats,
        "step_error": results.step_error,
        "majority_step_error": majority_step_error(sequences),
    }
    if isinstance(config.data, Text):
        metrics["bits_per_character"] = float(results.nats.sum() / results.has_target.sum() / math.log(2))
        metrics |= text_metrics(results, sequences)
    else:
        metrics["sequence_error"] = results.sequence_error
    metrics |= updates_metrics(config, results) | place_metrics(config, results, sequences)
    metrics["macs_per_sequence"] = macs_per_sequence(config, results, halts)
    metrics["eval_sequences_per_s"] = len(results.num_steps) / float(results.duration_s.sum())
    return metrics


def majority_step_error(sequences: Batch) -> float:
    """The step error of always the same answer, the one that is right most often: what needs no learning."""
    targets = sequences.targets[sequences.has_target]
    return 1 - int(targets.unique(dim=0, return_counts=True)[1].max()) / len(targets)


def updates_metrics(config: ActConfig, results: Results) -> dict[str, float]:
    """Mean and distribution of N, and its mean at each difficulty."""
    updates, difficulty = results.num_updates[results.is_step], results.difficulty[results.is_step]
    halting = config.halting
    metrics = {
        "mean_updates": results.mean_updates,
        "std_updates": float(updates.std()),
        "max_updates": float(updates.max()),
        "mean_ponder": results.ponder * len(results.num_steps) / len(updates),
    }
    metrics |= {f"p{percent}_updates": float(np.percentile(updates, percent)) for percent in (10, 50, 90)}
    if not isinstance(halting, Fixed):
        metrics["share_at_limit"] = float((updates == halting.max_updates).mean())
    for level in range(1, min(int(difficulty.max()), MAX_DIFFICULTY) + 1):
        if (difficulty == level).any():
            metrics[f"mean_updates_difficulty_{level}"] = float(updates[difficulty == level].mean())
    return metrics | difficulty_metrics(updates[difficulty > 0], difficulty[difficulty > 0])


def difficulty_metrics(updates: NDArray[np.integer], difficulty: NDArray[np.integer]) -> dict[str, float]:
    """Whether N follows the difficulty of a step: slope and correlation, where there are."""
    metrics = {"updates_per_difficulty": slope(updates, difficulty)}
    if len(difficulty):
        metrics["updates_difficulty_correlation"] = correlation(updates, difficulty)
    return {name: value for name, value in metrics.items() if value is not None}


def place_metrics(config: ActConfig, results: Results, sequences: Batch) -> dict[str, float]:
    """The ponder of addition beyond the digits that are summed; N of sort near the end of the items and elsewhere."""
    match config.data:
        case Addition():
            beyond = results.num_updates + results.remainders - places.digits_summed(sequences)
            return {"ponder_above_digits": float(beyond[results.has_target].mean())}
        case Sort():
            is_end = places.is_end_of_input(sequences)
            elsewhere = results.is_step & ~is_end
            groups = {"mean_updates_end_of_input": is_end & results.is_step, "mean_updates_elsewhere": elsewhere}
            return {name: float(results.num_updates[chosen].mean()) for name, chosen in groups.items() if chosen.any()}
        case _:
            return {}


def text_metrics(results: Results, sequences: Batch) -> dict[str, float]:
    """N at the kinds of bytes, and with the surprisal and entropy of what comes next."""
    is_step = results.is_step
    read, following = (part.numpy()[is_step] for part in (sequences.inputs, sequences.targets[:, :, 0]))
    updates, bits = results.num_updates[is_step], results.nats[is_step] / math.log(2)
    kinds = {name: kind for name, kind in kinds_of(read, following).items() if kind.any()}
    metrics = {f"mean_updates_{name}": float(updates[kind].mean()) for name, kind in kinds.items()}
    metrics |= {f"surprisal_bits_{name}": float(bits[kind].mean()) for name, kind in kinds.items()}
    for name, values in (("surprisal", results.nats[is_step]), ("entropy", results.entropies[is_step])):
        coefficient = correlation(updates, values)
        if coefficient is not None:
            metrics[f"updates_{name}_correlation"] = coefficient
    return metrics


def correlation(a: NDArray[np.integer], b: NDArray[np.number]) -> float | None:
    """Pearson's; None where one of the two does not vary."""
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else None


def slope(values: NDArray[np.integer], over: NDArray[np.integer]) -> float | None:
    """The slope of the least-squares line; None where `over` does not vary."""
    if len(over) == 0 or over.std() == 0:
        return None
    centred = over - over.mean()
    return float((centred * (values - values.mean())).sum() / (centred**2).sum())


def macs_per_sequence(config: ActConfig, results: Results, halts: Halts | None = None) -> float:
    """Mean multiply-accumulates of one sequence."""
    num_steps, num_targets = int(results.num_steps.sum()), int(results.has_target.sum())
    total = cost.testing_macs(config, halts, num_steps, results.num_updates, num_targets)
    return total / len(results.num_steps)
