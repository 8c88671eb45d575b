"""A recurrent network that takes as many updates at each step as it wants, or a fixed number."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.act.cells import CELLS, State
from trainables.act.config import ActConfig, Adaptive, Fixed
from trainables.act.halting import Limits, Ponder, ponder
from trainables.act.tasks.data import sizes


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
        order = num_steps.argsort(descending=True, stable=True)
        place = order.argsort()
        state = tuple(part[order] for part in state) if state else self._zeros(inputs)
        is_step = torch.arange(wanted.shape[1], device=num_steps.device)[:, None] < num_steps[order]
        num_alive_at = is_step[: max(1, int(is_step.any(1).sum()))].sum(1).tolist()
        projected = self._project(inputs[order].transpose(0, 1)[is_step])
        done = self._steps(projected, num_alive_at, tuple(part[: num_alive_at[0]] for part in state))
        rows, columns = wanted.nonzero(as_tuple=True)
        starts = F.pad(is_step.sum(1).cumsum(0), (1, 0))
        ends = starts[(num_steps - 1).clamp(min=0)] + place
        return Run(
            self._read_out(done.states[0][starts[columns] + place[rows]]),
            _by_sequence(done.num_updates, is_step, place),
            _by_sequence(done.remainder, is_step, place),
            tuple(
                torch.where((num_steps > 0)[:, None], after[ends], before[place])
                for before, after in zip(state, done.states, strict=True)
            ),
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


def _by_sequence(
    values: Shaped[Tensor, " N"], is_step: Bool[Tensor, "T B"], place: Int[Tensor, " B"]
) -> Shaped[Tensor, "B T"]:
    """Values of all steps, one behind the other, by the sequences' own order; 0 where there is none."""
    found = values.new_zeros(is_step.shape)
    found[is_step] = values
    return found.t()[place]
