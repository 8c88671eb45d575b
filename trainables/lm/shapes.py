"""How many states and inputs a recoder has: what its cost needs, without torch."""

from typing import Final

from trainables.lm.config import Recoder, Variational
from trainables.lm.step_config import FixedByLayer, PredictedStep, Step

HIDDEN_SIZES: Final = (300, 100)
"""The hidden layers of the network that predicts a step size."""


def num_copies(recoder: Recoder | None) -> int:
    """How many states each sequence has: K under variational dropout, else 1."""
    return recoder.signal.num_samples if recoder and isinstance(recoder.signal, Variational) else 1


def num_predictor_inputs(config: Step, hidden_size: int, vocabulary_size: int) -> int:
    """How many numbers a network that predicts a step size reads."""
    return vocabulary_size if isinstance(config, PredictedStep) and config.source == "output" else hidden_size


def recoded_activations(config: Step, num_layers: int) -> list[int]:
    """Which of the A activations are recoded, in their order: all, but those with a fixed size of 0."""
    if isinstance(config, FixedByLayer):
        return [number for number, size in enumerate(config.sizes) if size]
    return list(range(2 * num_layers))


def lowest_recoded(config: Step, num_layers: int) -> int:
    """The lowest layer, from 0, of which h or c is recoded: the gradient need not go below."""
    return recoded_activations(config, num_layers)[0] // 2
