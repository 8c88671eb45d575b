"""What can be set: text, frozen byte model, transformer, controller, training."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ponderay import NOT_IN_KEY, Config

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]


class Text(Config):
    """A text in three parts, read as bytes; of each part its first bytes."""

    source: Literal["files", "documentation"] = Field(
        "files", description="documentation: that of Python's language, which comes with Python"
    )
    folder: Annotated[Path | None, NOT_IN_KEY] = Field(
        None, description="with train.txt, valid.txt and test.txt; default: wikitext2 in PONDERAY_DATA"
    )
    num_train_bytes: Count = 10_000_000
    num_test_bytes: Count = Field(100_000, description="of validation, too")


class ByteModel(Config):
    """The frozen model of the next byte: one hidden layer over the bytes read last."""

    num_read: Count = 6
    embedding: Count = 8
    hidden: Count = 32
    num_steps: Count = 3000
    batch_size: Count = Field(32, description="sequences")
    length: Count = Field(32, description="bytes of a sequence, all of which are predicted")
    learning_rate: Positive = 3e-3

    @model_validator(mode="after")
    def _some_bytes_are_predicted_from_all_that_is_read(self) -> Self:
        if self.length <= self.num_read:
            raise ValueError(
                f"length must be more than num_read = {self.num_read}, but got {self.length}; "
                f"give at least {self.num_read + 1}"
            )
        return self


class Pretraining(Config):
    """All that decides what the frozen model is: it is the same for each seed of the transformer."""

    text: Text
    byte_model: ByteModel
    seed: int = 1


class Always(Config):
    """All bytes take one network."""

    kind: Literal["always_small", "always_big"]


class ByRate(Config):
    """The choice of a byte holds in all layers.

    surprisal: big where the byte just read surprised the frozen model most; entropy: where the frozen model is least
    sure of the next byte; both above a threshold that the share `rate` of the training text exceeds. random: drawn.
    """

    kind: Literal["surprisal", "entropy", "random"]
    rate: Share


class Learned(Config):
    """A gate in each layer, trained straight through, with `weight` * (usage - rate)^2 added to the loss in nats."""

    kind: Literal["learned"] = "learned"
    rate: Share
    weight: Positive = 10.0


class TopK(Config):
    """Mixture-of-Depths in each layer: in training the share `rate` of a sequence, in evaluation as predicted."""

    kind: Literal["top_k"] = "top_k"
    rate: Share
    predictor_width: Count = 16


Controller = Annotated[Always | ByRate | Learned | TopK, Field(discriminator="kind")]


class Transformer(Config):
    """Pre-norm, learned positions; `small_width` and `big_width` are those of the hidden layers to choose from."""

    width: Count = 64
    num_layers: Count = 3
    num_heads: Count = 4
    small_width: Count = 32
    big_width: Count = 256
    context: Count = Field(128, description="bytes of a sequence")

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.num_heads:
            below = self.width - self.width % self.num_heads
            nearest = " or ".join(str(one) for one in (below, below + self.num_heads) if one)
            raise ValueError(
                f"width must be a multiple of num_heads = {self.num_heads}, but got {self.width}; give {nearest}"
            )
        return self

    @model_validator(mode="after")
    def _big_is_bigger(self) -> Self:
        if self.small_width >= self.big_width:
            raise ValueError(
                f"small_width must be less than big_width = {self.big_width}, but got {self.small_width}; "
                "lower it or raise big_width"
            )
        return self


class Training(Config):
    """AdamW; the rate rises over the first twentieth of the steps and falls to 0 after the last."""

    num_steps: Count = 2000
    report_every: Count = 250
    batch_size: Count = 8
    learning_rate: Positive = 3e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01


class RoutedBytes(Config):
    """One replicate."""

    text: Text = Text()
    byte_model: ByteModel = ByteModel()
    model: Transformer = Transformer()
    controller: Controller = Always(kind="always_big")
    training: Training = Training()
    seed: int = 1

    @property
    def pretraining(self) -> Pretraining:
        """The pretraining of the frozen byte model."""
        return Pretraining(text=self.text, byte_model=self.byte_model)
