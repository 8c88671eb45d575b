"""From the results of a test to its metrics."""

import math
import string

import numpy as np
from numpy.typing import NDArray

from trainables.act import cost
from trainables.act.config import ActConfig, Adaptive, LearntTau, Text
from trainables.act.evaluation import Results
from trainables.act.metrics import MAX_DIFFICULTY
from trainables.act.tasks.batch import Batch

EXCESS_NATS = 1000.0
TOLERANCE = 1.02
"""A checkpoint whose mean updates exceed its budget by no more than this is as good as one that meets it."""

SPACE, PUNCTUATION = (np.frombuffer(text.encode(), np.uint8) for text in (string.whitespace, string.punctuation))


def valid_metrics(config: ActConfig, results: Results) -> dict[str, float]:
    """Of the validation set."""
    metrics = {
        "valid_loss_nats": results.loss_nats,
        "valid_step_error": results.step_error,
        "valid_mean_updates": results.mean_updates,
        "valid_objective": objective(config, results),
    }
    if not isinstance(config.data, Text):
        metrics["valid_sequence_error"] = results.sequence_error
    return metrics


def objective(config: ActConfig, results: Results) -> float:
    """What training minimises, with the budget, if there is one, as a limit."""
    if not isinstance(config.halting, Adaptive):
        return results.loss_nats
    if isinstance(config.halting.tau, LearntTau):
        excess = results.mean_updates - TOLERANCE * config.halting.tau.mean_updates
        return results.loss_nats + EXCESS_NATS * max(0.0, excess)
    return results.loss_nats + config.halting.tau * results.ponder


def test_metrics(config: ActConfig, results: Results, sequences: Batch) -> dict[str, float]:
    """Of the test set."""
    metrics = {"test_loss_nats": results.loss_nats, "step_error": results.step_error}
    if isinstance(config.data, Text):
        metrics["bits_per_character"] = float(results.nats.sum() / results.has_target.sum() / math.log(2))
        metrics |= text_metrics(results, sequences)
    else:
        metrics["sequence_error"] = results.sequence_error
    metrics |= updates_metrics(config, results)
    metrics["macs_per_sequence"] = macs_per_sequence(config, results)
    metrics["eval_sequences_per_s"] = len(results.num_steps) / float(results.duration_s.sum())
    return metrics


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
    if isinstance(halting, Adaptive):
        metrics["share_at_limit"] = float((updates == halting.max_updates).mean())
    for level in range(1, min(int(difficulty.max()), MAX_DIFFICULTY) + 1):
        if (difficulty == level).any():
            metrics[f"mean_updates_difficulty_{level}"] = float(updates[difficulty == level].mean())
    return metrics


def text_metrics(results: Results, sequences: Batch) -> dict[str, float]:
    """N at the kinds of bytes, and with the surprisal and entropy of what comes next."""
    is_step = results.is_step
    read, updates = sequences.inputs.numpy()[is_step], results.num_updates[is_step]
    is_space, is_punctuation = np.isin(read, SPACE), np.isin(read, PUNCTUATION)
    kinds = {"space": is_space, "punctuation": is_punctuation, "letter": ~is_space & ~is_punctuation}
    metrics = {f"mean_updates_{name}": float(updates[kind].mean()) for name, kind in kinds.items() if kind.any()}
    for name, values in (("surprisal", results.nats[is_step]), ("entropy", results.entropies[is_step])):
        found = correlation(updates, values)
        if found is not None:
            metrics[f"updates_{name}_correlation"] = found
    return metrics


def correlation(a: NDArray[np.integer], b: NDArray[np.floating]) -> float | None:
    """Pearson's; None where one of the two does not vary."""
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else None


def macs_per_sequence(config: ActConfig, results: Results) -> float:
    """Mean multiply-accumulates of one sequence."""
    parts = cost.part_macs(config)
    total = parts.step * results.num_steps.sum() + parts.update * results.num_updates.sum()
    return float((total + parts.readout * results.has_target.sum()) / len(results.num_steps))
