"""How many states and inputs a recoder has: what its cost needs, without torch."""

from typing import Final

from trainables.lm.config import PredictedStep, Recoder, Step, Variational

HIDDEN_SIZES: Final = (300, 100)
"""Of the network that predicts a step size."""


def num_copies(recoder: Recoder | None) -> int:
    """How many states each sequence has: K under variational dropout, else 1."""
    return recoder.signal.num_samples if recoder and isinstance(recoder.signal, Variational) else 1


def num_predictor_inputs(config: Step, hidden_size: int, vocabulary_size: int) -> int:
    """How many numbers a network that predicts a step size reads."""
    return vocabulary_size if isinstance(config, PredictedStep) and config.source == "output" else hidden_size
