"""The protocol `ErrorSignal` and what it gives: delta and its gradient at one step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from trainables.lm.lstm import product

ROUNDING: Final = 1e-5
"""What float32 may make of an unchanged delta, as a share of it; where it is below 1, of 1."""
Opens = Callable[[Tensor, Tensor | None], Int[Tensor, " N"]]
"""Which of B streams are recoded, by number, from their delta (B) and the distribution (B V) behind it."""


@dataclass(frozen=True, eq=False)
class Decoders:
    """Weights and biases of M decoders from H hidden units to V words."""

    weight: Float[Tensor, "M V H"]
    bias: Float[Tensor, "M V"]


@dataclass(frozen=True, eq=False)
class Output:
    """The output at a step, from which the loss follows.

    Attributes:
        loss: -log p of what came.
        loss_gradient: of the loss in the top hidden state, if asked for.
        decoded: the top hidden state as it was decoded.
    """

    loss: Float[Tensor, " B"]
    loss_gradient: Float[Tensor, "B H"] | None
    decoded: Float[Tensor, "B H"]


@dataclass(frozen=True, eq=False)
class Reading:
    """What an error signal says at a step.

    Attributes:
        delta: of each of the B streams read.
        gradient: of delta with respect to the hidden state of `layer`, in each of R = K B rows; of those of `opened`
            alone, where that is given.
        layer: counted from 0; those above are not asked.
        probs: the distribution of the next token behind delta; None where the signal has none.
        output: the model's output, where it is what delta is of.
        opened: the streams whose gradient is there, by number; None: all.
    """

    delta: Float[Tensor, " B"]
    gradient: Float[Tensor, "R H"]
    layer: int
    probs: Float[Tensor, "B V"] | None
    output: Output | None = None
    opened: Int[Tensor, " N"] | None = None


@runtime_checkable
class ErrorSignal(Protocol):
    """An error signal over the steps of one window."""

    def read(
        self, step: int, hidden: list[Tensor], streams: Tensor | None = None, opens: Opens | None = None
    ) -> Reading:
        """Delta and its gradient from the hidden states (R H) of all layers at `step`.

        Args:
            step: from 0.
            hidden: of the rows of `streams` alone, where that is given.
            streams: those to read, by number.
            opens: chooses the streams whose gradient is wanted, once delta is known; not together with `streams`.
        """

    def delta(self, step: int, hidden: list[Tensor]) -> Tensor:
        """Delta (B) alone, from other hidden states at the same step, with the same masks and targets."""


def is_raised(before: Float[Tensor, "..."], after: Float[Tensor, "..."]) -> Bool[Tensor, "..."]:
    """The places where delta is higher after recoding than before, by more than rounding."""
    return after > before + ROUNDING * before.abs().clamp_min(1.0)


class Workspace:
    """Big arrays that a window uses at every step, where no graph is kept and a CPU would have to make them anew."""

    def __init__(self) -> None:
        self._product: Tensor | None = None
        self._columns: Tensor | None = None

    def product(self, bias: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
        """`rows` times the transposed `weight`, plus `bias`; overwrites the last such product.

        `weight` must be the same each time: it is laid out once as a CPU reads it fastest for few rows.
        """
        if torch.is_grad_enabled() or rows.is_cuda:
            return product(rows, weight, bias)
        if self._columns is None:
            self._columns = weight.t().contiguous()
        if self._product is None or len(self._product) < len(rows):
            self._product = rows.new_empty(len(rows), len(weight))
        return torch.addmm(bias, rows, self._columns, out=self._product[: len(rows)])


def rows_of(streams: Int[Tensor, " N"] | None, num_streams: int, num_copies: int) -> Int[Tensor, " R"] | None:
    """The rows of `streams` in all their copies, which lie `num_streams` apart; None: all."""
    if streams is None or num_copies == 1:
        return streams
    starts = torch.arange(num_copies, device=streams.device) * num_streams
    return (starts[:, None] + streams).flatten()
