"""What can be set of the gate of a recoder: which tokens are recoded."""

from typing import Annotated, Literal

from pydantic import Field

from trainables.config import Config


class Always(Config):
    """Every token is recoded."""

    kind: Literal["always"] = "always"


class Threshold(Config):
    """Tokens whose delta exceeds a bound are recoded; the bound must be one that delta can exceed.

    A surprisal is known when the word has come, an entropy of a signal before.
    """

    kind: Literal["threshold"] = "threshold"
    min_delta: float = 5.0


class EntropyThreshold(Config):
    """Tokens are recoded whose prediction had an entropy above a bound, which is known before the word comes.

    The entropy is that of the model's output, H = -sum p log p in nats; the error signal must be surprisal. Where it is
    an entropy itself, `Threshold` is the gate that is known before the word.
    """

    kind: Literal["entropy"] = "entropy"
    min_entropy: Annotated[float, Field(ge=0)] = Field(4.0, description="nats")


class Chance(Config):
    """Tokens are recoded with a probability, each by itself or the whole batch at once."""

    kind: Literal["chance"] = "chance"
    probability: Annotated[float, Field(ge=0, le=1)] = 0.5
    each: Literal["token", "batch"] = "token"


Gate = Annotated[Always | Threshold | EntropyThreshold | Chance, Field(discriminator="kind")]
