"""What can be set of a recurrent network with Adaptive Computation Time (Graves 2016, arXiv:1603.08983)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from trainables.config import NOT_IN_KEY, Config, Count, Name, Place, Positive, names_differ


class Parity(Config):
    """One vector, some of whose entries are +1 or -1 and the others 0: is the number of +1 odd?"""

    kind: Literal["parity"] = "parity"
    num_bits: Annotated[int, Field(ge=1, le=4096)] = 64


class Logic(Config):
    """Vectors of two bits and a chain of gates to apply to them; the first bit is the previous vector's result."""

    kind: Literal["logic"] = "logic"
    num_gates: Annotated[int, Field(ge=1, le=1000)] = Field(10, description="the most there are in one vector")
    num_vectors: Count = Field(10, description="the most there are in one sequence")


class Addition(Config):
    """Numbers of some digits: the running sum, digit by digit."""

    kind: Literal["addition"] = "addition"
    num_digits: Annotated[int, Field(ge=1, le=15)] = Field(5, description="the most there are in one number")
    num_numbers: Annotated[int, Field(ge=2, le=100)] = Field(5, description="the most there are in one sequence")

    @property
    def num_sum_digits(self) -> int:
        """Digits of the largest sum."""
        return len(str(self.num_numbers * (10**self.num_digits - 1)))


class Sort(Config):
    """Standard normal numbers, one a step: afterwards their indices in ascending order, one a step."""

    kind: Literal["sort"] = "sort"
    num_items: Annotated[int, Field(ge=2)] = Field(15, description="the most there are in one sequence")


class Text(Config):
    """The next byte of a text, at every byte of it. The last parts of the text are for validation and test."""

    kind: Literal["text"] = "text"
    path: Place = Field(
        None, description="any file; default: the documentation of Python's language that comes with Python"
    )
    num_steps: Count = Field(500, description="bytes in one sequence; each starts from a state of zeros")
    validation_share: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    test_share: Annotated[float, Field(gt=0, lt=0.5)] = 0.05


Data = Annotated[Parity | Logic | Addition | Sort | Text, Field(discriminator="kind")]


class LearntTau(Config):
    """A time penalty that is raised while the mean number of updates is above a budget, and lowered below it.

    After every iteration log tau += rate * (mean updates / budget - 1), within [1e-6, 10]: ascent on the multiplier
    of the constraint.
    """

    mean_updates: Annotated[float, Field(ge=1)] = Field(description="the budget: updates per step")
    start: Annotated[float, Field(ge=1e-6, le=10)] = 1e-3
    rate: Annotated[float, Field(gt=0, le=1)] = 0.01


def _kind_of_tau(value: object) -> str:
    return "learnt" if isinstance(value, dict | LearntTau) else "constant"


Tau = Annotated[
    Annotated[float, Field(ge=0), Tag("constant")] | Annotated[LearntTau, Tag("learnt")], Discriminator(_kind_of_tau)
]


class Adaptive(Config):
    """The cell is updated until its halting probabilities sum to 1 - epsilon."""

    kind: Literal["adaptive"] = "adaptive"
    tau: Tau = Field(1e-3, description="time penalty: what one update costs, in nats")
    epsilon: Annotated[float, Field(ge=0, lt=1)] = 0.01
    max_updates: Count = Field(100, description="M: the most there are at one step")
    halting_bias: float = Field(1.0, description="b_h at the start")

    @model_validator(mode="after")
    def _the_budget_can_be_exceeded(self) -> Self:
        if isinstance(self.tau, LearntTau) and self.tau.mean_updates > self.max_updates:
            raise ValueError(
                f"tau.mean_updates must be at most max_updates = {self.max_updates}, but got {self.tau.mean_updates:g}"
            )
        return self


class Fixed(Config):
    """The cell is updated equally often at every step; once is the plain recurrent network, without ACT."""

    kind: Literal["fixed"] = "fixed"
    num_updates: Count = 1


class Optimisation(Config):
    """Adam; one iteration is one batch."""

    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    batch_size: Count = 128
    num_iterations: Count = 1_000_000
    report_every: Count = Field(10_000, description="iterations from one validation and checkpoint to the next")
    max_gradient_norm: Positive | None = Field(None, description="longer gradients are cut; default: none is")
    truncate_steps: Count | None = Field(
        None, description="gradients do not reach back over the bounds of windows of so many steps; default: they do"
    )


class Evaluation(Config):
    """One test of a trained replicate.

    A generated task is tested on `num_sequences` made from `seed`, the same for every replicate; a text on its last
    part, or the first `num_sequences` of that.
    """

    name: Name = "test"
    num_sequences: Count = 10_000
    seed: int = 1


class ActConfig(Config):
    """One recurrent network on one task."""

    data: Data = Parity()
    cell: Literal["rnn", "gru", "lstm"] = "rnn"
    hidden_size: Count = 128
    halting: Annotated[Adaptive | Fixed, Field(discriminator="kind")] = Adaptive()
    training: Optimisation = Optimisation()
    num_validation_sequences: Count = 1000
    evaluations: Annotated[tuple[Evaluation, ...], NOT_IN_KEY, Field(min_length=1), AfterValidator(names_differ)] = (
        Evaluation(),
    )
    seed: Annotated[int, NOT_IN_KEY] = 1
