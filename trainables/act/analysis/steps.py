"""Ponder by step: on sequences of addition and sort (Graves 2016, figures 15 and 20), by difficulty, and counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trainables.act.analysis.trained import ponder_of, results_of
from trainables.act.config import ActConfig, Addition, Evaluation, Fixed, Sort
from trainables.act.tasks import data, places
from trainables.act.tasks.addition import BASE, END
from trainables.act.tasks.batch import Batch
from trainables.analysis import Cells
from trainables.errors import InputError


def by_step(
    config: ActConfig, checkpoint: Path, evaluation: Evaluation, lengths: Sequence[int], task: Addition | Sort
) -> Cells:
    """N and N + R of each step of test sequences with so many numbers; of addition also the digits that are summed."""
    sequences = data.test_set(config, evaluation)
    num_numbers = sequences.num_steps.numpy() // (2 if isinstance(task, Sort) else 1)
    rows = []
    for i, length in enumerate(lengths):
        found, skipped = np.flatnonzero(num_numbers == length), lengths[:i].count(length)
        if len(found) <= skipped:
            raise InputError(f"`lengths` must be of test sequences, but {len(found)} of them have {length} numbers.")
        rows.append(int(found[skipped]))
    results = results_of(config, checkpoint, sequences, evaluation)  # of all: PonderNet draws by place in the test
    measures = dict(ponder_of(results))
    if isinstance(task, Addition):
        measures["digits"] = places.digits_summed(sequences).astype(float)
    cells: dict[tuple[Any, ...], float] = {}
    for number, row in enumerate(rows):
        sequence = sequences.rows(slice(row, row + 1))
        for step in range(int(sequence.num_steps[0])):
            is_last = isinstance(task, Sort) and step == lengths[number] - 1
            name = (number + 1, step + 1, _read(task, sequence, step), _target(task, sequence, step), is_last)
            cells |= {(*name, measure): float(values[row, step]) for measure, values in measures.items()}
    return cells


def _read(task: Addition | Sort, sequence: Batch, step: int) -> str:
    """What comes in, for people."""
    if isinstance(task, Sort):
        return f"{sequence.inputs[0, step, 0]:.2f}" if 2 * step < int(sequence.num_steps[0]) else "\u00b7"
    digits = sequence.inputs[0, step].view(-1, BASE)
    return "".join(str(int(place.argmax())) for place in digits if place.any())


def _target(task: Addition | Sort, sequence: Batch, step: int) -> str:
    """What must come out; empty where nothing is asked."""
    if not sequence.has_target[0, step]:
        return ""
    return "".join(str(label) for label in sequence.targets[0, step].tolist() if isinstance(task, Sort) or label != END)


def by_difficulty(config: ActConfig, checkpoint: Path, evaluation: Evaluation, length: int | None) -> Cells:
    """Mean N and N + R, and the error where there are targets, at each difficulty of the test's steps.

    Args:
        length: only sequences of so many steps.

    Raises:
        InputError: if there are none, or at some difficulty nothing is asked.
    """
    results = results_of(config, checkpoint, data.test_set(config, evaluation), evaluation)
    is_chosen = results.is_step & (results.num_steps == (results.num_steps if length is None else length))[:, None]
    if not is_chosen.any():
        raise InputError(f"`length` must be of test sequences, but none of them has {length} steps.")
    cells: dict[tuple[Any, ...], float] = {}
    for level in np.unique(results.difficulty[is_chosen]).tolist():
        steps = is_chosen & (results.difficulty == level)
        cells |= {(level, name): float(values[steps].mean()) for name, values in ponder_of(results).items()}
        is_target = steps & results.has_target
        if not is_target.any():
            raise InputError(
                f"Some step of each difficulty must have a target, but none of difficulty {level} has in these "
                "sequences; leave out `length`, or give it another number."
            )
        cells[level, "step_error"] = float(1 - results.is_right[is_target].mean())
    return cells


def counts(config: ActConfig, checkpoint: Path, evaluation: Evaluation, most: int) -> Cells:
    """The share of the test's steps with 1, 2, ... updates; those with `most` and more are counted together."""
    results = results_of(config, checkpoint, data.test_set(config, evaluation), evaluation)
    halting = config.halting
    limit = halting.num_updates if isinstance(halting, Fixed) else halting.max_updates
    updates = results.num_updates[results.is_step]
    last = min(most, limit)
    names = {n: f"{n}+" if n == last < limit else str(n) for n in range(1, last + 1)}
    return {(name, "share"): float((np.minimum(updates, last) == n).mean()) for n, name in names.items()}
