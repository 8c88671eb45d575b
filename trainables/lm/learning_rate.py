"""The learning rate, from what validation has said so far."""

import math
from collections.abc import Sequence

from trainables.lm.training_config import CutOnPlateau, Optimisation


def learning_rate(config: Optimisation, losses: Sequence[float]) -> float:
    """The rate to go on with.

    Args:
        config: with the rate at the start, and when and by how much it is cut.
        losses: of every validation so far; the first is the untrained model's.
    """
    schedule = config.schedule
    if isinstance(schedule, CutOnPlateau):
        num_cuts = _num_not_improving(losses) // schedule.patience
    else:
        num_cuts = _num_not_improving(losses[:: config.reports_per_epoch])
    return config.learning_rate * math.pow(schedule.factor, num_cuts)


def _num_not_improving(losses: Sequence[float]) -> int:
    """How many of them are not below all before them."""
    return sum(not losses[i] < min(losses[:i]) for i in range(1, len(losses)))
