"""A recurrent network that takes as many updates at each step as it wants, or a fixed number."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.act.config import ActConfig, Adaptive, Fixed
from trainables.act.tasks.data import sizes
from trainables.conditional.adaptive_computation_time import Limits, Ponder
from trainables.conditional.halted_rows import State
from trainables.conditional.recurrent_cells import CELLS
from trainables.conditional.recurrent_ponder import ponder
from trainables.conditional.sequence_order import Order


@dataclass(frozen=True, eq=False)
class Run:
    """What a network made of B sequences of T steps.

    Attributes:
        log_probs: at the W wanted steps, in the order of sequences and steps, for each of K classifications.
        num_updates: N(t); 0 behind the end of a sequence.
        remainder: R(t); 0 behind the end, 1 where the number of updates is fixed.
        state: behind the last step of each sequence.
    """

    log_probs: Float[Tensor, "W K C"]
    num_updates: Int[Tensor, "B T"]
    remainder: Float[Tensor, "B T"]
    state: State


class Network(nn.Module):
    """Input projection, recurrent cell, halting unit and readout.

    The readout is linear, so that of the mixed state it is the mixture of readouts: y_t = sum_n p_t^n y_t^n.
    """

    def __init__(self, config: ActConfig) -> None:
        super().__init__()
        self.config, self.sizes = config, sizes(config.data)
        size = config.hidden_size
        self.cell = CELLS[config.cell](size)
        width = self.cell.num_gates * size
        self.input_weight = nn.Parameter(torch.empty(width, self.sizes.num_inputs))
        self.input_bias = nn.Parameter(torch.empty(width))
        self.readout = nn.Linear(size, self.sizes.num_outputs * self.sizes.num_logits)
        if self.tells_first_from_later:
            self.first_flag = nn.Parameter(torch.empty(width))
        if isinstance(config.halting, Adaptive):
            self.halting = nn.Linear(size, 1)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -1 / math.sqrt(size), 1 / math.sqrt(size))
        if isinstance(config.halting, Adaptive):
            nn.init.constant_(self.halting.bias, config.halting.halting_bias)

    @property
    def tells_first_from_later(self) -> bool:
        """Whether the input has the flag that is 1 at the first update of a step; one update alone needs none."""
        return self.config.halting != Fixed(num_updates=1)

    def forward(
        self, inputs: Tensor, num_steps: Int[Tensor, " B"], wanted: Bool[Tensor, "B T"], state: State | None = None
    ) -> Run:
        """Runs all sequences from `state`, by default zeros, and reads out the `wanted` steps.

        Args:
            inputs: vectors (B T I) or symbols (B T).
            num_steps: of each sequence; 0 for one that has ended. Any number of sequences, also none.
        """
        order = Order(num_steps, wanted.shape[1])
        state = state or self._zeros(inputs)
        projected = self._project(order.by_row(inputs))
        done = self._steps(projected, order.sizes, tuple(order.at_first(part) for part in state))
        return Run(
            self._read_out(done.states[0].index_select(0, order.row_of[wanted])),
            order.by_sequence(done.num_updates),
            order.by_sequence(done.remainder),
            order.behind(done.states, state),
        )

    def _zeros(self, inputs: Tensor) -> State:
        zeros = self.input_bias.new_zeros(len(inputs), self.config.hidden_size)
        return (zeros,) * self.cell.num_states

    def _project(self, inputs: Tensor) -> Float[Tensor, "R P"]:
        if self.sizes.is_symbol:
            return F.embedding(inputs, self.input_weight.t().contiguous()) + self.input_bias
        return F.linear(inputs, self.input_weight, self.input_bias)

    def _steps(self, projected: Float[Tensor, "N P"], sizes: list[int], state: State) -> Ponder:
        halting = self.config.halting
        if isinstance(halting, Adaptive):
            limits = Limits(halting.epsilon, halting.max_updates)
            return ponder(self.cell, projected, sizes, self.first_flag, state, self.halting, limits)
        update, found = self.cell.begin(), []
        for alive in projected.split(sizes):
            state = tuple(part[: len(alive)] for part in state)
            for n in range(halting.num_updates):
                is_flagged = n == 0 and self.tells_first_from_later
                state = update(alive + self.first_flag if is_flagged else alive, state)
            found.append(state)
        ones = projected.new_ones(len(projected))
        states = tuple(torch.cat(parts) for parts in zip(*found, strict=True))
        return Ponder(states, ones.long() * halting.num_updates, ones)

    def _read_out(self, visible: Float[Tensor, "W H"]) -> Float[Tensor, "W K C"]:
        shape = (len(visible), self.sizes.num_outputs, self.sizes.num_logits)
        logits: Tensor = self.readout(visible).view(shape)
        if self.sizes.num_logits == 1:
            logits = F.pad(logits, (1, 0))
        return logits.log_softmax(-1)
