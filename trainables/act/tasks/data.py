"""Batches of every task, for training, validation and test."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from trainables import rng
from trainables.act.config import ActConfig, Addition, Data, Evaluation, Logic, Parity, Sort, Text
from trainables.act.tasks import addition, logic, parity, sort, text, text_file
from trainables.act.tasks.batch import Batch
from trainables.errors import InputError


@dataclass(frozen=True)
class Sizes:
    """What goes in and out of a network at one step.

    Attributes:
        num_inputs: length of the input vector, or number of symbols.
        is_symbol: whether a step is one of so many symbols.
        num_outputs: K, classifications made at once.
        num_classes: of each.
    """

    num_inputs: int
    is_symbol: bool
    num_outputs: int
    num_classes: int

    @property
    def num_logits(self) -> int:
        """Numbers to read out for one classification: two classes are told apart by one."""
        return 1 if self.num_classes == 2 else self.num_classes


def sizes(data: Data) -> Sizes:
    """The sizes of a task."""
    match data:
        case Parity():
            return Sizes(data.num_bits, False, 1, parity.NUM_CLASSES)
        case Logic():
            return Sizes(logic.num_inputs(data), False, 1, logic.NUM_CLASSES)
        case Addition():
            return Sizes(addition.num_inputs(data), False, data.num_sum_digits, addition.NUM_CLASSES)
        case Sort():
            return Sizes(sort.NUM_INPUTS, False, 1, data.num_items)
        case Text():
            return Sizes(text.NUM_BYTES, True, 1, text.NUM_BYTES)


def training_batches(config: ActConfig, iterations: Iterable[int]) -> Iterator[Batch]:
    """The batch of each of the `iterations`, always the same for a seed; a text is looked at once for all of them."""
    task, size = config.data, config.training.batch_size
    streams = (rng.numpy_generator(config.seed, "train", iteration) for iteration in iterations)
    if isinstance(task, Text):
        part = text_file.split(task).train
        return (text.excerpts(task, part, size, random) for random in streams)
    return (make(task, size, random) for random in streams)


def validation_set(config: ActConfig) -> Batch:
    """Sequences for validation: the same for every seed.

    Raises:
        InputError: if nothing is asked in any of them.
    """
    count = config.num_validation_sequences
    if isinstance(config.data, Text):
        return text.consecutive(config.data, text_file.split(config.data).validation, count)
    return _asking(make(config.data, count, rng.numpy_generator(0, "validation")), "num_validation_sequences")


def test_set(config: ActConfig, evaluation: Evaluation) -> Batch:
    """Sequences for test, of the evaluation's task: the same for every seed of training.

    Raises:
        InputError: if nothing is asked in any of them.
    """
    task = evaluation.data or config.data
    if isinstance(task, Text):
        return text.consecutive(task, text_file.split(task).test, evaluation.num_sequences)
    sequences = make(task, evaluation.num_sequences, rng.numpy_generator(evaluation.seed, "test"))
    return _asking(sequences, f"num_sequences of the evaluation {evaluation.name!r}")


def _asking(sequences: Batch, name: str) -> Batch:
    if not sequences.has_target.any():
        raise InputError(f"{name} must be larger: none of its {len(sequences)} sequences has a target.")
    return sequences


def make(data: Parity | Logic | Addition | Sort, count: int, random: np.random.Generator) -> Batch:
    """`count` sequences of a generated task."""
    match data:
        case Parity():
            return parity.make(data, count, random)
        case Logic():
            return logic.make(data, count, random)
        case Addition():
            return addition.make(data, count, random)
        case Sort():
            return sort.make(data, count, random)
