"""A recurrent network that takes as many updates at each step as it wants, or is sure with, or a fixed number."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from trainables.act.config import ActConfig, Adaptive, Difference, EarlyExit, Entropy, Fixed, Halts, Mass, PonderNet
from trainables.act.steps import Inputs, every_update, halted_by_confidence, halted_by_draw
from trainables.act.tasks.data import sizes
from trainables.conditional.adaptive_computation_time import Limits, Ponder
from trainables.conditional.early_exit import difference, entropy, exit_weights
from trainables.conditional.halted_rows import State
from trainables.conditional.ponder_net import log_halting_probabilities
from trainables.conditional.recurrent_cells import CELLS
from trainables.conditional.recurrent_ponder import ponder
from trainables.conditional.sequence_order import Order


@dataclass(frozen=True, eq=False)
class Run:
    """What a network made of B sequences of T steps.

    Attributes:
        log_probs: at the W wanted steps, in the order of sequences and steps, for each of K classifications.
        num_updates: N(t); 0 behind the end of a sequence.
        remainder: R(t); 0 behind the end, 1 where nothing is mixed.
        state: behind the last step of each sequence.
    """

    log_probs: Float[Tensor, "W K C"]
    num_updates: Int[Tensor, "B T"]
    remainder: Float[Tensor, "B T"]
    state: State


@dataclass(frozen=True, eq=False)
class Unrolled:
    """What a network in training made of all N updates of every step, where PonderNet or confidence halts it.

    Attributes:
        log_probs: as of `Run`, behind each update.
        log_p: of all R steps, log of the weight of each update.
        log_p_wanted: of the W wanted ones.
        num_updates: N; 0 behind the end of a sequence.
        state: behind the last step of each sequence.
    """

    log_probs: Float[Tensor, "W N K C"]
    log_p: Float[Tensor, "R N"]
    log_p_wanted: Float[Tensor, "W N"]
    num_updates: Int[Tensor, "B T"]
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
        if isinstance(config.halting, Adaptive | PonderNet):
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
        self,
        inputs: Tensor,
        num_steps: Int[Tensor, " B"],
        wanted: Bool[Tensor, "B T"],
        state: State | None = None,
        draws: Float[Tensor, "B T"] | None = None,
        halts: Halts | None = None,
    ) -> Run | Unrolled:
        """Runs all sequences from `state`, by default zeros, and reads out the `wanted` steps.

        Args:
            inputs: vectors (B T I) or symbols (B T).
            num_steps: of each sequence; 0 for one that has ended. Any number of sequences, also none.
            draws: uniform in [0, 1), where PonderNet halts or an update is drawn in training; default: 1/2, the median.
            halts: of an evaluation.
        """
        order = Order(num_steps, wanted.shape[1])
        if not state:
            state = (self.input_bias.new_zeros(len(inputs), self.config.hidden_size),) * self.cell.num_states
        projected = self._project(order.by_row(inputs))
        first = tuple(order.at_first(part) for part in state)
        halting, at = self.config.halting, order.row_of[wanted]
        if not isinstance(halting, PonderNet | EarlyExit):
            done, outputs = self._steps(halting, projected, order.sizes, first), None
        else:
            flag, most = self.first_flag, halting.max_updates
            cell_inputs = Inputs(projected, order.sizes, flag, first, most)
            chances = projected.new_full((len(projected),), 0.5) if draws is None else order.by_row(draws).to(projected)
            if self.training:
                return self._unrolled(cell_inputs, chances, order, at, state)
            done, outputs = self._halted(cell_inputs, chances, halts)
        return Run(
            self._read_out(done.states[0].index_select(0, at)) if outputs is None else outputs.index_select(0, at),
            order.by_sequence(done.num_updates),
            order.by_sequence(done.remainder),
            order.behind(done.states, state),
        )

    def _unrolled(self, inputs: Inputs, draws: Tensor, order: Order, at: Tensor, before: State) -> Unrolled:
        done = every_update(self.cell, inputs, self._log_p, draws)
        visible = done.visible.index_select(1, at).transpose(0, 1)
        log_probs = self._read_out(visible.flatten(0, 1)).unflatten(0, (at.shape[0], inputs.max_updates))
        num_updates = torch.full_like(draws, inputs.max_updates, dtype=torch.long)
        return Unrolled(
            log_probs,
            done.log_p,
            done.log_p.index_select(0, at),
            order.by_sequence(num_updates),
            order.behind(done.states, before),
        )

    def _log_p(self, visible: Float[Tensor, "r N H"]) -> Float[Tensor, "r N"]:
        """The logs of PonderNet's halting probabilities of updates, or of the weights of exits."""
        if isinstance(self.config.halting, PonderNet):
            return log_halting_probabilities(self.halting(visible).squeeze(-1))
        return exit_weights(visible.shape[1], visible).log().expand(visible.shape[:2])

    def _halted(self, inputs: Inputs, draws: Tensor, halts: Halts | None) -> tuple[Ponder, Tensor | None]:
        """Rows leave; early exit without a rule takes all updates, and is read out only where it is wanted."""
        if isinstance(self.config.halting, PonderNet):
            found = halted_by_draw(self.cell, inputs, self.halting, draws)
        else:
            readout = self._read_out if halts else lambda visible: visible.new_zeros(len(visible), 1, 1)
            found = halted_by_confidence(self.cell, inputs, readout, sureness(halts))
        outputs = found.outputs if halts else None
        return Ponder(found.states, found.num_updates, torch.ones_like(draws)), outputs

    def _project(self, inputs: Tensor) -> Float[Tensor, "R P"]:
        if self.sizes.is_symbol:
            return F.embedding(inputs, self.input_weight.t().contiguous()) + self.input_bias
        return F.linear(inputs, self.input_weight, self.input_bias)

    def _steps(
        self, halting: Adaptive | Fixed, projected: Float[Tensor, "N P"], sizes: list[int], state: State
    ) -> Ponder:
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


def sureness(halts: Halts | None) -> Callable[[Float[Tensor, "r K C"]], Bool[Tensor, " r"]]:
    """Whether all K outputs of a row are sure, by an evaluation's rule; without one none is."""
    match halts:
        case Entropy(below=most):
            return lambda log_probs: (entropy(log_probs) < most).all(-1)
        case Difference(above=least):
            return lambda log_probs: (difference(log_probs) > least).all(-1)
        case Mass() | None:
            return lambda log_probs: torch.zeros(len(log_probs), dtype=torch.bool, device=log_probs.device)
