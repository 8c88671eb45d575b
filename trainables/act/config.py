"""What can be set of a recurrent network with Adaptive Computation Time (Graves 2016, arXiv:1603.08983)."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from trainables.config import IN_KEY_IF_SET, NOT_IN_KEY, Config, Count, Name, Place, Positive, names_differ
from trainables.patience import Patience


class Parity(Config):
    """One vector, some of whose entries are +1 or -1 and the others 0: is the number of +1 odd?"""

    kind: Literal["parity"] = "parity"
    num_bits: Annotated[int, Field(ge=1, le=4096)] = 64
    min_active: Annotated[Count, IN_KEY_IF_SET] = Field(1, description="the fewest entries that are not 0")
    max_active: Annotated[Count | None, IN_KEY_IF_SET] = Field(None, description="the most; default: all")

    @model_validator(mode="after")
    def _the_range_is_one(self) -> Self:
        if not self.min_active <= self.most_active <= self.num_bits:
            raise ValueError(
                f"min_active and max_active must be in order and at most num_bits = {self.num_bits}, but got "
                f"{self.min_active} and {self.most_active}"
            )
        return self

    @property
    def most_active(self) -> int:
        """The most entries that are not 0."""
        return self.num_bits if self.max_active is None else self.max_active


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


Generated = Annotated[Parity | Logic | Addition | Sort, Field(discriminator="kind")]
SIZED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "parity": ("num_bits",),
    "logic": ("num_gates",),
    "addition": ("num_digits", "num_sum_digits"),
    "sort": ("num_items",),
}
"""What of each generated task decides the inputs and outputs of a network."""

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


class PonderNet(Config):
    """Halting is drawn from a distribution that is learnt (Banino et al. 2021, arXiv:2107.05407).

    Training runs all updates of every step; testing draws, and rows that have halted leave the batch. Ours, for more
    than one step: the state at the drawn update goes on to the next one, in training too, and how a step halts learns
    from its own targets and the prior alone.
    """

    kind: Literal["ponder_net"] = "ponder_net"
    beta: Annotated[float, Field(ge=0)] = Field(0.01, description="what one nat of divergence from the prior costs")
    lambda_p: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.2, description="of the geometric prior; 1 / lambda_p updates on average, before it is cut off"
    )
    max_updates: Count = Field(20, description="N: the most there are at one step, and all that training runs")


class EarlyExit(Config):
    """A step ends when its output is sure enough (arXiv:1709.01686, arXiv:2207.07061); how sure, an evaluation says.

    Training runs all updates of every step; update i weighs i in the mean of their losses. Ours, for more than one
    step: in training the state at an update drawn with these weights goes on to the next step, in testing the one at
    the exit. A step at which nothing is asked ends by its output too, which nothing has trained there.
    """

    kind: Literal["early_exit"] = "early_exit"
    max_updates: Count = 10


Halting = Annotated[Adaptive | Fixed | PonderNet | EarlyExit, Field(discriminator="kind")]


class Entropy(Config):
    """A rule of early exit: all outputs of the step have less entropy than this, in nats (BranchyNet)."""

    kind: Literal["entropy"] = "entropy"
    below: Positive


class Difference(Config):
    """A rule of early exit: the first class of every output is ahead of the second by more than this (CALM)."""

    kind: Literal["difference"] = "difference"
    above: Annotated[float, Field(ge=0, lt=1)]


class Mass(Config):
    """A rule of PonderNet, in place of a draw: the halting probabilities sum to at least this; 1/2 is the median."""

    kind: Literal["mass"] = "mass"
    reached: Annotated[float, Field(gt=0, lt=1)] = 0.5


Halts = Annotated[Entropy | Difference | Mass, Field(discriminator="kind")]
HALTED_BY = {"entropy": "early_exit", "difference": "early_exit", "mass": "ponder_net"}


class Optimisation(Config):
    """Adam; one iteration is one batch."""

    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    batch_size: Count = 128
    num_iterations: Count = Field(1_000_000, description="at most, where there is `patience`")
    report_every: Count = Field(10_000, description="iterations from one validation and checkpoint to the next")
    patience: Patience = None
    max_gradient_norm: Positive | None = Field(None, description="longer gradients are cut; default: none is")
    truncate_steps: Count | None = Field(
        None, description="gradients do not reach back over the bounds of windows of so many steps; default: they do"
    )


class Evaluation(Config):
    """One test of a trained replicate.

    A generated task is tested on `num_sequences` made from `seed`, the same for every replicate; a text on its last
    part, or the first `num_sequences` of that.

    Attributes:
        data: a task with the same inputs and outputs, such as a harder one; default: the one that is trained.
        halts: when a step ends; default: by the draw of PonderNet, behind all updates of early exit.
    """

    name: Name = "test"
    num_sequences: Count = 10_000
    seed: int = 1
    data: Annotated[Generated | None, IN_KEY_IF_SET] = None
    halts: Annotated[Halts | None, IN_KEY_IF_SET] = None


def _misfit(tested: Generated, trained: Data) -> str:
    """Why a network that is trained on one task cannot be tested on another, or nothing."""
    if tested.kind != trained.kind:
        return f"its kind is {tested.kind} and that of the trained task {trained.kind}"
    for name in SIZED_BY[tested.kind]:
        ours, theirs = getattr(tested, name), getattr(trained, name)
        if ours != theirs:
            return f"its {name} is {ours} and that of the trained task {theirs}"
    return ""


class ActConfig(Config):
    """One recurrent network on one task."""

    data: Data = Parity()
    cell: Literal["rnn", "gru", "lstm"] = "rnn"
    hidden_size: Count = 128
    halting: Halting = Adaptive()
    training: Optimisation = Optimisation()
    num_validation_sequences: Count = 1000
    evaluations: Annotated[tuple[Evaluation, ...], NOT_IN_KEY, Field(min_length=1), AfterValidator(names_differ)] = (
        Evaluation(),
    )
    seed: Annotated[int, NOT_IN_KEY] = 1

    @model_validator(mode="after")
    def _evaluations_fit_the_network(self) -> Self:
        for test in self.evaluations:
            if test.data and (misfit := _misfit(test.data, self.data)):
                raise ValueError(
                    f"`data` of the evaluation {test.name!r} must have the inputs and outputs of the trained task, but "
                    f"{misfit}; where a sweep is declared, set `data` and the `data` of `evaluations` alike in that"
                )
        return self

    @model_validator(mode="after")
    def _steps_end_as_they_can(self) -> Self:
        for evaluation in self.evaluations:
            if evaluation.halts and HALTED_BY[evaluation.halts.kind] != self.halting.kind:
                raise ValueError(
                    f"`halts` of the evaluation {evaluation.name!r} must be of halting {self.halting.kind}, but got "
                    f"{evaluation.halts.kind}, which is of {HALTED_BY[evaluation.halts.kind]}"
                )
        return self
