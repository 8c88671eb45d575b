"""What can be set of the step size of a recoder (Ulmer 2019, sections 4.3 and 5.3.4)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trainables.config import Config, Count, Positive

StepSize = Annotated[float, Field(ge=0)]


class FixedStep(Config):
    """The same size for every activation."""

    kind: Literal["fixed"] = "fixed"
    size: StepSize = 1.0


class FixedByLayer(Config):
    """A size of its own for h and for c of every layer, counted from the bottom; size 0: it is not recoded.

    The thesis doubts that one constant step suits all of them (section 7.1).
    """

    kind: Literal["fixed_by_layer"] = "fixed_by_layer"
    h: tuple[StepSize, ...] = (1.0, 1.0)
    c: tuple[StepSize, ...] = (1.0, 1.0)

    @model_validator(mode="after")
    def _something_is_recoded(self) -> Self:
        if len(self.h) != len(self.c):
            raise ValueError(f"h and c must have one size for each layer, but got {len(self.h)} and {len(self.c)}")
        if not any(self.sizes):
            raise ValueError("at least one size must be above 0, but got 0 alone; without a recoder set recoder: null")
        return self

    @property
    def sizes(self) -> tuple[float, ...]:
        """The step sizes of h and c of the first layer, h and c of the second, and so on."""
        return tuple(size for pair in zip(self.h, self.c, strict=True) for size in pair)


class LearnedStep(Config):
    """Softplus of a parameter for h and c of every layer."""

    kind: Literal["learned"] = "learned"
    start: Positive | Literal["released"] = Field(
        1.0, description="the size at the start; released: softplus of a draw from U[0, 1)"
    )


class PredictedStep(Config):
    """Softplus of a network N-300-100-1 with ReLU for h and c of every layer.

    It reads, as a constant, the activation (thesis) or the model's output distribution.
    """

    kind: Literal["predicted"] = "predicted"
    source: Literal["activation", "output"] = "activation"


class LipschitzStep(Config):
    """alpha = share / L, with L the gradient's Lipschitz constant in the top hidden state, estimated at every token.

    The estimate is the norm of the Hessian's product with the gradient's direction, after more iterations with its
    largest eigenvector. A step is promised not to raise delta for alpha up to 2 / L (thesis theorem 1).
    """

    kind: Literal["lipschitz"] = "lipschitz"
    share: Positive = 1.0
    num_iterations: Count = 1


Step = Annotated[FixedStep | FixedByLayer | LearnedStep | PredictedStep | LipschitzStep, Field(discriminator="kind")]
