"""How a language model is trained: what can be set, and the learning rate that follows from it."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from trainables.config import Config, Count, Positive
from trainables.patience import Patience


class HalveEachEpoch(Config):
    """The learning rate is multiplied by `factor` after an epoch that did not improve validation (thesis)."""

    kind: Literal["epoch"] = "epoch"
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5


class CutOnPlateau(Config):
    """The learning rate is multiplied by `factor` at every `patience`-th validation that did not improve (released)."""

    kind: Literal["plateau"] = "plateau"
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.25
    patience: Count = 2


class Optimisation(Config):
    """Stochastic gradient descent on windows of parallel streams of text."""

    learning_rate: Positive = 20.0
    schedule: Annotated[HalveEachEpoch | CutOnPlateau, Field(discriminator="kind")] = HalveEachEpoch()
    max_gradient_norm: Positive = 0.25
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.0, description="not of step sizes")
    batch_size: Count = Field(64, description="streams")
    window: Count = Field(35, description="tokens that gradients reach back over")
    num_epochs: Count = Field(8, description="at most, where there is `patience`")
    reports_per_epoch: Count = Field(1, description="validations and checkpoints; a step of the record is one of them")
    num_plain_epochs: Annotated[int, Field(ge=0)] = Field(
        0, description="so many at first without the recoder, though validated with it"
    )
    patience: Patience = None
    precision: Literal["float32", "bfloat16"] = Field("float32", description="of products, on CUDA alone")


def learning_rate(config: Optimisation, losses: Sequence[float]) -> float:
    """The learning rate to go on with.

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
    """The number of losses that are not below all before them."""
    return sum(not losses[i] < min(losses[:i]) for i in range(1, len(losses)))
