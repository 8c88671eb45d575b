"""What can be set of models that go on learning from a text while they are tested on it."""

from typing import Annotated, Literal

from pydantic import Field

from trainables.config import Config, Count, Positive

Shares = Annotated[tuple[Annotated[float, Field(ge=0, lt=1)], ...], Field(min_length=1)]
NotNegative = Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)]
TuningTokens = Annotated[
    Annotated[int, Field(ge=2)] | None,
    Field(description="the first so many of the validation part, on which the two are chosen; default: all"),
]


class DynamicEvaluation(Config):
    """Weights that move after every segment of the text by its gradient (Krause et al. 2018, arXiv:1709.07432).

    The rule with the RMS of gradients and decay to the trained weights. Rate and decay are the pair with which the
    validation part has the lowest loss.
    """

    kind: Literal["dynamic"] = "dynamic"
    weights: Literal["bias", "decoder", "all"] = Field(
        "all", description="that move; bias: of the decoder; decoder: with its bias; all: with the step sizes in use"
    )
    segment: Count = Field(20, description="tokens between two moves")
    rates: NotNegative = Field((3e-5, 1e-4, 3e-4), description="eta, to choose from")
    decays: NotNegative = Field((1e-3, 1e-2), description="lambda, to choose from")
    epsilon: Positive = Field(2e-5, description="added to the RMS of a gradient, in nats; released: 2e-5")
    num_tuning_tokens: TuningTokens = 20_000


class Cache(Config):
    """The words behind similar states, mixed with the model's own (Grave et al. 2017, arXiv:1612.04426).

    Theta and lambda are the pair with which the validation part has the lowest loss.
    """

    kind: Literal["cache"] = "cache"
    size: Count = Field(500, description="N: states that are kept, the last ones")
    thetas: NotNegative = Field(
        (0.1, 0.3, 1.0), description="theta, to choose from: how much more the words behind similar states weigh"
    )
    shares: Shares = Field((0.05, 0.1, 0.2), description="lambda, to choose from: weight of the cache's distribution")
    num_tuning_tokens: TuningTokens = None


Adaptation = Annotated[DynamicEvaluation | Cache, Field(discriminator="kind")]
