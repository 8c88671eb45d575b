"""A recurrent network that takes as many updates at each step as it wants, or a fixed number."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.act.cells import CELLS, State, Update
from trainables.act.config import ActConfig, Adaptive, Fixed
from trainables.act.halting import Ponder, ponder
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
        update = self.cell.begin()
        order = num_steps.argsort(descending=True, stable=True)
        place = order.argsort()
        state = tuple(part[order] for part in state) if state else self._zeros(inputs)
        is_step = torch.arange(wanted.shape[1], device=num_steps.device)[:, None] < num_steps[order]
        num_alive_at = is_step[: max(1, int(is_step.any(1).sum()))].sum(1).tolist()
        projected = self._project(inputs[order].transpose(0, 1)[is_step]).split(num_alive_at)
        visible, updates, remainders = [], [], []
        for num_alive, alive in zip(num_alive_at, projected, strict=True):
            done = self._step(update, alive, tuple(part[:num_alive] for part in state))
            if num_alive < len(order):
                old = tuple(part[num_alive:] for part in state)
                done = _with_ended(done, old)
            state = done.state
            visible.append(state[0])
            updates.append(done.num_updates)
            remainders.append(done.remainder)
        rows, columns = wanted.nonzero(as_tuple=True)
        missing = (0, wanted.shape[1] - len(updates))
        return Run(
            self._read_out(torch.stack(visible)[columns, place[rows]]),
            F.pad(torch.stack(updates, 1)[place], missing),
            F.pad(torch.stack(remainders, 1)[place], missing),
            tuple(part[place] for part in state),
        )

    def _zeros(self, inputs: Tensor) -> State:
        zeros = self.input_bias.new_zeros(len(inputs), self.config.hidden_size)
        return (zeros,) * self.cell.num_states

    def _project(self, inputs: Tensor) -> Float[Tensor, "R P"]:
        if self.sizes.is_symbol:
            return F.embedding(inputs, self.input_weight.t().contiguous()) + self.input_bias
        return F.linear(inputs, self.input_weight, self.input_bias)

    def _step(self, update: Update, projected: Float[Tensor, "R P"], state: State) -> Ponder:
        halting = self.config.halting
        if isinstance(halting, Adaptive):
            limits = (halting.epsilon, halting.max_updates)
            return ponder(update, projected, self.first_flag, state, self.halting, *limits)
        for n in range(halting.num_updates):
            is_flagged = n == 0 and self.tells_first_from_later
            state = update(projected + self.first_flag if is_flagged else projected, state)
        ones = projected.new_ones(len(projected))
        return Ponder(state, ones.long() * halting.num_updates, ones)

    def _read_out(self, visible: Float[Tensor, "W H"]) -> Float[Tensor, "W K C"]:
        shape = (len(visible), self.sizes.num_outputs, self.sizes.num_logits)
        logits: Tensor = self.readout(visible).view(shape)
        if self.sizes.num_logits == 1:
            logits = F.pad(logits, (1, 0))
        return logits.log_softmax(-1)


def _with_ended(done: Ponder, ended: State) -> Ponder:
    """`done` with the states of sequences that have ended behind it."""
    missing = (0, len(ended[0]))
    return Ponder(
        tuple(torch.cat(parts) for parts in zip(done.state, ended, strict=True)),
        F.pad(done.num_updates, missing),
        F.pad(done.remainder, missing),
    )
