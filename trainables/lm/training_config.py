"""What can be set of how a language model is trained."""

from typing import Annotated, Literal

from pydantic import Field

from trainables.config import Config, Count, Positive
from trainables.patience import Patience

Rate = Annotated[float, Field(ge=0, lt=1)]


class Dropout(Config):
    """On the embeddings and on what is decoded, and between the layers as well (released: not)."""

    rate: Rate = Field(0.15, description="probability of dropping")
    between_layers: bool = True


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
